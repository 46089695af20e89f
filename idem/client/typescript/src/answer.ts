import { AnswerTooLongError, plainCode } from "./errors.ts";

/** An answer that was read to its end. */
export interface Answer {
  readonly status: number;
  readonly statusText: string;
  readonly headers: Headers;
  readonly body: Uint8Array<ArrayBuffer>;
  /** The code of a problem document, else "". */
  readonly code: string;
}

/** Reads an answer to its end; one that is torn is rejected as the lost answer that it is. */
export async function read(response: Response, bytesMax: number): Promise<Answer> {
  const body = await readBody(response, bytesMax);
  let code = "";
  if (/^application\/problem\+json *([;,]|$)/i.test(response.headers.get("Content-Type") ?? "")) {
    try {
      code = plainCode((JSON.parse(new TextDecoder().decode(body)) as { code?: unknown } | null)?.code);
    } catch {
      code = ""; // whatever it is, it is no problem document
    }
  }
  return { status: response.status, statusText: response.statusText, headers: response.headers, body, code };
}

async function readBody(response: Response, bytesMax: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = response.body?.getReader();
  for (let next = await reader?.read(); next !== undefined && !next.done; next = await reader?.read()) {
    size += next.value.byteLength;
    if (size > bytesMax) {
      await reader?.cancel();
      throw new AnswerTooLongError(bytesMax);
    }
    chunks.push(next.value);
  }
  const body = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    body.set(chunk, at);
    at += chunk.byteLength;
  }
  return body;
}

const bodyless = [204, 205, 304];

/** Whether a response can be made with the status. */
export function isStatus(status: unknown): status is number {
  return typeof status === "number" && Number.isInteger(status) && status >= 200 && status <= 599;
}

/** Makes a response of an answer, for the caller. It leaves out a reason phrase that no response can be made with. */
export function respond(a: Omit<Answer, "code">): Response {
  const statusText = /^[\t\x20-\x7e\x80-\xff]*$/.test(a.statusText) ? a.statusText : "";
  return new Response(bodyless.includes(a.status) ? null : a.body, { status: a.status, statusText, headers: a.headers });
}

/**
 * What an answer means for the operation. "stored" is an answer that is final: asking again gets the same. "refused" is 401 or 403: they come before the key is looked at, or from a handler
 * whose answer is not stored. "unproven" is an answer that nothing marks as one about each attempt with the key, and
 * "unprotected" one that says that the key protects nothing there.
 */
export type Verdict = "answer" | "stored" | "again" | "mismatch" | "unknown" | "expired" | "refused" | "unproven" | "unprotected";

/**
 * The statuses after which the same key is safe and may help: those of RFC 9110, and those by which content delivery networks
 * say that they had no answer of the server (520 to 527, 529, 530, 598, 599), which may have executed the request.
 */
export const retried = [408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 525, 526, 527, 529, 530, 598, 599];

/** What a header says, on all of its lines, which are one here. Servers behind one another may each have told. */
export function values(headers: Headers, name: string): readonly string[] {
  return (headers.get(name) ?? "").split(",").map((value) => value.trim()).filter((value) => value !== "");
}

/** Whether an answer's head says that the key protects nothing there: each attempt that arrives is executed. */
export function protectsNothing(headers: Headers): boolean {
  return values(headers, "Idempotency-Status").some((said) => ["unprotected", "ignored"].includes(said));
}

/** Whether an answer's head marks it as the stored one. Where a server behind the server says otherwise, "replayed" says nothing. */
function isStored(headers: Headers): boolean {
  const said = values(headers, "Idempotency-Status");
  const replayed = said.includes("replayed") && !said.includes("unknown") && !protectsNothing(headers);
  return replayed || values(headers, "Idempotent-Replayed").includes("true") || values(headers, "Idempotency-Expires").length > 0;
}

/** The codes that say, by themselves, what became of the request: asking again gets the same. */
const decided = ["idempotency_response_not_kept", "idempotency_response_erased"];

/**
 * Reads docs/semantics.md "On the wire" from the client's side. An answer from 300 on that is not stored decides nothing about an
 * attempt before: that may run still, and the server may have no record and no lease that keeps it from its commit.
 */
export function judge({ status, headers, code }: Pick<Answer, "status" | "headers" | "code">): Verdict {
  const said = values(headers, "Idempotency-Status"); // what the code says, also where the body was replaced
  const unknown = said.includes("unknown");
  if (isStored(headers)) {
    return "stored"; // whatever it says
  }
  if (protectsNothing(headers)) {
    return status >= 300 ? "unprotected" : "answer"; // an attempt before was executed beside this one, if at all; so would be another one
  }
  if (decided.includes(code) && !unknown) {
    return "stored"; // as far as it was kept
  }
  if (code === "idempotency_response_too_large" && !unknown) {
    return "unproven"; // asking again gets the same, but it is not stored
  }
  if (retried.includes(status)) {
    return "again";
  }
  if (status === 409) {
    if (code === "idempotency_key_in_progress" || code === "idempotency_key_in_use" || said.includes("in_progress")) return "again";
    if (code === "idempotency_outcome_unknown") return "unknown";
  }
  if (unknown && status >= 300) return "unknown";
  const mismatch = code === "idempotency_key_reused_with_different_payload" || code === "idempotency_error" || said.includes("mismatch");
  if ((status === 422 || status === 400) && mismatch) return "mismatch";
  if ((status === 410 || status === 412) && code === "idempotency_key_expired") return "expired";
  if (status === 401 || status === 403) return "refused";
  return status >= 300 ? "unproven" : "answer";
}
