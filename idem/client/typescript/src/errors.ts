/** What an error is, for code to branch on. The Python client has the same codes. */
export type ErrorCode =
  | "key_mismatch" | "outcome_unknown" | "key_expired" | "gave_up"
  | "key_refused" | "config_invalid" | "response_refused" | "answer_too_long" | "journal_full" | "journal_no_entry" | "journal_unreadable";

/** The code of a problem (RFC 9457) where it looks like one; errors hold nothing else of an answer's body. */
export function plainCode(code: unknown): string {
  return typeof code === "string" && /^[a-z0-9_.]{1,64}$/.test(code) ? code : "";
}

/** What every end without an answer says. Neither its message nor what inspecting it prints has the key in it. */
export abstract class IdempotencyError extends Error {
  readonly #key: string;
  abstract readonly code: ErrorCode;
  /**
   * Whether the operation may have happened or may yet happen: no new key may be used then. Asking again with the key is safe,
   * and the only safe thing to do, but not after an ExpiredError, nor after a GaveUpError whose reason is "unprotected": look at
   * the resource then.
   */
  abstract readonly unknown: boolean;

  constructor(key: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.#key = key;
  }

  /** The key that the request was, or would have been, sent with. */
  get key(): string {
    return this.#key;
  }
}

/**
 * The key belongs to another request: 422, or 400 by the server's policy. Nothing was executed now; where `unknown` is true an
 * earlier attempt with the key may have been.
 */
export class MismatchError extends IdempotencyError {
  override readonly name = "MismatchError";
  readonly code = "key_mismatch";
  readonly unknown: boolean;
  readonly status: number;
  /** The code of the server's problem document, "" where it has none. */
  readonly problemCode: string;

  constructor(key: string, status: number, problemCode: string, earlier: boolean) {
    super(key, `the key was used before with another request (${status} ${problemCode})`);
    this.unknown = earlier;
    this.status = status;
    this.problemCode = problemCode;
  }
}

/** The server does not know whether the operation happened, and is finding out. It never executes it again by this key. */
export class OutcomeUnknownError extends IdempotencyError {
  override readonly name = "OutcomeUnknownError";
  readonly code = "outcome_unknown";
  readonly unknown = true;
  /** When to ask again; 0 where the server names no time. */
  readonly retryAfterMs: number;

  constructor(key: string, retryAfterMs: number) {
    super(key, `the server does not know the outcome yet; ask again after ${retryAfterMs} ms`);
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * The server no longer has, or may no longer have, what became of the key: 410 or 412, a status that is gone, or a
 * key that is too old, or of unknown age, and was not sent (again). The operation may have happened, and only the resource itself
 * tells; the same key might execute anew.
 */
export class ExpiredError extends IdempotencyError {
  override readonly name = "ExpiredError";
  readonly code = "key_expired";
  readonly unknown = true;
  /** The server's; 0 where the key was not sent. */
  readonly status: number;

  constructor(key: string, status: number, ahead = false) {
    const old = ahead ? "the key's first use lies ahead: a clock was or is wrong, and its record may be gone" : "the key is too old: its record may be gone";
    super(key, status === 0 ? old : `the record of the key is gone (${status})`);
    this.status = status;
  }
}

/**
 * Why the client stopped asking. "refused" is a 401 or 403 after an attempt that may have happened; "unproven" is another
 * answer then that nothing marks as a stored one, such as the 404 of a route that is gone, the redirect of a login page, or a
 * 409 of the service's own that is not stored. "unprotected" is an answer that says that the key protects nothing there: one from 300
 * on after such an attempt, one that broke off after its head, or a 202 whose end `await` did not see. Each attempt that arrived may
 * have been executed, and another one may be, too, so look at the resource.
 */
export type Reason = "canceled" | "attempts" | "elapsed" | "retry_after" | "permanent" | "refused" | "unproven" | "unprotected";

/** What the last attempt came to. */
export interface Last {
  /** 0 where there was no answer. */
  readonly status: number;
  readonly code: string;
  readonly retryAfterMs: number;
  readonly cause?: unknown;
}

/** The client stopped asking before there was an answer. Ask again with the error's key, unless `reason` is "unprotected". */
export class GaveUpError extends IdempotencyError {
  override readonly name = "GaveUpError";
  readonly code = "gave_up";
  readonly unknown = true;
  readonly reason: Reason;
  readonly attempts: number;
  /** The status of the last answer, 0 where there was none. */
  readonly status: number;
  /** The code of the last answer's problem document, "" where it has none. */
  readonly problemCode: string;
  readonly retryAfterMs: number;

  constructor(key: string, reason: Reason, attempts: number, last: Last) {
    super(key, `outcome unknown after ${attempts} attempts: ${reason}${last.status === 0 ? "" : `; last answer ${last.status} ${last.code}`}`, { cause: last.cause });
    this.reason = reason;
    this.attempts = attempts;
    this.status = last.status;
    this.problemCode = last.code;
    this.retryAfterMs = last.retryAfterMs;
  }
}

/** The request was not sent by this call because of its key, which the error does not name. */
export class KeyError extends Error {
  override readonly name = "KeyError";
  readonly code = "key_refused" satisfies ErrorCode;
  /**
   * Whether an earlier call may have been sent: the request names an operation, and no journal said that it is new; or its key was
   * given, and can be one that was sent. No new key may be used then.
   */
  readonly unknown: boolean;

  constructor(rule: string, unknown = false, options?: ErrorOptions) {
    super(`${unknown ? "not sent by this call, but perhaps by an earlier one" : "not sent"}: ${rule}`, options);
    this.unknown = unknown;
  }
}

/** An option that can't be; the message names it, its value and the rule. */
export class ConfigError extends RangeError {
  override readonly name = "ConfigError";
  readonly code = "config_invalid" satisfies ErrorCode;
}

/**
 * A 202 that the client did not hand over itself: a clone, a wrapped response, or another client's. It does not know which
 * request it answers. Nothing was asked; the operation is as pending as before.
 */
export class ResponseError extends Error {
  override readonly name = "ResponseError";
  readonly code = "response_refused" satisfies ErrorCode;

  constructor() {
    super("the 202 is not a response that this client's fetch returned");
  }
}

/** An answer of more bytes than the client may hold. Asking again would not make it shorter. It is a GaveUpError's cause. */
export class AnswerTooLongError extends Error {
  override readonly name = "AnswerTooLongError";
  readonly code = "answer_too_long" satisfies ErrorCode;

  constructor(bytesMax: number) {
    super(`the answer has more than ${bytesMax} bytes`);
  }
}

/**
 * A journal that keeps as many operations as it may, or a file of it that is not an entry: it is a KeyError's cause. Or a journal
 * that has no entry, and makes none because the signal is aborted.
 */
export class JournalError extends Error {
  override readonly name = "JournalError";
  readonly code: "journal_full" | "journal_no_entry" | "journal_unreadable";

  constructor(code: "journal_full" | "journal_no_entry" | "journal_unreadable", message: string, options?: ErrorOptions) {
    super(`journal: ${message}`, options);
    this.code = code;
  }
}
