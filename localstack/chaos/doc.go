// Package chaos plans a kill loop: payments, transfers, payouts and refunds of two tenants by clients of every temper,
// faults of the provider and of DynamoDB for many of them, processes that are killed on the way, and webhooks that come
// late and twice. A plan follows from its seed and its size alone; the end-to-end test TestKillLoop carries it out, and
// judges. The package belongs to this repository's tools and has no compatibility promise.
//
// What a plan can't fix is time: which call a killed process is in, and who of two clients is first. A seed repeats what is
// asked for and what goes wrong around it, not how the machine interleaves it.
package chaos
