import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, mkdtemp, open, readdir, readFile, rename, rm, rmdir, stat, unlink } from "node:fs/promises";
import { dirname, isAbsolute, join, resolve } from "node:path";

import { ConfigError, JournalError } from "./errors.ts";
import { checkEntriesMax, entriesMaxDefault, full, none, type Begun, type Entry, type Journal } from "./journal.ts";

/**
 * A journal in a directory, for its owner alone to read. It survives the process and, as far as the disk does what fsync
 * asks for, the machine; several processes on one machine may share it. Files hold operation ids and keys in the clear, in the
 * format that the clients in Go and Python have, too.
 *
 * Each operation is a directory in the journal's, and its entry is the one file in that, named after the key. So an entry is
 * removed by its key, and a directory that has an entry is neither replaced nor removed. A line break at a file's end, or the zero
 * that a power cut left of it, says that a second caller has the entry, too.
 */
export class FileJournal implements Journal {
  readonly #directory: string;
  readonly #entriesMax: number;

  private constructor(directory: string, entriesMax: number) {
    this.#directory = directory;
    this.#entriesMax = entriesMax;
  }

  /**
   * Opens the journal, for at most that many operations at once. It makes the directory if need be, but none above it: another, empty
   * journal is a new key for what was sent before. Put a journal on a volume into a directory that you made there, so that opening it
   * is an error while the volume is not mounted. For the same reason the path must be absolute, since a relative one is another
   * journal where the process starts elsewhere, and have no "..", which programs read in two ways behind a symbolic link.
   */
  static async open(directory: string, entriesMax = entriesMaxDefault): Promise<FileJournal> {
    checkEntriesMax(entriesMax);
    if (!isAbsolute(directory) || directory.split("/").includes("..")) {
      throw new ConfigError(`directory = ${directory}: must be an absolute path without "..": any other one may be another journal, where the process starts elsewhere or behind a link`);
    }
    const path = resolve(directory);
    await makeDurable(path);
    await sync(path);
    await clean(path);
    return new FileJournal(path, entriesMax);
  }

  /** A file that can't be read is an error: a new key might execute again what the old one did. */
  async begin(operation: string, fresh: Entry, signal?: AbortSignal): Promise<Begun> {
    const kept = await this.#resume(operation);
    if (kept) return { entry: kept, resumed: true };
    if (signal?.aborted) throw none();
    const room = await this.#hasRoom();
    if (room && (await this.#write(operation, fresh))) return { entry: fresh, resumed: false };
    const faster = await this.#resume(operation); // another process was faster, and may have taken the last place
    if (faster) return { entry: faster, resumed: true };
    throw room ? new JournalError("journal_unreadable", "the operation was ended while it began") : full(this.#entriesMax);
  }

  async alone(operation: string, key: string): Promise<boolean> {
    const raw = await readFile(this.#file(operation, key), "utf8").catch(unless("ENOENT"));
    if (raw === undefined) return false; // another caller has ended it
    const kept = parse(raw, operation);
    return kept.entry.key === key && !kept.shared;
  }

  async done(operation: string, key: string): Promise<void> {
    await unlink(this.#file(operation, key)).catch(unless("ENOENT"));
    await removeEmpty(this.#path(operation)); // the next operation may have its entry there
    await sync(this.#directory);
  }

  /**
   * The operation's directory. It has the name that earlier commits gave to a file: a client that meets what another one left there
   * fails, and does not take the operation for a new one.
   */
  #path(operation: string): string {
    return join(this.#directory, nameOf(operation));
  }

  /** The operation's entry with the key. */
  #file(operation: string, key: string): string {
    return join(this.#path(operation), nameOf(key));
  }

  /** The operation's entry, whatever its key is; undefined where there is none. */
  async #find(operation: string): Promise<string | undefined> {
    const names = await readdir(this.#path(operation)).catch(unless("ENOENT"));
    const name = names?.find((name) => name.endsWith(suffix)); // NFS has others, of what was removed while it was open
    return name && join(this.#path(operation), name);
  }

  /**
   * Reads an entry that is there, and tells its first caller that there is a second one. The mark is not synced: the first
   * caller does not outlive the machine either.
   */
  async #resume(operation: string): Promise<Entry | undefined> {
    const name = await this.#find(operation);
    const file = name && (await open(name, constants.O_RDWR | constants.O_APPEND).catch(unless("ENOENT")));
    if (!file) return undefined;
    try {
      const { entry, shared } = parse(await file.readFile("utf8"), operation);
      if (!shared) await file.write("\n");
      await sync(this.#directory); // the one who wrote it may not have got to this: what is used must be durable
      return entry;
    } finally {
      await file.close();
    }
  }

  /**
   * Whether there is a place for another entry. The directory that a crash inside `done` left takes a place, so a full journal is
   * cleaned and counted again.
   */
  async #hasRoom(): Promise<boolean> {
    if ((await this.#count()) >= this.#entriesMax) await clean(this.#directory);
    return (await this.#count()) < this.#entriesMax;
  }

  /** Counts the operations' directories. What a crash left beside them does not count. */
  async #count(): Promise<number> {
    return (await readdir(this.#directory)).filter((name) => !name.startsWith(besidePrefix)).length;
  }

  /**
   * Made and synced beside, then renamed into place. That replaces an empty directory, and fails where another process has an
   * entry: false.
   */
  async #write(operation: string, entry: Entry): Promise<boolean> {
    const beside = await mkdtemp(join(this.#directory, besidePrefix)); // mode 0700
    try {
      await fill(join(beside, nameOf(entry.key)), JSON.stringify({ operation, key: entry.key, first_sent: text(entry.firstSent), given_at: text(entry.givenAt) }));
      await sync(beside);
      await rename(beside, this.#path(operation));
    } catch (error) {
      await rm(beside, { recursive: true, force: true });
      unless(...occupied)(error as NodeJS.ErrnoException);
      return false;
    }
    await sync(this.#directory);
    return true;
  }
}

/** Begins the names of directories that are not renamed into place yet. */
const besidePrefix = "begin-";
/** Ends the names of those that are being removed. */
const goneSuffix = "-gone";
/**
 * More than a write takes. A process that was stopped for longer finds its directory gone when it renames it; nothing is sent then.
 */
const besideAgeMaxMs = 3600_000;
/** How file systems say that a directory has something in it. */
const occupied = ["ENOTEMPTY", "EEXIST"];
const suffix = ".json";

/** Hashes an id or a key: any one is a file's name then. */
function nameOf(text: string): string {
  return createHash("sha256").update(text).digest("hex") + suffix;
}

/** Writes a new file, durably but for its name. */
async function fill(name: string, content: string): Promise<void> {
  const file = await open(name, "wx", 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Removes a directory, unless there is something in it. */
async function removeEmpty(directory: string): Promise<void> {
  await rmdir(directory).catch(unless("ENOENT", "ENOTDIR", ...occupied));
}

/** Removes what crashes left: directories beside the entries, and those of operations that were ended. */
async function clean(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (name.startsWith(besidePrefix)) await cleanBeside(join(directory, name));
    else if (name.endsWith(suffix)) await removeEmpty(join(directory, name));
  }
}

/**
 * Removes a directory beside the entries that is too old to be somebody's. It takes another name first: were its writer only
 * stopped, it would rename a directory without its file into place.
 */
async function cleanBeside(beside: string): Promise<void> {
  const found = await stat(beside).catch(unless("ENOENT"));
  if (!found || Date.now() - found.mtimeMs <= besideAgeMaxMs) return;
  const gone = beside.endsWith(goneSuffix) ? beside : beside + goneSuffix;
  await rename(beside, gone).catch(unless("ENOENT", ...occupied));
  await rm(gone, { recursive: true, force: true });
}

/**
 * Makes the directory if it is missing, but none above it: where those are missing a volume may not be mounted. The name of one that is
 * there is synced all the same: the one who made it may not have got to this.
 */
async function makeDurable(directory: string): Promise<void> {
  if (await stat(directory).catch(unless("ENOENT"))) {
    await syncName(directory);
    return;
  }
  await mkdir(directory, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") return unless("EEXIST")(error);
    throw new ConfigError(`directory = ${directory}: must be in a directory that is there: if a volume is not mounted, a journal made in its place has new keys for what was sent before`);
  });
  await syncName(dirname(directory));
  await sync(dirname(directory));
}

/** Makes the name of a directory durable. Where the one above it may not be read somebody else made it. */
async function syncName(directory: string): Promise<void> {
  await sync(dirname(directory)).catch(unless("EACCES", "EPERM"));
}

/** Makes the directory's names durable. */
async function sync(name: string): Promise<void> {
  const directory = await open(name, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** Reads the operation's file: the entry, and whether a second caller has it. */
function parse(raw: string, operation: string): { entry: Entry; shared: boolean } {
  // A power cut may leave a zero in the mark's place: a file system makes a file longer before it has what is in it.
  const content = raw.replace(/[\n\0]+$/, "");
  const entry = parseEntry(content, operation);
  if (!entry) throw new JournalError("journal_unreadable", "a file is not the operation's entry");
  return { entry, shared: content.length < raw.length };
}

/** Reads a file's content; undefined where it is not the operation's entry. */
function parseEntry(raw: string, operation: string): Entry | undefined {
  try {
    const kept = JSON.parse(raw) as { operation?: unknown; key?: unknown; first_sent?: unknown; given_at?: unknown } | null;
    if (kept?.operation !== operation || typeof kept.key !== "string" || kept.key === "") return undefined;
    const [firstSent, givenAt] = [kept.first_sent, kept.given_at].map(time);
    if (Number.isNaN(firstSent) || Number.isNaN(givenAt)) return undefined;
    const times = { ...(firstSent !== undefined && { firstSent }), ...(givenAt !== undefined && { givenAt }) };
    return { key: kept.key, ...times };
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
function unless(...codes: string[]): (error: NodeJS.ErrnoException) => undefined {
  return (error) => {
    if (!codes.includes(error.code ?? "")) throw error;
    return undefined;
  };
}
