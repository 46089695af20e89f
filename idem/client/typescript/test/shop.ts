// What the README's example imports: a database would keep the answers.

export const token = "secret-token";

const kept = new Map<string, { readonly body: string; readonly key: string | undefined }>();

export async function keep(operation: string, payment: Response, key: string | undefined): Promise<void> {
  kept.set(operation, { body: await payment.text(), key });
}

export async function keyOfKept(operation: string): Promise<string | undefined> {
  return kept.get(operation)?.key;
}
