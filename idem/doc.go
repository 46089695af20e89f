// Package idem is the core of exactly-once POST. An [Engine] runs a registered [Operation] for a request. It executes
// the [Handler] once, or answers with what an earlier request with the same key stored.
//
// For one scope (tenant, operation, key) the business writes, the outbox messages and the stored response become
// visible together, once, or not at all. What may have happened is never run again. Every request gets the stored
// result, or an error that says what to do next.
//
// Use this package directly where requests do not come over HTTP. For net/http handlers use package middleware, and
// for queue messages, stream records and direct calls use package function: both call an Engine. Do not use it for
// requests that are idempotent by themselves, such as reads: they need no key.
//
// An Engine needs a [storage.Store]: package dynamo has it on DynamoDB, and package memstore in memory for tests.
// Messages are delivered by package outbox. An operation that an operator must decide about is shown and changed by
// package operator.
//
// The package depends on no AWS module and no HTTP server. It takes its clock and its randomness from [Config], and
// waits with timers only, so tests that use testing/synctest need no clock of their own. Package protocol makes the
// decisions, in pure state machines; the engine performs each action that they return with one call of the store.
package idem
