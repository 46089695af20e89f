// Package console is a web page for the engineer on call, over package operator. It finds an operation, draws what is
// stored of it, and lists what is stuck, unknown or dead. It also makes changes: each with a reason, after a page
// that says what will be done, fenced by what the engineer saw, and in the audit log.
//
// The console serves one machine alone, on a loopback address and behind a random token. Do not put it behind a load
// balancer: it has no users and no roles. It shows no stored body, no payload and no key. Package idemctl starts it
// (`idemctl console`), so an application needs this package only to add its own facts, or to serve the console by
// another command.
package console
