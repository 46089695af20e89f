// What the README's example imports.

export const token = "secret-token";

export async function keep(payment: Response): Promise<void> {
  if (!payment.ok) throw new Error(await payment.text());
}
