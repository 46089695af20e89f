// A client of an API that honours Idempotency-Key, by the rules of docs/semantics.md and of package idem/client, in
// TypeScript without dependencies: fetch, and nothing else that is not in every runtime. Use it only for such APIs:
// elsewhere a second request may be a second execution.

import { isStatus, judge, protectsNothing, read, respond, retried, type Answer } from "./answer.ts";
import {
  AnswerTooLongError, ConfigError, ExpiredError, GaveUpError, JournalError, KeyError, MismatchError, OutcomeUnknownError, ResponseError, type Last, type Reason,
} from "./errors.ts";
import type { Begun, Entry, Journal } from "./journal.ts";
import { keyLine, mintKey, type Syntax } from "./key.ts";
import { Pace, pause, retryAfter, type Limits } from "./pace.ts";

/** A client's configuration. Times are in milliseconds. */
export interface Options extends Limits {
  /** Where the API begins: the Location of a 202 is a path below it. Default: it is resolved against the request's URL. */
  readonly baseURL?: string;
  /** Keeps the keys of named operations across restarts. Default: there are no named operations. */
  readonly journal?: Journal;
  /** How keys are written. Default "structured". */
  readonly syntax: Syntax;
  /**
   * Sends Idempotency-First-Sent where the client knows that time: for keys that it made, journalled ones too, and for no key
   * that was given. The server then refuses by itself what comes too late, when it has no record of it any more: `fetch` gives no
   * last look at the date once there is a connection, and a machine may be suspended while it connects. A server refuses a time
   * that is more than two minutes ahead of its own. Default false.
   */
  readonly sendFirstSent: boolean;
  /**
   * How long after its first use a key is sent again, by the date; keep it below the server's retention. It is looked at before
   * each attempt. The age of a given key counts from when the journal, or this request, got it, and may be more. Default 23 h.
   */
  readonly keyAgeMaxMs: number;
  /** Bounds one attempt, until its answer is read. Default 35 s, which is longer than API Gateway waits. */
  readonly attemptTimeoutMs: number;
  /** Bounds `await`. Default 5 min. */
  readonly awaitMaxMs: number;
  /** Bounds an answer's body. Default 8 MiB. */
  readonly answerBytesMax: number;
  /** The platform's, unless a test has others. It must not send a request twice by itself, and must follow no redirect that is `manual`. */
  readonly fetch: typeof fetch;
  /** The date, in milliseconds since 1970: for keys, the journal and dates in headers. */
  readonly now: () => number;
  /** Milliseconds that have passed, whatever the date is set to: for elapsedMaxMs and awaitMaxMs. */
  readonly monotonic: () => number;
  readonly random: () => number;
  readonly pause: (ms: number, signal?: AbortSignal) => Promise<void>;
}

const defaults: Options = {
  syntax: "structured", sendFirstSent: false,
  keyAgeMaxMs: 23 * 3600_000, attemptsMax: 8, elapsedMaxMs: 120_000, attemptTimeoutMs: 35_000, backoffBaseMs: 200,
  backoffMaxMs: 20_000, retryAfterMaxMs: 60_000, awaitMaxMs: 300_000, answerBytesMax: 8 << 20,
  fetch: (...request) => fetch(...request), now: Date.now, monotonic: () => performance.now(), random: Math.random, pause,
};

/**
 * A request as fetch takes it, with a body that can be sent twice: no stream, and no form, whose boundary is another each
 * time. Bytes are copied at the call, so that the caller may use their memory again at once. The operation is the caller's own id for it, such as "order-17/charge": the same id has the same key, after a
 * restart too, until `done`. Without it the key is the one given, or a new one. A given key counts as one that was used
 * before, since it may be that of an error: an answer that does not come from behind the key, such as a 401, then ends in a
 * GaveUpError. A redirect of a POST or PATCH is an answer and never followed: another `redirect` than "manual" is a TypeError.
 */
export interface Send extends Omit<RequestInit, "body" | "signal"> {
  readonly body?: string | Uint8Array;
  readonly signal?: AbortSignal;
  readonly key?: string;
  readonly operation?: string;
}

/** What every attempt at an operation has in common. */
interface Operation {
  readonly url: URL;
  readonly init: RequestInit;
  readonly signal: AbortSignal | undefined;
  readonly key: string;
  /** The first time at which the key is known to have been there: it is at least that old. */
  readonly seen: number;
  /** The key was used before, or may have been, perhaps by another process. */
  readonly resumed: boolean;
  /** The operation's name in the journal, if it is there. */
  readonly journalled: string | undefined;
}

const operationBytesMax = 256;
/**
 * How far ahead a key's first use may lie, as on the server: the clocks of two machines differ by less. Further ahead one of the
 * two readings was wrong, and nobody knows how old the key is.
 */
const keyAheadMaxMs = 120_000;

export class Client {
  readonly #options: Options;
  readonly #sent = new WeakMap<Response, Operation>();
  readonly #stored = new WeakSet<Response>();

  /** Throws a ConfigError that names the option, its value and the rule. */
  constructor(options: Partial<Options> = {}) {
    // An option that is undefined is one that is not set: it must not hide a bound's default.
    const set = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    this.#options = { ...defaults, ...set };
    validate(this.#options);
  }

  /**
   * Sends a POST or PATCH until it has an answer, with one key, and anything else as it is. A stored answer is an answer
   * whatever its status, and a redirect is one, too. Rejects with a MismatchError, an OutcomeUnknownError, an ExpiredError
   * or a GaveUpError; with a KeyError, a TypeError or the signal's reason where this call sent nothing. The signal's reason says,
   * and a KeyError that is not `unknown`, that no earlier call was sent either.
   */
  async fetch(url: string | URL, send: Send = {}): Promise<Response> {
    const { key, operation, signal, body, ...init } = send;
    const whole: RequestInit = { ...init, ...(signal && { signal }), ...(body !== undefined && { body: copied(body) }) };
    if (!["POST", "PATCH"].includes((init.method ?? "GET").toUpperCase())) {
      return this.#options.fetch(url, whole);
    }
    const op = await this.#begin(resolved(url), whole, key, operation);
    if (signal?.aborted) {
      if (await this.#unused(op)) throw signal.reason;
      throw new GaveUpError(op.key, "canceled", 0, { status: 0, code: "", retryAfterMs: 0, cause: signal.reason });
    }
    return this.#run(op);
  }

  /**
   * Ends the named operation that has the key, which is `keyOf` its answer, once that is kept where a restart finds it: the same id
   * then begins a new operation. Where another caller has ended the operation, and the same id has begun the next one, that one
   * goes on. Rejects with a KeyError without a name or a key.
   */
  async done(operation: string, key: string | undefined): Promise<void> {
    if (!isName(operation)) throw new KeyError("done needs the operation's name");
    if (typeof key !== "string" || key === "") throw new KeyError("done needs the key of the operation's answer");
    await this.#journal().done(operation, key);
  }

  /** The key that the response's request was sent with. */
  keyOf(response: Response): string | undefined {
    return this.#sent.get(response)?.key;
  }

  /**
   * Whether a response of `fetch` or `await` is the operation's stored, final answer: the same key gets it again. Keep such an
   * answer whatever its status is, then call `done`. It may be a 502 that says that the operation failed, or the 500
   * idempotency_response_not_kept, which says that it was executed. Another response may still be the operation's answer, such
   * as the 201 of an API that marks none; or it may decide nothing, such as the 401 of a token that is over. A 202 is not stored
   * before `await` has followed it. Of a clone of the response it says false.
   */
  stored(response: Response): boolean {
    return this.#stored.has(response);
  }

  #journal(unknown = false): Journal {
    if (!this.#options.journal) throw new KeyError("a named operation needs Options.journal", unknown);
    return this.#options.journal;
  }

  /** Finds or makes the operation's key, and checks all that can be checked before anything is sent. */
  async #begin(url: URL, whole: RequestInit, given: string | undefined, name: string | undefined): Promise<Operation> {
    if (url.protocol !== "http:" && url.protocol !== "https:") throw new TypeError("the URL must be http or https");
    if (whole.redirect !== undefined && whole.redirect !== "manual") {
      throw new TypeError(`redirect = ${whole.redirect}: must be manual for POST and PATCH, because what another place answers says nothing about the operation`);
    }
    const now = this.#options.now();
    // A given key may be older: a time of first use would be a false proof that it is not.
    const fresh: Entry = given === undefined ? { key: mintKey(now), firstSent: now } : { key: given, givenAt: now };
    const named = isName(name);
    keyLine(fresh.key, this.#options.syntax, named); // what can't be sent is not journalled
    const headers = new Headers(whole.headers);
    if (headers.has("Idempotency-Key")) throw new KeyError("the key goes into Send.key, not into a header", named || given !== undefined);
    new Request(url, whole); // throws for what fetch would refuse
    const unnamed = { entry: fresh, resumed: false, journalled: undefined };
    const { entry, resumed, journalled } = name === undefined ? unnamed : await this.#resume(name, fresh, given !== undefined, whole.signal ?? undefined);
    if (given !== undefined && entry.key !== given) throw new KeyError("the journal has another key for the operation", true);
    headers.set("Idempotency-Key", keyLine(entry.key, this.#options.syntax, named));
    if (this.#options.sendFirstSent && entry.firstSent !== undefined && !headers.has("Idempotency-First-Sent")) {
      headers.set("Idempotency-First-Sent", new Date(entry.firstSent).toISOString().replace(/\.\d+Z$/, "Z"));
    }
    return {
      url, init: { ...whole, headers, redirect: "manual" }, signal: whole.signal ?? undefined, key: entry.key,
      seen: entry.firstSent ?? entry.givenAt ?? now, resumed: resumed || given !== undefined, journalled,
    };
  }

  /** Asks the journal for the operation's key. */
  async #resume(name: string, fresh: Entry, given: boolean, signal: AbortSignal | undefined): Promise<Begun & { journalled: string | undefined }> {
    if (!isName(name)) throw new KeyError(`an operation is named by a string of 1 to ${operationBytesMax} bytes`, given);
    const journal = this.#journal(true);
    try {
      return { ...(await journal.begin(name, fresh, signal)), journalled: name };
    } catch (cause) {
      if (signal?.aborted && cause instanceof JournalError && cause.code === "journal_no_entry") {
        return { entry: fresh, resumed: false, journalled: undefined }; // nothing is sent any more, so that nothing need be journalled
      }
      const none = cause instanceof JournalError && cause.code === "journal_full"; // it was read, and has no entry
      throw new KeyError("the journal has no key for the operation", given || !none, { cause });
    }
  }

  /** Asks until there is an answer. */
  async #run(op: Operation): Promise<Response> {
    const pace = new Pace(this.#options, this.#options.monotonic, this.#options.random);
    for (;;) {
      // By the date: a clock that nobody sets may stand still while the machine is suspended, and the server's records grow old.
      const age = this.#options.now() - op.seen;
      if (age > this.#options.keyAgeMaxMs || age < -keyAheadMaxMs) throw new ExpiredError(op.key, 0, age < 0);
      pace.attempts++;
      const { answer, unprotected, last } = await this.#ask(op.url, op.init, op.signal);
      const gaveUp = (reason: Reason, cause?: unknown) =>
        new GaveUpError(op.key, unprotected ? "unprotected" : reason, pace.attempts, cause === undefined ? last : { ...last, cause });
      if (answer) {
        const verdict = judge(answer);
        if (verdict === "answer" || verdict === "stored" || ((verdict === "refused" || verdict === "unproven" || verdict === "unprotected") && (await this.#first(op, pace)))) {
          if (!isStatus(answer.status)) throw gaveUp("permanent", new Error("a browser hides the redirect that came, or the status is none"));
          return this.#handOver(op, answer, verdict === "stored" && answer.status !== 202); // a 202 is not the end, also where it is stored
        }
        if (verdict === "mismatch") throw new MismatchError(op.key, last.status, last.code, !(await this.#first(op, pace)));
        if (verdict === "unknown") throw new OutcomeUnknownError(op.key, last.retryAfterMs);
        if (verdict === "expired") throw new ExpiredError(op.key, last.status);
        if (verdict === "refused" || verdict === "unproven" || verdict === "unprotected") throw gaveUp(verdict);
      } else {
        if (op.signal?.aborted) throw gaveUp("canceled", op.signal.reason);
        if (unprotected) throw gaveUp("unprotected"); // the answer broke off after its head
        if (neverSent(last.cause) && (await this.#first(op, pace))) throw last.cause;
        if (permanent(last.cause)) throw gaveUp("permanent");
      }
      const wait = pace.next(last.retryAfterMs);
      if (typeof wait !== "number") throw gaveUp(wait);
      await this.#options.pause(wait, op.signal).catch((cause: unknown) => Promise.reject(gaveUp("canceled", cause)));
    }
  }

  /** Whether this is the only attempt ever made with the key. */
  async #first(op: Operation, pace: Pace): Promise<boolean> {
    return pace.attempts === 1 && (await this.#unused(op));
  }

  /** Whether nobody else can have sent the key. A second caller of the operation is in the journal before it sends. */
  async #unused(op: Operation): Promise<boolean> {
    if (op.resumed) return false;
    if (op.journalled === undefined) return true;
    try {
      return (await this.#journal().alone(op.journalled, op.key)) === true;
    } catch {
      return false; // also where a journal of the caller's has no such method yet
    }
  }

  /**
   * Asks once and reads the answer, all within attemptTimeoutMs. `unprotected` is what the answer's head says, also where the rest
   * is lost: that the key protects nothing.
   */
  async #ask(url: URL, init: RequestInit, signal: AbortSignal | undefined): Promise<{ answer?: Answer; unprotected: boolean; last: Last }> {
    // AbortSignal.timeout would let a process of Node end while it waits, and AbortSignal.any needs a newer one.
    const bound = new AbortController();
    const timer = setTimeout(() => bound.abort(new Error(`no answer within ${this.#options.attemptTimeoutMs} ms`)), this.#options.attemptTimeoutMs);
    const canceled = () => bound.abort(signal?.reason);
    if (signal?.aborted) canceled();
    signal?.addEventListener("abort", canceled, { once: true });
    let unprotected = false;
    let status = 0;
    try {
      const response = await this.#options.fetch(url, { ...init, signal: bound.signal });
      unprotected = protectsNothing(response.headers);
      status = unprotected ? response.status : 0;
      const answer = await read(response, this.#options.answerBytesMax);
      return { answer, unprotected, last: { status: answer.status, code: answer.code, retryAfterMs: retryAfter(answer.headers, this.#options.now()) } };
    } catch (cause) {
      return { unprotected, last: { status, code: "", retryAfterMs: 0, cause } };
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", canceled);
    }
  }

  #handOver(op: Operation, answer: Omit<Answer, "code">, stored: boolean): Response {
    const response = respond(answer);
    this.#sent.set(response, op);
    if (stored) this.#stored.add(response);
    return response;
  }

  /**
   * Follows the Location of a 202 until the operation is final, and returns the final response as a retry of the request
   * would get it; any other response as it is. It asks with all that the request was sent with but its body: cookies
   * (`credentials`) and a `dispatcher` of Node's, too; and only on the same origin. Rejects
   * with a ResponseError for a 202 that is not the one `fetch` returned, such as a clone; with an OutcomeUnknownError, a GaveUpError, or an ExpiredError where the API says in a problem document of its own that the
   * operation is gone. After all but an ExpiredError, sending the request again with the same key says as much as the Location does.
   * Not so where the 202 said that the key protects nothing: each end but an ExpiredError is then a GaveUpError whose reason is
   * "unprotected", and the request, sent again, would be executed beside the first.
   */
  async await(accepted: Response): Promise<Response> {
    if (accepted.status !== 202) return accepted;
    const op = this.#sent.get(accepted);
    if (!op) throw new ResponseError();
    const pace = new Pace({ ...this.#options, attemptsMax: Infinity, elapsedMaxMs: this.#options.awaitMaxMs }, this.#options.monotonic, this.#options.random);
    let state = "";
    let last: Last = { status: 202, code: "", retryAfterMs: retryAfter(accepted.headers, this.#options.now()) };
    const unprotected = protectsNothing(accepted.headers);
    const gaveUp = (reason: Reason, cause?: unknown) =>
      new GaveUpError(op.key, unprotected ? "unprotected" : reason, pace.attempts, cause === undefined ? last : { ...last, cause });
    const location = this.#location(accepted, op);
    if (!location) throw gaveUp("permanent", new Error("the 202 has no Location on the API's own origin"));
    const { method, body, keepalive, integrity, ...rest } = op.init; // those are the request's own
    const asks: RequestInit = { ...rest, headers: question(op), redirect: "manual" };
    for (;;) {
      const wait = pace.next(last.retryAfterMs);
      if (typeof wait !== "number") throw state === "unknown" && !unprotected ? new OutcomeUnknownError(op.key, last.retryAfterMs) : gaveUp(wait);
      await this.#options.pause(wait, op.signal).catch((cause: unknown) => Promise.reject(gaveUp("canceled", cause)));
      pace.attempts++;
      const asked = await this.#ask(location, asks, op.signal);
      last = asked.last;
      if (op.signal?.aborted) throw gaveUp("canceled", op.signal.reason);
      if (!asked.answer) {
        if (permanent(last.cause)) throw gaveUp("permanent");
        continue;
      }
      if (retried.includes(last.status)) continue;
      // Another 404 may be that of a gateway which does not know the path, while the operation is pending.
      if (["operation_not_found", "idempotency_key_expired"].includes(last.code)) throw new ExpiredError(op.key, last.status);
      const status = last.status === 200 ? parseStatus(asked.answer.body) : undefined;
      if (!status) throw gaveUp("permanent", new Error("the Location answers with something else than an operation's status"));
      if (status.final) return this.#handOver(op, status.final, true);
      state = status.state;
    }
  }

  #location(accepted: Response, op: Operation): URL | undefined {
    const value = accepted.headers.get("Location");
    if (!value) return undefined;
    const below = this.#options.baseURL && /^\/(?!\/)/.test(value) ? this.#options.baseURL + value : value;
    const location = URL.canParse(below, op.url) ? new URL(below, op.url) : undefined;
    return location?.origin === op.url.origin ? location : undefined;
  }
}

const counts = ["attemptsMax", "answerBytesMax"] as const satisfies readonly (keyof Options)[] as readonly string[];
const waits = ["attemptTimeoutMs", "backoffMaxMs", "retryAfterMaxMs"] as const satisfies readonly (keyof Options)[] as readonly string[];
/** A timer that is longer fires at once. */
const waitMaxMs = 2 ** 31 - 1;
const bounds = [
  "attemptsMax", "elapsedMaxMs", "attemptTimeoutMs", "backoffBaseMs", "backoffMaxMs", "retryAfterMaxMs", "awaitMaxMs", "keyAgeMaxMs", "answerBytesMax",
] as const satisfies readonly (keyof Options)[];

function validate(options: Options): void {
  for (const name of bounds) {
    const value: unknown = options[name];
    const positive = typeof value === "number" && Number.isFinite(value) && value > 0;
    if (!positive) throw new ConfigError(`Options.${name} = ${String(value)}: must be a positive number`);
    if (counts.includes(name) && !Number.isInteger(value)) throw new ConfigError(`Options.${name} = ${value}: must be a whole number`);
    if (waits.includes(name) && value > waitMaxMs) throw new ConfigError(`Options.${name} = ${value}: must be at most ${waitMaxMs}, a timer's longest`);
  }
  if (typeof options.sendFirstSent !== "boolean") throw new ConfigError(`Options.sendFirstSent = ${String(options.sendFirstSent)}: must be true or false`);
  const { backoffBaseMs, backoffMaxMs, elapsedMaxMs, attemptTimeoutMs, keyAgeMaxMs, baseURL, syntax } = options;
  if (syntax !== "structured" && syntax !== "opaque") throw new ConfigError(`Options.syntax = ${String(syntax)}: must be structured or opaque`);
  if (backoffMaxMs < backoffBaseMs) throw new ConfigError(`Options.backoffMaxMs = ${backoffMaxMs}: must be at least backoffBaseMs = ${backoffBaseMs}`);
  if (keyAgeMaxMs <= elapsedMaxMs + attemptTimeoutMs) {
    throw new ConfigError(`Options.keyAgeMaxMs = ${keyAgeMaxMs}: must be longer than elapsedMaxMs + attemptTimeoutMs = ${elapsedMaxMs + attemptTimeoutMs}`);
  }
  if (baseURL !== undefined && !isBase(baseURL)) {
    throw new ConfigError(`Options.baseURL = ${String(baseURL)}: must be an absolute URL of http or https, without query and without a slash at its end`);
  }
}

/** A URL as fetch resolves it in a page. A runtime that has no page may refuse to say where it is, and need not be asked for most URLs. */
function resolved(url: string | URL): URL {
  return URL.canParse(url) ? new URL(url) : new URL(url, globalThis.document?.baseURI ?? globalThis.location?.href);
}

/** Whether a path can be put behind the URL. */
function isBase(url: unknown): boolean {
  return typeof url === "string" && URL.canParse(url) && /^https?:\/\/[^/?#\s]+(\/[^?#\s]*[^/?#\s])?$/i.test(url);
}

/** A body as it is at the call. Node has bytes whose own slice is a view, and has what the caller writes over them. */
function copied(body: string | Uint8Array) {
  if (typeof body === "string") return body;
  if (!ArrayBuffer.isView(body)) throw new TypeError("a body must be a string or bytes (Uint8Array)");
  return new Uint8Array(body.buffer, body.byteOffset, body.byteLength).slice();
}

/** Whether a journal may have an operation of that name. What is no string has a text all the same, which others would share. */
function isName(name: unknown): name is string {
  if (typeof name !== "string") return false;
  const bytes = new TextEncoder().encode(name).byteLength;
  return bytes > 0 && bytes <= operationBytesMax;
}

/** The request's headers without those about its body, its key or the form of its answer. */
function question(op: Operation): Headers {
  const headers = new Headers(op.init.headers);
  for (const name of [...headers.keys()]) {
    if (/^(content-|idempotency-|if-|(accept-encoding|expect|prefer|range)$)/.test(name)) headers.delete(name);
  }
  return headers;
}

/** Reads the status of an operation (docs/payments-api.md); without `final` it is not final yet. */
function parseStatus(body: Uint8Array): { state: string; final?: Omit<Answer, "code"> } | undefined {
  try {
    const { state, response } = JSON.parse(new TextDecoder().decode(body)) as {
      state?: unknown;
      response?: { status: number; headers?: Record<string, string>; body: string; body_encoding?: string } | null;
    };
    if (typeof state !== "string" || state === "") return undefined;
    if (!response || (state !== "completed" && state !== "failed")) return { state };
    if (!isStatus(response.status)) return undefined;
    const bytes = response.body_encoding === "base64" ? Uint8Array.from(atob(response.body), (c) => c.charCodeAt(0)) : new TextEncoder().encode(response.body);
    return { state, final: { status: response.status, statusText: "", headers: new Headers(response.headers), body: bytes } };
  } catch {
    return undefined;
  }
}

const certificate = /^(CERT_|ERR_TLS_CERT|DEPTH_ZERO_SELF_SIGNED|SELF_SIGNED|UNABLE_TO_(GET|VERIFY))/;

/** Whether an attempt failed before anything was sent, in a way that another one would, too: the server's certificate. */
function neverSent(cause: unknown): boolean {
  const code = cause instanceof Error && cause.cause instanceof Error ? (cause.cause as Error & { code?: unknown }).code : undefined;
  return typeof code === "string" && certificate.test(code);
}

/** Whether asking again can't help. */
function permanent(cause: unknown): boolean {
  return neverSent(cause) || cause instanceof AnswerTooLongError;
}
