/** The code of a problem (RFC 9457) where it looks like one; errors hold nothing else of an answer's body. */
export function plainCode(code: unknown): string {
  return typeof code === "string" && /^[a-z0-9_.]{1,64}$/.test(code) ? code : "";
}

/** What every end without an answer says. Neither its message nor what inspecting it prints has the key in it. */
export abstract class IdempotencyError extends Error {
  readonly #key: string;
  /**
   * Whether the operation may have happened or may yet happen. Asking again with the key is then safe, and the only safe
   * thing to do.
   */
  abstract readonly unknown: boolean;

  constructor(key: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.#key = key;
  }

  /** The key that the request was, or would have been, sent with. */
  get key(): string {
    return this.#key;
  }
}

/** The key belongs to another request: 422, or 400 by the server's policy. Nothing was executed now. */
export class MismatchError extends IdempotencyError {
  readonly unknown = false;
  readonly status: number;
  readonly code: string;

  constructor(key: string, status: number, code: string) {
    super(key, `the key was used before with another request (${status} ${code})`);
    this.status = status;
    this.code = code;
  }
}

/** The server does not know whether the operation happened, and is finding out. It never executes it again by this key. */
export class OutcomeUnknownError extends IdempotencyError {
  readonly unknown = true;
  /** When to ask again; 0 where the server names no time. */
  readonly retryAfterMs: number;

  constructor(key: string, retryAfterMs: number) {
    super(key, `the server does not know the outcome yet; ask again after ${retryAfterMs} ms`);
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * The server no longer has, or may no longer have, what became of the key: 410 or 412, a status that is gone, or a journalled
 * key that is too old and was not sent. Only the resource itself tells what happened; the same key might execute anew.
 */
export class ExpiredError extends IdempotencyError {
  readonly unknown = false;
  /** The server's; 0 where the key was not sent. */
  readonly status: number;

  constructor(key: string, status: number) {
    super(key, status === 0 ? "the key is too old: its record may be gone" : `the record of the key is gone (${status})`);
    this.status = status;
  }
}

/** Why the client stopped asking. */
export type Reason = "canceled" | "attempts" | "elapsed" | "retry_after" | "permanent" | "refused";

/** What the last attempt came to. */
export interface Last {
  /** 0 where there was no answer. */
  readonly status: number;
  readonly code: string;
  readonly retryAfterMs: number;
  readonly cause?: unknown;
}

/** The client stopped asking before there was an answer. Ask again with the error's key. */
export class GaveUpError extends IdempotencyError {
  readonly unknown = true;
  readonly reason: Reason;
  readonly attempts: number;
  readonly status: number;
  readonly code: string;
  readonly retryAfterMs: number;

  constructor(key: string, reason: Reason, attempts: number, last: Last) {
    super(key, `outcome unknown after ${attempts} attempts: ${reason}${last.status === 0 ? "" : `; last answer ${last.status} ${last.code}`}`, { cause: last.cause });
    this.reason = reason;
    this.attempts = attempts;
    this.status = last.status;
    this.code = last.code;
    this.retryAfterMs = last.retryAfterMs;
  }
}

/** The request was not sent because of its key, which the error does not name. */
export class KeyError extends Error {
  constructor(rule: string, options?: ErrorOptions) {
    super(`not sent: ${rule}`, options);
    this.name = "KeyError";
  }
}
