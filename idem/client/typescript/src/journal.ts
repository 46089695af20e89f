import { ConfigError, JournalError } from "./errors.ts";

/** What a journal keeps of an operation. */
export interface Entry {
  /** The operation's key, without quotes. */
  readonly key: string;
  /** When the key was first used, in milliseconds since 1970; absent where that is not known. */
  readonly firstSent?: number | undefined;
  /**
   * When the journal got a key that the caller gave, whose first use may be earlier: the key is at least that old. Absent for a
   * key that the client made.
   */
  readonly givenAt?: number | undefined;
}

/** What a journal says of an operation: resumed means that it had the entry already. */
export interface Begun {
  readonly entry: Entry;
  readonly resumed: boolean;
}

/**
 * Keeps the keys of named operations from before their first request until the caller is done with the answer. FileJournal
 * survives the process; one in the caller's database is best, in the transaction that decides on the operation.
 */
export interface Journal {
  /**
   * Returns the operation's entry: the one that is there already (resumed), or else the fresh one, kept durably before it
   * returns. Of several callers at once, in several processes too, all get the same. Rejecting means that nothing is sent: with
   * the JournalError `journal_full` that the operation has no entry and there is no room for one, so look for the entry once more
   * when there is none: another caller may have taken the last place for it. Any other error proves nothing about earlier
   * calls. Where the signal is aborted, it only looks, if it can: it returns the entry that is there, so that the
   * caller learns the key, else it rejects with the JournalError `journal_no_entry`, and makes none. Nothing is sent then, and an
   * entry would say that something may have been.
   */
  begin(operation: string, fresh: Entry, signal?: AbortSignal): Promise<Begun>;
  /**
   * Says whether the operation's entry still has the key, and no `begin` has returned it as resumed. The caller that made the
   * entry asks before it takes an answer to say that nothing happened: a second caller may have sent the key, too. Rejecting
   * counts as a no.
   */
  alone(operation: string, key: string): Promise<boolean>;
  /**
   * Removes the operation's entry if it has the key, durably. One that is not there is no error, nor is one with another key: that is
   * the next operation of the same name, which another caller has begun, and it stays.
   */
  done(operation: string, key: string): Promise<void>;
}

/** How many operations a journal keeps unless told otherwise. It never forgets one by itself. */
export const entriesMaxDefault = 4096;

/** Refuses a bound that is none. */
export function checkEntriesMax(entriesMax: number): void {
  if (!Number.isInteger(entriesMax) || entriesMax < 1) throw new ConfigError(`entriesMax = ${entriesMax}: must be a positive integer`);
}

/** The error of a journal that has no room. */
export function full(entriesMax: number): JournalError {
  return new JournalError("journal_full", `it keeps ${entriesMax} operations already`);
}

/** The error of a journal that was asked with a signal that is aborted, and has no entry. */
export function none(): JournalError {
  return new JournalError("journal_no_entry", "it has no entry for the operation, and made none for a signal that is aborted");
}

/** A journal for the life of the process, or of the page. */
export class MemoryJournal implements Journal {
  readonly #entries = new Map<string, { readonly entry: Entry; shared: boolean }>();
  readonly #entriesMax: number;

  constructor(entriesMax = entriesMaxDefault) {
    checkEntriesMax(entriesMax);
    this.#entriesMax = entriesMax;
  }

  async begin(operation: string, fresh: Entry, signal?: AbortSignal): Promise<Begun> {
    const kept = this.#entries.get(operation);
    if (kept) {
      kept.shared = true;
      return { entry: kept.entry, resumed: true };
    }
    if (signal?.aborted) throw none();
    if (this.#entries.size >= this.#entriesMax) throw full(this.#entriesMax);
    this.#entries.set(operation, { entry: fresh, shared: false });
    return { entry: fresh, resumed: false };
  }

  async alone(operation: string, key: string): Promise<boolean> {
    const kept = this.#entries.get(operation);
    return kept?.entry.key === key && !kept.shared;
  }

  async done(operation: string, key: string): Promise<void> {
    if (this.#entries.get(operation)?.entry.key === key) this.#entries.delete(operation);
  }
}
