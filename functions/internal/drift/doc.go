// Package drift compares what is written here with what the provider has: keys (records) ↔ messages ↔ payments, refunds
// and payouts ↔ the provider's objects, over a window of time and both ways. It reads only, and strongly.
//
// Rows of the window come from the payments table's index by hour, newest first, and the provider's listings are walked
// beside them: an object is made at or after its row, so what is met first waits in a pool until its row comes. What does
// not fit at first sight is looked at again, the row with its messages and its record in one transaction and then the
// provider by key: only what is still wrong then is drift. So nothing that merely moves is reported.
//
// An object whose operation has left neither message nor record is missing here while TTL can't have taken them. Later its row is
// looked for in the index, and without one it is missing here, however old it is. A comparison of one tenant leaves it out, and one that
// repeats an earlier one of the same window does, unless it was made before the instant up to which data may have been lost
// (refuse-before).
//
// Not compared: transfers. A transfer, both balances and its record are one transaction without anything outside, and what
// could differ afterwards, the sum of all balances, has no window: it takes a scan of the table.
package drift
