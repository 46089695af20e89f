// Runs requests for a test that is written in another language: one line of JSON in, one line of JSON out, many at once.
// The drivers of the three clients read and write the same; internal/clients says what.

import { createInterface } from "node:readline";

import { Client, GaveUpError } from "@idem-go/client";
import { FileJournal } from "@idem-go/client/file-journal";

createInterface({ input: process.stdin }).on("line", async (line) => {
  const task = JSON.parse(line);
  console.log(JSON.stringify({ id: task.id, ...(await run(task)) }));
});

async function run(task) {
  const { options, pauses, abort } = configure(task);
  const told = { pauses_ms: pauses };
  try {
    if (task.journal) options.journal = await FileJournal.open(task.journal);
    const client = new Client(options);
    const send = { method: task.method, headers: task.headers, signal: abort.signal };
    for (const name of ["key", "operation"]) if (task[name] !== undefined) send[name] = task[name];
    if (task.body) send.body = task.body;
    if (task.abort_on) fetch(task.abort_on).finally(() => abort.abort(new Error("canceled")));
    const first = await client.fetch(task.url, send);
    const answer = task.await ? await client.await(first) : first;
    if (task.done) await client.done(task.operation, client.keyOf(answer));
    const headers = Object.fromEntries(answer.headers);
    return { ...told, key: client.keyOf(answer), answer: { first: first.status, status: answer.status, headers, body: await answer.text() } };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return { ...told, key: error.key, error: describe(error), told: `${error.message} ${JSON.stringify(error)}` };
  }
}

function describe(error) {
  const told = { code: error.code ?? error.name, unknown: error.unknown === true };
  if (error.status !== undefined) told.status = error.status;
  if (error.problemCode) told.problem_code = error.problemCode;
  if (error.retryAfterMs) told.retry_after_ms = error.retryAfterMs;
  if (error instanceof GaveUpError) Object.assign(told, { reason: error.reason, attempts: error.attempts });
  return told;
}

/** The client's options; with a clock of the task's own, time passes by the client's pauses only. */
function configure(task) {
  const camel = (name) => (name === "base_url" ? "baseURL" : name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()));
  const options = Object.fromEntries(Object.entries(task.options ?? {}).map(([name, value]) => [camel(name), value]));
  const pauses = [];
  const abort = new AbortController();
  if (task.clock_ms) {
    let now = task.clock_ms;
    options.now = options.monotonic = () => now;
    options.pause = async (ms, signal) => {
      pauses.push(ms);
      now += ms;
      if (pauses.length === task.abort_in_pause) abort.abort(new Error("canceled"));
      signal?.throwIfAborted();
    };
  }
  return { options, pauses, abort };
}
