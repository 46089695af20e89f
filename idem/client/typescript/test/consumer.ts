// Never run: what a strict TypeScript project sees of the package. A line that must not compile says so.

import { Client, GaveUpError, IdempotencyError, MemoryJournal, type Journal } from "@idem-go/client";
import { FileJournal } from "@idem-go/client/file-journal";

const journal: Journal = Math.random() > 0.5 ? new MemoryJournal() : await FileJournal.open("/tmp/keys", 100);
const client = new Client({ baseURL: "https://api.example", journal, attemptsMax: 3, sendFirstSent: true });

export async function pay(signal: AbortSignal): Promise<number> {
  try {
    const accepted = await client.fetch("https://api.example/v1/payments", { method: "POST", body: "{}", operation: "order-17/charge", signal });
    const final: Response = await client.await(accepted);
    await client.done("order-17/charge", client.keyOf(final));
    return final.status;
  } catch (error) {
    if (error instanceof GaveUpError && error.reason === "canceled") return error.attempts;
    if (error instanceof IdempotencyError && error.code === "key_mismatch") throw new Error(error.key);
    throw error;
  }
}

// @ts-expect-error: a stream can't be sent twice
await client.fetch("https://api.example/v1/payments", { method: "POST", body: new ReadableStream() });
// @ts-expect-error: a name may have been used again
await client.done("order-17/charge");
// @ts-expect-error: no such option
new Client({ attempts: 3 });
// @ts-expect-error: no such reason
export const never = (error: GaveUpError) => error.reason === "tired";
