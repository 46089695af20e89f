// Package idem is the core of exactly-once POST: the vocabulary, the pure state machine and the engine.
//
// For one scope (tenant, operation, key) the business writes, the outbox messages and the stored response become visible
// together, once, or not at all. What may have happened is never run again. Every request gets the true stored result or
// a clear next step.
//
// The package knows no AWS, no HTTP server, no wall clock and no randomness of its own. Package protocol decides, as pure
// machines; [Engine] performs what they ask for against a [Store], one action, one call. Package dynamo is the Store on
// DynamoDB, package memstore the plain reference that it is compared with. Package middleware puts the engine behind
// net/http.
//
// Whoever uses testing/synctest needs no clock of the tests' own: the engine waits with timers only.
package idem
