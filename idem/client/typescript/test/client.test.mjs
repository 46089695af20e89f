// What the scenarios don't show: the package as Node and a browser load it, cancellation, journals, and what a fetch of the
// caller's own gives. Run in a project that has the packed package installed.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import files, { appendFile, mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire, syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";

import * as everything from "@idem-go/client";
import { AnswerTooLongError, ResponseError, Client, ConfigError, GaveUpError, JournalError, KeyError, MemoryJournal, MismatchError, mintKey } from "@idem-go/client";
import { FileJournal } from "@idem-go/client/file-journal";

const url = "https://api.example/v1/payments";
const post = { method: "POST", body: "{}" };
const silent = { pause: async () => {}, backoffBaseMs: 1 };

/** A fetch that answers with what the list has next, and keeps what it was asked. */
function answering(...answers) {
  const asked = [];
  const fetch = async (to, init) => {
    asked.push({ to: String(to), init, key: new Headers(init.headers).get("Idempotency-Key") });
    const next = answers.shift();
    if (next instanceof Error) throw next;
    return typeof next === "function" ? next(init) : next;
  };
  return { fetch, asked };
}

async function directory(t) {
  const path = await mkdtemp(join(tmpdir(), "journal-"));
  t.after(() => rm(path, { recursive: true }));
  return path;
}

test("nothing but the file journal imports from Node", async () => {
  const dist = fileURLToPath(new URL(".", import.meta.resolve("@idem-go/client")));
  const imports = /from "node:|require\(|\bprocess\.|\bBuffer\b/;
  for (const name of (await readdir(dist)).filter((file) => file.endsWith(".js"))) {
    assert.equal(imports.test(await readFile(join(dist, name), "utf8")), name === "file-journal.js", name);
  }
});

test("a CommonJS module of a newer Node may require it", { skip: !process.features.require_module && "this Node has no require of ES modules" }, () => {
  assert.equal(createRequire(import.meta.url)("@idem-go/client").Client, Client);
});

test("the tarball has what is imported, its types, README and license, and no dependency", async () => {
  const root = fileURLToPath(new URL("..", import.meta.resolve("@idem-go/client")));
  const modules = ["answer", "client", "errors", "file-journal", "index", "journal", "key", "pace"];
  assert.deepEqual((await readdir(root)).sort(), ["LICENSE", "README.md", "dist", "package.json"]);
  assert.deepEqual((await readdir(join(root, "dist"))).sort(), modules.flatMap((name) => [`${name}.d.ts`, `${name}.js`]).sort());
  assert.equal(JSON.parse(await readFile(join(root, "package.json"), "utf8")).dependencies, undefined);
  assert.deepEqual(Object.keys(everything).sort(), [
    "AnswerTooLongError", "Client", "ConfigError", "ExpiredError", "GaveUpError", "IdempotencyError", "JournalError", "KeyError",
    "MemoryJournal", "MismatchError", "OutcomeUnknownError", "ResponseError", "mintKey",
  ]);
});

test("a signal that is aborted before anything is sent is the caller's reason, and nothing is sent", async () => {
  const { fetch, asked } = answering();
  const reason = new Error("changed my mind");
  await assert.rejects(new Client({ fetch }).fetch(url, { ...post, signal: AbortSignal.abort(reason) }), (error) => error === reason);
  assert.equal(asked.length, 0);
});

test("a signal that is aborted before this call sends anything proves nothing about an earlier one", async () => {
  const { fetch, asked } = answering();
  const reason = new Error("changed my mind");
  const journal = new MemoryJournal();
  const signal = AbortSignal.abort(reason);
  const begin = (send) => new Client({ fetch, journal }).fetch(url, { ...post, signal, ...send }).catch((e) => e);
  assert.equal(await begin({ operation: "new" }), reason);
  await journal.begin("sent", { key: "k1", firstSent: Date.now() });
  for (const [key, send] of [["k1", { operation: "sent" }], ["k2", { key: "k2" }]]) {
    const error = await begin(send);
    assert.ok(error instanceof GaveUpError && error.unknown && error.reason === "canceled" && error.attempts === 0 && error.cause === reason, inspect(error));
    assert.equal(error.key, key);
  }
  assert.equal(asked.length, 0);
});

test("a signal that is aborted before anything is sent leaves no entry", async () => {
  const signal = AbortSignal.abort(new Error("changed my mind"));
  const directory = await mkdtemp(join(tmpdir(), "idem-client-"));
  for (const again of [((journal) => async () => journal)(new MemoryJournal(1)), () => FileJournal.open(directory, 1)]) {
    const { fetch, asked } = answering(() => new Response("{}", { status: 403 }));
    const send = async (more) => new Client({ fetch, journal: await again() }).fetch(url, { ...post, operation: "a", ...more });
    await assert.rejects(send({ signal }), (error) => error === signal.reason);
    await assert.rejects(send({ signal, key: "k" }), (error) => error instanceof GaveUpError && error.key === "k" && error.cause === signal.reason);
    await assert.rejects((await again()).begin("a", { key: "k" }, signal), { code: "journal_no_entry" });
    assert.equal(asked.length, 0);
    await (await again()).begin("b", { key: "k" }); // there is room for one
    assert.equal((await (await again()).begin("b", { key: "l" }, signal)).resumed, true);
    await (await again()).done("b", "k");
    assert.equal((await send({})).status, 403);
  }
});

test("what this call did not send because of its key, an earlier one may have", async () => {
  const { fetch, asked } = answering();
  const broken = Object.assign(new MemoryJournal(), { begin: async () => Promise.reject(new JournalError("journal_unreadable", "torn")) });
  const full = new MemoryJournal(1);
  await full.begin("a", { key: "k1", firstSent: Date.now() });
  for (const [unknown, journal, send] of [
    [true, broken, { operation: "b" }],
    [true, undefined, { operation: "b" }],
    [false, full, { operation: "b" }],
    [true, full, { operation: "b", key: "k2" }],
    [true, full, { operation: "a", key: "k2" }],
    [false, full, { operation: "" }],
    [true, full, { operation: "", key: "k2" }],
    [false, full, { key: "schlüssel" }],
    [true, full, { operation: "a", key: "schlüssel" }],
  ]) {
    const error = await new Client({ fetch, journal }).fetch(url, { ...post, ...send }).catch((e) => e);
    assert.ok(error instanceof KeyError && error.unknown === unknown, inspect([send, error]));
    assert.equal(/earlier/.test(error.message), unknown);
  }
  assert.equal(asked.length, 0);
});

test("a key and a name that are no strings are refused: they would be those of every call", async (t) => {
  const { fetch, asked } = answering();
  for (const no of [null, 17, {}, ["k"], new String("k"), false]) {
    for (const syntax of ["structured", "opaque"]) {
      const error = await new Client({ fetch, syntax }).fetch(url, { ...post, key: no }).catch((e) => e);
      assert.ok(error instanceof KeyError && error.code === "key_refused" && !error.unknown, inspect([syntax, no, error]));
    }
    for (const journal of [new MemoryJournal(), await FileJournal.open(await directory(t))]) {
      const client = new Client({ fetch, journal });
      for (const [unknown, send] of [[false, { operation: no }], [true, { operation: no, key: "k" }], [true, { operation: "a", key: no }]]) {
        const error = await client.fetch(url, { ...post, ...send }).catch((e) => e);
        assert.ok(error instanceof KeyError && error.unknown === unknown, inspect([send, error]));
      }
      await assert.rejects(client.done(no, "k"), KeyError);
      await assert.rejects(client.done("a", no), KeyError);
    }
    const theirs = Object.assign(new MemoryJournal(), { begin: async () => ({ entry: { key: no }, resumed: true }) });
    const error = await new Client({ fetch, journal: theirs, syntax: "opaque" }).fetch(url, { ...post, operation: "a" }).catch((e) => e);
    assert.ok(error instanceof KeyError && error.unknown, inspect([no, error]));
  }
  assert.equal(asked.length, 0);
});

test("a signal that is aborted meanwhile leaves the outcome unknown, with the key to ask again by", async () => {
  const abort = new AbortController();
  const hang = (init) =>
    new Promise((_, reject) => {
      init.signal.addEventListener("abort", () => reject(init.signal.reason));
      abort.abort(new Error("closed the page"));
    });
  const { fetch, asked } = answering(hang);
  const error = await new Client({ fetch }).fetch(url, { ...post, signal: abort.signal }).catch((e) => e);
  assert.ok(error instanceof GaveUpError && error.unknown && error.reason === "canceled" && error.cause.message === "closed the page");
  assert.equal(asked[0].key, `"${error.key}"`);
});

test("an attempt is bounded while its answer is read, too", async () => {
  const never = () => new Response(new ReadableStream({ start: (stream) => stream.enqueue(new Uint8Array(3)) }));
  const dripping = (init) => {
    const response = never();
    const reader = response.body.getReader();
    init.signal.addEventListener("abort", () => reader.cancel());
    return new Response(new ReadableStream({ pull: (to) => reader.read().then(({ value, done }) => (done ? to.error(init.signal.reason) : to.enqueue(value))) }));
  };
  const { fetch, asked } = answering(dripping, new Response("paid"));
  const answer = await new Client({ fetch, ...silent, attemptTimeoutMs: 300 }).fetch(url, post);
  assert.equal(await answer.text(), "paid");
  assert.equal(asked[0].key, asked[1].key);
});

test("an answer of too many bytes is not asked for again, and its outcome is unknown", async () => {
  const { fetch, asked } = answering(new Response("x".repeat(11)));
  const error = await new Client({ fetch, answerBytesMax: 10 }).fetch(url, post).catch((e) => e);
  assert.ok(error instanceof GaveUpError && error.reason === "permanent" && error.cause instanceof AnswerTooLongError);
  assert.equal(asked.length, 1);
});

test("a torn answer whose key protects nothing is not asked for again", async () => {
  const whenRead = (pull) => new ReadableStream({ pull }, { highWaterMark: 0 });
  // the last one is of two servers behind one another
  for (const said of ["unprotected", "ignored", "executed, ignored"]) {
    const abort = new AbortController();
    for (const body of [
      whenRead((stream) => stream.error(new TypeError("terminated"))),
      "x".repeat(11), // more than the client may hold
      whenRead((stream) => {
        abort.abort(new Error("closed the page"));
        stream.error(abort.signal.reason);
      }),
    ]) {
      const { fetch, asked } = answering(new Response(body, { status: 201, headers: { "Idempotency-Status": said } }), new Response("paid twice"));
      const client = new Client({ fetch, ...silent, answerBytesMax: 10 });
      const error = await client.fetch(url, { ...post, signal: abort.signal }).catch((e) => e);
      assert.ok(error instanceof GaveUpError && error.reason === "unprotected" && error.status === 201 && error.cause instanceof Error, inspect(error));
      assert.equal(asked.length, 1);
    }
  }
});

test("a 202 whose key protects nothing is not to be sent again, whatever ended the wait for its end", async () => {
  const pending = () => new Response('{"state":"pending"}');
  for (const [headers, rest] of [
    [{}, []],
    [{ Location: "/v1/operations/op_1" }, [new Response(null, { status: 401 })]],
    [{ Location: "/v1/operations/op_1", "Retry-After": "1" }, [pending(), new Response('{"state":"unknown"}', { headers: { "Retry-After": "20" } })]],
  ]) {
    for (const said of ["unprotected", "ignored"]) {
      const accepted = new Response("{}", { status: 202, headers: { ...headers, "Idempotency-Status": said } });
      const client = new Client({ ...silent, ...answering(accepted, ...rest.map((answer) => answer.clone())), awaitMaxMs: 10_000 });
      const error = await client.await(await client.fetch(url, post)).catch((e) => e);
      assert.ok(error instanceof GaveUpError && error.reason === "unprotected", inspect(error));
    }
  }
});

test("no redirect of a POST is followed, whatever the caller asks for", async () => {
  for (const redirect of [undefined, "manual"]) {
    const { fetch, asked } = answering(new Response("paid"));
    await new Client({ fetch }).fetch(url, { ...post, redirect });
    assert.equal(asked[0].init.redirect, "manual");
  }
  const { fetch, asked } = answering();
  const journal = new MemoryJournal();
  for (const redirect of ["follow", "error"]) {
    await assert.rejects(new Client({ fetch, journal }).fetch(url, { ...post, redirect, operation: "a" }), { name: "TypeError", message: /must be manual/ });
  }
  assert.deepEqual([asked.length, (await journal.begin("a", { key: "k" })).resumed], [0, false]);
});

test("a login page that a real server redirects to after a lost attempt is no answer", async (t) => {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    if (asked.length === 1) request.socket.destroy();
    else if (request.url === "/login") response.end("who are you?");
    else response.writeHead(302, { Location: "/login" }).end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const error = await new Client(silent).fetch(`http://127.0.0.1:${server.address().port}/v1/payments`, { ...post, redirect: "manual" }).catch((e) => e);
  assert.ok(error instanceof GaveUpError && error.reason === "unproven" && error.status === 302, inspect(error));
  assert.deepEqual(asked, ["POST /v1/payments", "POST /v1/payments"]);
});

test("an answer of a real server whose reason phrase is not ASCII is an answer", async (t) => {
  const server = createServer((request, response) => response.writeHead(201, "Cr\u00e9\u00e9").end("paid"));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const answer = await new Client(silent).fetch(`http://127.0.0.1:${server.address().port}/v1/payments`, post);
  assert.deepEqual([answer.status, await answer.text()], [201, "paid"]);
});

test("a redirect that a browser hides leaves the outcome unknown", async () => {
  const hidden = Object.defineProperties(new Response(null), { status: { value: 0 }, type: { value: "opaqueredirect" } });
  const error = await new Client(answering(hidden)).fetch(url, post).catch((e) => e);
  assert.ok(error instanceof GaveUpError && error.unknown && error.reason === "permanent", inspect(error));
});

test("a server's certificate that is refused is the platform's error: nothing was sent", async () => {
  const refused = new TypeError("fetch failed", { cause: Object.assign(new Error("expired"), { code: "CERT_HAS_EXPIRED" }) });
  const { fetch, asked } = answering(refused);
  await assert.rejects(new Client({ fetch }).fetch(url, post), (error) => error === refused);
  assert.equal(asked.length, 1);
});

test("a real server's certificate that nobody trusts is so, too", async () => {
  const untrusted = await readFile(new URL("untrusted.url", import.meta.url), "utf8"); // written by the test in Go that runs this one
  await assert.rejects(new Client().fetch(untrusted, post), (error) => error instanceof TypeError && error.message === "fetch failed");
});

test("an option that is undefined is not set: its bound stays", async () => {
  const names = ["attemptsMax", "elapsedMaxMs", "attemptTimeoutMs", "backoffBaseMs", "backoffMaxMs", "retryAfterMaxMs", "awaitMaxMs", "keyAgeMaxMs", "answerBytesMax"];
  const unset = Object.fromEntries(names.map((name) => [name, undefined]));
  const { fetch, asked } = answering(...Array.from({ length: 20 }, () => new Response(null, { status: 503 })));
  const error = await new Client({ ...unset, fetch, pause: async () => {} }).fetch(url, post).catch((e) => e);
  assert.ok(error instanceof GaveUpError && error.reason === "attempts", inspect(error));
  assert.equal(asked.length, 8);
  const journal = new MemoryJournal();
  await journal.begin("a", { key: "k", firstSent: Date.now() - 90 * 24 * 3600_000 });
  await assert.rejects(new Client({ ...unset, fetch, journal }).fetch(url, { ...post, operation: "a" }), { code: "key_expired" });
  assert.equal(asked.length, 8);
});

test("a bound that is no positive number is refused", () => {
  for (const name of ["attemptsMax", "elapsedMaxMs", "attemptTimeoutMs", "backoffBaseMs", "backoffMaxMs", "retryAfterMaxMs", "awaitMaxMs", "keyAgeMaxMs", "answerBytesMax"]) {
    for (const value of [null, "8", NaN, Infinity, 0, -1, true, {}]) {
      assert.throws(() => new Client({ [name]: value }), (error) => error instanceof ConfigError && error.code === "config_invalid" && error.message.includes(name), `${name} = ${value}`);
    }
  }
  const invalid = [{ attemptsMax: 1.5 }, { answerBytesMax: 0.5 }, { attemptTimeoutMs: 2 ** 31 }, { backoffMaxMs: 2 ** 31 }, { retryAfterMaxMs: 2 ** 31 }, { sendFirstSent: "no" }];
  for (const options of invalid) assert.throws(() => new Client({ keyAgeMaxMs: 2 ** 33, ...options }), ConfigError, inspect(options));
});

test("a baseURL that a Location can't be a path below is refused", () => {
  for (const baseURL of ["", "/v1", "api.example", "ftp://api.example", "https://", "https://api.example/", "https://api.example/prod?stage=a", "https://api.example/prod?", "https://api.example/prod#a", "https://api.example/prod#", "https://api.example/prod ", " https://api.example", null, 17, new URL("https://api.example/prod")]) {
    assert.throws(() => new Client({ baseURL }), (error) => error instanceof ConfigError && error.message.includes("baseURL"), String(baseURL));
  }
  for (const baseURL of ["https://api.example", "http://127.0.0.1:8080/prod", "https://api.example/restapis/a/b", "HTTPS://api.example"]) new Client({ baseURL });
});

test("a URL of a page's own site is resolved as fetch does it", async (t) => {
  const sent = async (place, name, value) => {
    Object.defineProperty(globalThis, name, { value, configurable: true });
    t.after(() => delete globalThis[name]);
    const { fetch, asked } = answering(new Response("paid"));
    await new Client({ fetch }).fetch(place, post);
    delete globalThis[name];
    return asked[0].to;
  };
  assert.equal(await sent("/v1/payments", "location", { href: "https://shop.example/cart?id=1" }), "https://shop.example/v1/payments");
  assert.equal(await sent("payments", "location", { href: "https://shop.example/v1/cart" }), "https://shop.example/v1/payments");
  assert.equal(await sent("payments", "document", { baseURI: "https://shop.example/base/" }), "https://shop.example/base/payments");
  const untold = Object.defineProperty({}, "href", { get: () => assert.fail("a whole URL needs no page") });
  assert.equal(await sent(url, "location", untold), url);
  const { fetch, asked } = answering();
  await assert.rejects(new Client({ fetch }).fetch("/v1/payments", post), TypeError); // where there is no page
  assert.equal(asked.length, 0);
});

test("await refuses a 202 that it does not know, and does not take it for final", async () => {
  const accepted = () => new Response("{}", { status: 202, headers: { Location: "/v1/operations/op_1" } });
  const client = new Client(answering(accepted()));
  const answer = await client.fetch(url, post);
  for (const other of [answer.clone(), accepted()]) {
    await assert.rejects(client.await(other), (error) => error instanceof ResponseError && error.code === "response_refused");
  }
  const declined = new Response(null, { status: 402 });
  assert.equal(await client.await(declined), declined);
});

test("a stored answer is told from one that decides nothing", async () => {
  const problem = (status, code, headers = {}) => new Response(JSON.stringify({ code }), { status, headers: { "Content-Type": "application/problem+json", ...headers } });
  for (const [stored, answer] of [
    [true, problem(502, "provider_unavailable", { "Idempotent-Replayed": "true" })],
    [true, problem(408, "operation_abandoned", { "Idempotency-Expires": "2030-01-01T00:00:00Z" })],
    [true, problem(500, "idempotency_response_not_kept")],
    [true, problem(410, "idempotency_response_erased")],
    [false, problem(500, "idempotency_response_not_kept", { "Idempotency-Status": "unprotected" })],
    [false, new Response("{}", { status: 202, headers: { "Idempotent-Replayed": "true" } })],
    [false, new Response(null, { status: 201 })],
    [false, new Response(null, { status: 401 })],
  ]) {
    const client = new Client({ ...silent, ...answering(answer) });
    assert.equal(client.stored(await client.fetch(url, post)), stored, `${answer.status}`);
  }
});

test("await asks with what the request was sent with, but for its body and its key", async () => {
  const accepted = new Response("{}", { status: 202, headers: { Location: "/v1/operations/op_1" } });
  const final = new Response('{"state":"completed","response":{"status":201,"headers":{},"body":"paid"}}');
  const { fetch, asked } = answering(accepted, final);
  const client = new Client({ ...silent, fetch });
  const dispatcher = {}; // undici's: a client certificate, a proxy
  const sent = { ...post, credentials: "include", mode: "cors", dispatcher, keepalive: true, integrity: "sha256-x", redirect: "manual" };
  const answer = await client.await(await client.fetch(url, { ...sent, headers: { Authorization: "Bearer a", "Content-Type": "application/json" } }));
  assert.equal(await answer.text(), "paid");
  assert.ok(client.stored(answer));
  const { headers, signal, ...init } = asked[1].init;
  assert.ok(signal);
  assert.deepEqual(init, { credentials: "include", mode: "cors", dispatcher, redirect: "manual" });
  assert.deepEqual([...headers], [["authorization", "Bearer a"]]);
});

test("neither an error's text nor what inspecting it prints has the key", async () => {
  const problem = { status: 422, headers: { "Content-Type": "application/problem+json" } };
  const mismatch = new Response('{"code":"idempotency_key_reused_with_different_payload","title":"secret-title"}', problem);
  const error = await new Client(answering(mismatch)).fetch(url, { ...post, key: "secret-key" }).catch((e) => e);
  assert.ok(error instanceof MismatchError && error.key === "secret-key" && error.code === "key_mismatch");
  assert.doesNotMatch(inspect(error, { showHidden: true }) + JSON.stringify(error) + error.stack, /secret/);
});

for (const [kind, bytes] of Object.entries({
  "a Uint8Array": (text) => new TextEncoder().encode(text),
  "a Buffer": (text) => Buffer.from(text),
  "a part of a Buffer": (text) => Buffer.from(`-${text}-`).subarray(1, -1),
  "shared memory": (text) => {
    const shared = new Uint8Array(new SharedArrayBuffer(text.length));
    shared.set(new TextEncoder().encode(text));
    return shared;
  },
})) {
  test(`a body of bytes is the one that was given, also where the caller writes over it: ${kind}`, async () => {
    const body = bytes("one");
    const overwrite = (text) => body.set(new TextEncoder().encode(text));
    const bodies = [];
    const keep = (answer) => async (init) => {
      bodies.push(await new Response(init.body).text());
      overwrite("two");
      return answer;
    };
    const { fetch } = answering(keep(new Response(null, { status: 503 })), keep(new Response("paid")));
    const sent = new Client({ fetch, ...silent }).fetch(url, { method: "POST", body });
    overwrite("new"); // the next order's, before this one has left
    await sent;
    assert.deepEqual(bodies, ["one", "one"]);
  });
}

test("a body that is neither a string nor bytes is refused, and nothing is sent", async () => {
  const { fetch, asked } = answering();
  for (const body of [new FormData(), new URLSearchParams("a=b"), new Blob(["a"]), new ArrayBuffer(1), [1], null]) {
    await assert.rejects(new Client({ fetch }).fetch(url, { method: "POST", body }), { name: "TypeError", message: /must be a string or bytes/ });
  }
  assert.equal(asked.length, 0);
});

test("what fetch would refuse is refused before the journal has it", async () => {
  const journal = new MemoryJournal(1);
  const client = new Client({ ...answering(), journal });
  await assert.rejects(client.fetch(url, { ...post, operation: "a", headers: { X: "line\nline" } }), TypeError);
  await assert.rejects(client.fetch("ftp://api.example", { ...post, operation: "a" }), TypeError);
  await assert.rejects(client.fetch(url, { ...post, operation: "a", headers: { "Idempotency-Key": "k" } }), KeyError);
  assert.equal((await journal.begin("b", { key: "k", firstSent: 0 })).resumed, false);
});

for (const [name, open] of Object.entries({ MemoryJournal: async (_, most) => new MemoryJournal(most), FileJournal: (path, most) => FileJournal.open(path, most) })) {
  test(`${name}: the first entry stays until it is done`, async (t) => {
    const journal = await open(await directory(t));
    const entry = { key: "k1", firstSent: Date.UTC(2026, 10, 21, 12, 0, 0, 7) };
    assert.deepEqual(await journal.begin("a/../b", entry), { entry, resumed: false });
    assert.deepEqual(await journal.begin("a/../b", { key: "k2", firstSent: 1 }), { entry, resumed: true });
    await journal.done("a/../b", "k1");
    await journal.done("a/../b", "k1");
    assert.equal((await journal.begin("a/../b", { key: "k3", firstSent: 1 })).entry.key, "k3");
  });

  test(`${name}: of many callers at once all get the same key`, async (t) => {
    const journal = await open(await directory(t));
    const begun = await Promise.all(Array.from({ length: 20 }, (_, n) => journal.begin("a", { key: `k${n}`, firstSent: n })));
    assert.equal(new Set(begun.map(({ entry }) => entry.key)).size, 1);
    assert.equal(begun.filter(({ resumed }) => !resumed).length, 1);
  });

  test(`${name}: the first caller learns of a second one`, async (t) => {
    const journal = await open(await directory(t));
    const alone = (key) => journal.alone("a", key);
    assert.equal(await alone("k1"), false);
    await journal.begin("a", { key: "k1" });
    assert.deepEqual([await alone("k1"), await alone("k2")], [true, false]);
    for (let n = 0; n < 3; n++) {
      await journal.begin("a", { key: "k2" });
      assert.equal(await alone("k1"), false);
    }
    await journal.done("a", "k1");
    assert.equal(await alone("k1"), false);
    await journal.begin("a", { key: "k3" });
    assert.deepEqual([await alone("k1"), await alone("k3")], [false, true]);
  });

  test(`${name}: a late done leaves the next operation of the name`, async (t) => {
    const journal = await open(await directory(t));
    const begin = async (key) => {
      const { entry, resumed } = await journal.begin("a", { key });
      return [entry.key, resumed];
    };
    assert.deepEqual([await begin("k1"), await begin("another")], [["k1", false], ["k1", true]]);
    await journal.done("a", "k1");
    assert.deepEqual(await begin("k2"), ["k2", false]);
    await journal.done("a", "k1");
    assert.equal(await journal.alone("a", "k2"), true);
    assert.deepEqual(await begin("k3"), ["k2", true]);
    await journal.done("a", "k2");
    assert.deepEqual(await begin("k3"), ["k3", false]);
    await assert.rejects(new Client({ journal }).done("a", undefined), KeyError);
  });

  test(`${name}: a full one refuses the request, which is not sent`, async (t) => {
    const journal = await open(await directory(t), 1);
    await journal.begin("a", { key: "k", firstSent: 1 });
    const { fetch, asked } = answering();
    const error = await new Client({ fetch, journal }).fetch(url, { ...post, operation: "b" }).catch((e) => e);
    assert.ok(error instanceof KeyError && error.cause instanceof JournalError && error.cause.code === "journal_full");
    assert.equal(asked.length, 0);
    await assert.rejects(open(await directory(t), 0), ConfigError);
  });
}

test("a jump of the wall clock neither ends nor prolongs an operation, unless its key is too old then, or of unknown age", async () => {
  const busy = () => new Response(null, { status: 503 });
  const pays = (jump, passes) => {
    let [date, passed] = [Date.UTC(2026, 10, 21), 0];
    const pause = async () => void ((date += jump), (passed += passes));
    const { fetch } = answering(busy(), busy(), new Response("paid"));
    return new Client({ fetch, pause, now: () => date, monotonic: () => passed, elapsedMaxMs: 60_000 }).fetch(url, post);
  };
  assert.equal(await (await pays(3600_000, 1000)).text(), "paid");
  await assert.rejects(pays(-120_000, 61_000), { reason: "elapsed", attempts: 2 });
  // The machine was suspended for as long as the server keeps a key: sent again, it might execute anew.
  await assert.rejects(pays(86400_000, 1000), { code: "key_expired", unknown: true, status: 0, message: /too old/ });
  // The date was wrong when the key was made, or is wrong now.
  await assert.rejects(pays(-120_001, 1000), { code: "key_expired", unknown: true, status: 0, message: /lies ahead/ });
});

test("FileJournal: a relative directory, which is another one elsewhere, is refused", async (t) => {
  const before = process.cwd();
  const here = await directory(t);
  process.chdir(here);
  t.after(() => process.chdir(before));
  for (const name of ["keys", "./keys", "~/keys", "", `${here}/link/../keys`, `${here}/keys/..`, `/../${here}/keys`]) {
    await assert.rejects(FileJournal.open(name), (error) => error instanceof ConfigError && error.message.includes("absolute"), name);
  }
  assert.deepEqual(await readdir("."), []);
});

test("FileJournal: a journal is made in a directory that is there, since a volume that is missing may not be mounted", async (t) => {
  const volume = join(await directory(t), "volume");
  const path = join(volume, "shop", "keys");
  for (const made of [undefined, volume]) {
    if (made) await mkdir(made);
    await assert.rejects(FileJournal.open(path), (error) => error instanceof ConfigError && error.message.includes("not mounted"), `${made}`);
  }
  assert.deepEqual(await readdir(volume), []);
  await mkdir(join(volume, "shop"));
  for (let n = 0; n < 2; n++) await FileJournal.open(path);
});

test("FileJournal: two processes get one key between look and rename", async (t) => {
  const path = await directory(t);
  const second = `import { FileJournal } from "@idem-go/client/file-journal";
    const journal = await FileJournal.open(process.argv[1]);
    console.log((await journal.begin("a", { key: "second" })).entry.key);`;
  const rename = files.rename;
  const hook = (now) => {
    files.rename = now;
    syncBuiltinESMExports();
  };
  t.after(() => hook(rename));
  const journal = await FileJournal.open(path);
  hook(async (from, to) => {
    const said = spawnSync(process.execPath, ["--input-type=module", "--eval", second, path], { encoding: "utf8", cwd: import.meta.dirname });
    assert.equal(said.stdout, "second\n", said.stderr);
    return rename(from, to);
  });
  assert.deepEqual(await journal.begin("a", { key: "first" }), { entry: { key: "second" }, resumed: true });
  assert.equal(await journal.alone("a", "second"), false);
});

test("FileJournal: one that another caller filled with the same operation has its entry", async (t) => {
  const path = await directory(t);
  const [journal, second] = [await FileJournal.open(path, 1), await FileJournal.open(path, 1)];
  const list = files.readdir;
  const hook = (now) => {
    files.readdir = now;
    syncBuiltinESMExports();
  };
  t.after(() => hook(list));
  hook(async (name, ...how) => {
    if (name === path) {
      hook(list);
      assert.equal((await second.begin("a", { key: "second" })).resumed, false);
    }
    return list(name, ...how);
  });
  assert.deepEqual(await journal.begin("a", { key: "first" }), { entry: { key: "second" }, resumed: true });
  assert.equal(await journal.alone("a", "second"), false);
  await assert.rejects(journal.begin("b", { key: "third" }), { code: "journal_full" });
});

test("FileJournal: a directory whose maker died before its name was durable is made durable", async (t) => {
  const path = await directory(t);
  const opened = [];
  const open = files.open;
  const hook = (now) => {
    files.open = now;
    syncBuiltinESMExports();
  };
  t.after(() => hook(open));
  hook((name, ...how) => {
    opened.push(name);
    return open(name, ...how);
  });
  await FileJournal.open(path);
  assert.deepEqual(opened, [dirname(path), path]);
});

test("a journal that can't say who else has the operation counts as one that is shared", async () => {
  for (const alone of [undefined, () => { throw new Error("broken"); }, async () => { throw new Error("broken"); }, async () => "yes"]) {
    const { fetch } = answering(new Response(null, { status: 401 }));
    const journal = Object.assign(new MemoryJournal(), { alone });
    await assert.rejects(new Client({ fetch, journal }).fetch(url, { ...post, operation: "a" }), { code: "gave_up", reason: "refused" });
  }
});

test("FileJournal: what a crash left does not fill it", async (t) => {
  const path = join(await directory(t), "journal");
  const journal = await FileJournal.open(path, 1);
  for (const name of ["begin-1", "begin-2-gone", "begin-3"]) {
    await mkdir(join(path, name));
    await writeFile(join(path, name, "a.json"), "");
    if (name !== "begin-3") await utimes(join(path, name), 0, Date.now() / 1000 - 3660);
  }
  assert.equal((await journal.begin("a", { key: "k" })).resumed, false);
  await assert.rejects(journal.begin("b", { key: "k" }), { code: "journal_full" });
  await FileJournal.open(path, 1);
  assert.deepEqual((await readdir(path)).filter((name) => name.startsWith("begin-")), ["begin-3"]);
});

test("FileJournal: a crash while an operation ends leaves its name free", async (t) => {
  const path = await directory(t);
  const journal = await FileJournal.open(path, 1);
  const ends = async () => {
    const [operation] = await readdir(path);
    await rm(join(path, operation, (await readdir(join(path, operation)))[0]));
  };
  await journal.begin("b", { key: "k1" });
  await ends();
  await journal.begin("a", { key: "k1" }); // its place is free, too
  await ends();
  assert.deepEqual(await journal.begin("a", { key: "k2" }), { entry: { key: "k2" }, resumed: false });
  await ends();
  await FileJournal.open(path);
  assert.deepEqual(await readdir(path), []);
});

test("FileJournal: a file that is cut short, or another operation's, is an error", async (t) => {
  const path = await directory(t);
  const journal = await FileJournal.open(path);
  await journal.begin("a", { key: "k", firstSent: 1 });
  const [operation] = await readdir(path);
  const [file] = await readdir(join(path, operation));
  for (const content of ["", "{", "null", '{"operation":"b","key":"k","first_sent":"2026-11-21T12:00:00Z"}', '{"operation":"a","key":"","first_sent":"2026-11-21T12:00:00Z"}']) {
    await writeFile(join(path, operation, file), content);
    await assert.rejects(journal.begin("a", { key: "k2", firstSent: 1 }), { name: "JournalError", code: "journal_unreadable" });
  }
  await rm(join(path, operation), { recursive: true });
  await writeFile(join(path, operation), '{"operation":"a","key":"k"}'); // as earlier commits did
  for (const ask of [() => journal.begin("a", { key: "k2" }), () => journal.alone("a", "k"), () => journal.done("a", "k")]) await assert.rejects(ask, { code: "ENOTDIR" });
  await FileJournal.open(path);
  assert.deepEqual(await readdir(path), [operation]);
});

test("FileJournal: a mark that a power cut erased is a mark, and its entry is there", async (t) => {
  for (const mark of ["\0", "\n\0", "\0\n", "\0\0"]) {
    const path = await directory(t);
    const journal = await FileJournal.open(path);
    await journal.begin("a", { key: "k", firstSent: 1 });
    const [operation] = await readdir(path);
    const [file] = await readdir(join(path, operation));
    await appendFile(join(path, operation, file), mark);
    assert.equal(await journal.alone("a", "k"), false);
    assert.deepEqual(await journal.begin("a", { key: "k2" }), { entry: { key: "k", firstSent: 1 }, resumed: true });
  }
});

test("a minted key is a UUIDv7 that carries the time", () => {
  const key = mintKey(Date.UTC(2026, 10, 21));
  assert.match(key, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(parseInt(key.replaceAll("-", "").slice(0, 12), 16), Date.UTC(2026, 10, 21));
  assert.notEqual(mintKey(1), mintKey(1));
});
