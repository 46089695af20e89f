// Package payments is the application that shows idem at work: payments charged at a provider and their refunds (deferred),
// payouts to it in two phases (deferred, inline first), and transfers between accounts (atomic). docs/payments-api.md is its
// contract.
//
// Handlers read through a [Ledger] and emit domain writes; [Items] turns those into DynamoDB items, [TranslateRow] into the
// reference store's, so that a simulation runs the real application.
package payments
