// Package rehearsal carries out the runbooks of docs/recovery.md on a local stack, with payments and payouts under way, and
// counts the money before and after: nothing may be charged twice, and everything that is missing must be listed. The
// package belongs to this repository's tools and has no compatibility promise.
//
// What an operator does is done by the commands that the runbook names: deployments of the CDK app and idemctl. What AWS does is
// done by the emulator's API where it has it. Two things are stand-ins: a restore to a point in time restores backups that were
// taken at that moment, while all writes were held, because the emulator's own ignores the time; and the copy of a backup in
// another Region is made by reading and writing the items, in a second emulator that shares nothing with the first.
package rehearsal
