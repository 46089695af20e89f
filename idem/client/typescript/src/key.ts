import { KeyError } from "./errors.ts";

/**
 * How keys are written: "structured" is a quoted String (RFC 9651, section 3.3.3), "opaque" is the key as it stands, for
 * servers that take the quotes for a part of the key.
 */
export type Syntax = "structured" | "opaque";

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

/** Writes a key as the value of the Idempotency-Key header, so that a server reads the same key; unknown is that of a KeyError. */
export function keyLine(key: string, syntax: Syntax, unknown: boolean): string {
  // A pattern would match the text of what is none: each call with null would have the key "null".
  if (typeof key !== "string") throw new KeyError("a key is a string", unknown);
  if (syntax === "opaque") {
    // Fetch strips spaces at the ends.
    if (!/^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/.test(key)) throw new KeyError("an opaque key is 1 to 255 characters of printable ASCII, no space at its ends", unknown);
    return key;
  }
  if (!/^[\x20-\x7e]{1,255}$/.test(key)) throw new KeyError("a key is 1 to 255 characters of printable ASCII", unknown);
  return `"${key.replace(/[\\"]/g, "\\$&")}"`;
}
