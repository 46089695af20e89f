// What typescript_test.go runs: one request as its input says, and one line of JSON about what became of it.

import { text } from "node:stream/consumers";

import { Client, type Options, type Send } from "./client.ts";
import { GaveUpError, IdempotencyError } from "./errors.ts";
import { FileJournal } from "./file-journal.ts";

interface Scenario {
  url: string;
  send: Send;
  options: Partial<Options>;
  /** The directory of the journal, if there is one. */
  journal?: string;
  /** Follow a 202 to its end. */
  await?: boolean;
  /** End the operation when it has its answer. */
  done?: boolean;
  abortAfterMs?: number;
}

const scenario = JSON.parse(await text(process.stdin)) as Scenario;
const started = Date.now();
try {
  const client = new Client({ ...scenario.options, ...(scenario.journal && { journal: await FileJournal.open(scenario.journal) }) });
  const signal = scenario.abortAfterMs === undefined ? undefined : AbortSignal.timeout(scenario.abortAfterMs);
  const first = await client.fetch(scenario.url, { ...scenario.send, ...(signal && { signal }) });
  const answer = scenario.await ? await client.await(first) : first;
  if (scenario.done && scenario.send.operation !== undefined) await client.done(scenario.send.operation);
  tell({ first: first.status, status: answer.status, body: await answer.text(), key: client.keyOf(answer), contentType: answer.headers.get("Content-Type") });
} catch (error) {
  if (!(error instanceof Error)) throw error;
  const ended = error instanceof IdempotencyError ? { key: error.key, unknown: error.unknown } : {};
  const reason = error instanceof GaveUpError ? { reason: error.reason, attempts: error.attempts, status: error.status } : {};
  tell({ error: error.name, told: `${error.message} ${JSON.stringify(error)}`, ...ended, ...reason });
}

function tell(what: object): void {
  console.log(JSON.stringify({ ...what, elapsedMs: Date.now() - started }));
}
