import { KeyError } from "./errors.ts";

/** What a journal keeps of an operation. */
export interface Entry {
  /** The operation's key, without quotes. */
  readonly key: string;
  /** When the key was first used, in milliseconds since 1970. */
  readonly firstSent: number;
}

/**
 * Keeps the keys of named operations from before their first request until the caller is done with the answer. FileJournal
 * survives the process; one in the caller's database is best, in the transaction that decides on the operation.
 */
export interface Journal {
  /**
   * Returns the operation's entry: the one that is there already (resumed), or else the fresh one, kept durably before it
   * returns. Of several callers at once, in several processes too, all get the same. Rejecting means that nothing is sent.
   */
  begin(operation: string, fresh: Entry): Promise<{ entry: Entry; resumed: boolean }>;
  /** Forgets an operation, durably. One that is not there is no error. */
  done(operation: string): Promise<void>;
}

/** Makes a UUIDv7 (RFC 9562 section 5.7): its time lets a server judge the key's age. */
export function mintKey(now: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const view = new DataView(bytes.buffer);
  view.setUint16(0, Math.floor(now / 2 ** 32));
  view.setUint32(2, now % 2 ** 32);
  view.setUint8(6, (view.getUint8(6) & 0x0f) | 0x70);
  view.setUint8(8, (view.getUint8(8) & 0x3f) | 0x80);
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** Writes a key as the value of the Idempotency-Key header: a String of RFC 9651, section 3.3.3. */
export function keyLine(key: string): string {
  if (!/^[\x20-\x7e]{1,255}$/.test(key)) {
    throw new KeyError("a key is 1 to 255 characters of printable ASCII");
  }
  return `"${key.replace(/[\\"]/g, "\\$&")}"`;
}
