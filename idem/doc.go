// Package idem is the core of exactly-once POST. An [Engine] runs a registered [Operation] for a request: it executes the
// [Handler] once, or answers from what an earlier request with the same key stored.
//
// For one scope (tenant, operation, key) the business writes, the outbox messages and the stored response become visible
// together, once, or not at all. What may have happened is never run again. Every request gets the stored result, or an
// error that says what to do next.
//
// The package depends on no AWS module and no HTTP server, and takes its clock and its randomness from [Config]. Package
// protocol decides, in pure state machines; the engine performs each action that they return with one call of the
// [storage.Store]. Package dynamo is the Store on DynamoDB, and package memstore the reference in memory. Package
// middleware serves operations over net/http.
//
// The engine waits with timers only, so tests that use testing/synctest need no clock of their own.
package idem
