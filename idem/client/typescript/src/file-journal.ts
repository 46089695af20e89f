import { createHash, randomUUID } from "node:crypto";
import { link, mkdir, open, readdir, readFile, unlink } from "node:fs/promises";
import { join } from "node:path";

import { JournalError } from "./errors.ts";
import { checkEntriesMax, entriesMaxDefault, full, type Begun, type Entry, type Journal } from "./journal.ts";

/**
 * A journal in a directory, one file for each operation, for its owner alone to read. It survives the process and, as far
 * as the disk does what fsync asks for, the machine; several processes on one machine may share it. Files hold operation ids
 * and keys in the clear, in the format that the clients in Go and Python have, too.
 */
export class FileJournal implements Journal {
  readonly #directory: string;
  readonly #entriesMax: number;

  private constructor(directory: string, entriesMax: number) {
    this.#directory = directory;
    this.#entriesMax = entriesMax;
  }

  /** Opens the journal, for at most that many operations at once. */
  static async open(directory: string, entriesMax = entriesMaxDefault): Promise<FileJournal> {
    checkEntriesMax(entriesMax);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const journal = new FileJournal(directory, entriesMax);
    await journal.#sync();
    return journal;
  }

  /** A file that can't be read is an error: a new key might execute again what the old one did. */
  async begin(operation: string, fresh: Entry): Promise<Begun> {
    const kept = await this.#read(operation);
    if (kept) return { entry: kept, resumed: true };
    if (await this.#write(operation, fresh)) return { entry: fresh, resumed: false };
    const faster = await this.#read(operation); // another process was faster
    if (!faster) throw new JournalError("journal_unreadable", "the operation was ended while it began");
    return { entry: faster, resumed: true };
  }

  async done(operation: string): Promise<void> {
    await unlink(this.#path(operation)).catch(unless("ENOENT"));
    await this.#sync();
  }

  /** Hashed: any id is a file name then. */
  #path(operation: string): string {
    return join(this.#directory, `${createHash("sha256").update(operation).digest("hex")}.json`);
  }

  async #read(operation: string): Promise<Entry | undefined> {
    const raw = await readFile(this.#path(operation), "utf8").catch(unless("ENOENT"));
    if (raw === undefined) return undefined;
    const kept = parse(raw);
    if (kept?.operation !== operation) throw new JournalError("journal_unreadable", "a file is not the operation's entry");
    await this.#sync(); // the one who wrote it may not have got to this: what is used must be durable
    return kept.entry;
  }

  /** Written and synced beside, then linked into place: a rename would overwrite another process's entry. */
  async #write(operation: string, entry: Entry): Promise<boolean> {
    if ((await readdir(this.#directory)).length >= this.#entriesMax) throw full(this.#entriesMax);
    const beside = join(this.#directory, `begin-${randomUUID()}`);
    const file = await open(beside, "wx", 0o600);
    try {
      await file.writeFile(JSON.stringify({ operation, key: entry.key, first_sent: text(entry.firstSent), given_at: text(entry.givenAt) }));
      await file.sync();
      const mine = await link(beside, this.#path(operation)).then(() => true, unless("EEXIST"));
      await this.#sync();
      return mine === true;
    } finally {
      await file.close();
      await unlink(beside);
    }
  }

  /** Makes the directory's names durable. */
  async #sync(): Promise<void> {
    const directory = await open(this.#directory, "r");
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  }
}

/** Reads a file's content; undefined where it is no entry. */
function parse(raw: string): { operation: string; entry: Entry } | undefined {
  try {
    const kept = JSON.parse(raw) as { operation?: unknown; key?: unknown; first_sent?: unknown; given_at?: unknown } | null;
    if (typeof kept?.operation !== "string" || typeof kept.key !== "string" || kept.key === "") return undefined;
    const [firstSent, givenAt] = [kept.first_sent, kept.given_at].map(time);
    if (Number.isNaN(firstSent) || Number.isNaN(givenAt)) return undefined;
    const times = { ...(firstSent !== undefined && { firstSent }), ...(givenAt !== undefined && { givenAt }) };
    return { operation: kept.operation, entry: { key: kept.key, ...times } };
  } catch {
    return undefined; // half a file, or another's
  }
}

/** Writes a time; one that is not known is left out. */
function text(time: number | undefined): string | undefined {
  return time === undefined ? undefined : new Date(time).toISOString();
}

/** Reads a time: undefined where there is none, NaN where it is no time. */
function time(text: unknown): number | undefined {
  return text === undefined ? undefined : typeof text === "string" ? Date.parse(text) : NaN;
}

/** Takes an error of the file system with this code for nothing, and passes any other on. */
function unless(code: string): (error: NodeJS.ErrnoException) => undefined {
  return (error) => {
    if (error.code !== code) throw error;
    return undefined;
  };
}
