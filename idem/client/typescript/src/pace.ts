import { values } from "./answer.ts";
import type { Reason } from "./errors.ts";

/** When to ask again, and when to stop. Times are in milliseconds. */
export interface Limits {
  /** Bounds how often a request is tried. Default 8. */
  readonly attemptsMax: number;
  /** Bounds the time after which no further attempt begins. Default 2 min. */
  readonly elapsedMaxMs: number;
  /**
   * Bound the pause after the n-th attempt, which is drawn from [0, min(backoffMaxMs, backoffBaseMs·2ⁿ⁻¹)]. Defaults 200 ms
   * and 20 s. A server's Retry-After is honoured exactly instead.
   */
  readonly backoffBaseMs: number;
  readonly backoffMaxMs: number;
  /** The longest Retry-After that is waited for; a longer one ends in a GaveUpError at once. Default 1 min. */
  readonly retryAfterMaxMs: number;
}

/** One operation's attempts. */
export class Pace {
  attempts = 0;
  readonly #limits: Limits;
  readonly #monotonic: () => number;
  readonly #random: () => number;
  readonly #started: number;

  constructor(limits: Limits, monotonic: () => number, random: () => number) {
    this.#limits = limits;
    this.#monotonic = monotonic;
    this.#random = random;
    this.#started = monotonic();
  }

  /** How long to pause before the next attempt, or why there is none: a pause that would end too late is not begun. */
  next(retryAfterMs: number): number | Reason {
    const l = this.#limits;
    if (this.attempts >= l.attemptsMax) return "attempts";
    if (retryAfterMs > l.retryAfterMaxMs) return "retry_after";
    const ceiling = Math.min(l.backoffMaxMs, l.backoffBaseMs * 2 ** Math.max(0, this.attempts - 1));
    const pause = retryAfterMs > 0 ? retryAfterMs : this.#random() * ceiling;
    return this.#monotonic() - this.#started + pause > l.elapsedMaxMs ? "elapsed" : pause;
  }
}

// The three forms of RFC 9110 section 5.6.7; the last two are obsolete, and are to be read all the same.
const httpDate = /^(?:[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT|[A-Z][a-z]+day, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT)$/;
const asctime = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/;

/** What a longer Retry-After is read as. */
const retryAfterMaxMs = 2 ** 31 * 1000;

/**
 * Reads Retry-After, seconds or an HTTP date (RFC 9110 section 10.2.3), in milliseconds from now: 0 where it is absent,
 * malformed or no longer ahead, and the longest one where servers behind one another have each told.
 */
export function retryAfter(headers: Headers, now: number): number {
  const pieces = values(headers, "Retry-After");
  const dates = pieces.slice(1).map((piece, n) => `${pieces[n]}, ${piece}`); // a date has a comma itself
  return Math.max(0, ...[...pieces, ...dates].map((value) => wait(value, now)));
}

/** Reads one value of Retry-After. */
function wait(value: string, now: number): number {
  if (/^\d+$/.test(value)) return Math.min(Number(value) * 1000, retryAfterMaxMs);
  const at = httpDate.test(value) ? Date.parse(value.replaceAll("-", " ")) : asctime.test(value) ? Date.parse(`${value} GMT`) : NaN;
  return Number.isNaN(at) ? 0 : Math.min(Math.max(0, at - now), retryAfterMaxMs);
}

/** Waits, or rejects with the signal's reason. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const aborted = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", aborted);
      resolve();
    }, ms);
    signal?.addEventListener("abort", aborted, { once: true });
  });
}
