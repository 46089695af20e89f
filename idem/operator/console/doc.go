// Package console is a page for whoever is on call, over package operator: it finds an operation, draws what is stored of it,
// lists what is stuck, unknown or dead, and makes the desk's changes: each with a reason, after a page that says what will be
// done, fenced by what the person saw, and in the audit log.
//
// It serves this machine alone: a loopback address, behind a random token. It shows no stored body, no payload and no key.
// Package idemctl starts it (`idemctl console`).
package console
