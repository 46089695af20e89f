// Package idemtest tests an application's handlers without an emulator and without AWS modules. Use [Run] to look at
// what one run of a handler would commit, and [Crash] to prove that no crash loses or doubles its effects. Authors of
// a store use package storetest instead, and tests against a real DynamoDB endpoint use package dynamotest.
//
// [Run] runs a handler once and returns its writes, its messages and its response. The writes are not executed. Use
// dynamo.Item to inspect those that package dynamo makes:
//
//	result := idemtest.Run(t, createOrder(request))
//	put, ok := dynamo.Item(result.Writes[0])
//
// [Crash] kills the process before and after every call that it makes, in turn, and lets another process finish. It
// fails the test where a business write, a message or a response is lost, doubled or changed by that:
//
//	idemtest.Crash(t, idemtest.App{
//		Operation: operation, // as the application registers it
//		Handler:   func(rows *memstore.Store) idem.Handler { return createOrder(request, rows) },
//		Translate: toRow, // the application's writes as memstore.Writes
//		Topics:    topics,
//	})
//
// Package storetest/faulty wraps a memstore.Store so that it fails on request: it refuses calls, loses requests and
// replies, holds calls back or delivers them late. The Example with a lost reply shows how.
//
// # Time
//
// The library reads no other clock than the one in its configurations. There are two ways to test what depends on time:
//
//   - testing/synctest, where everything runs in one process: on memstore, with handlers that call nothing outside of the
//     test. Leave Config.Now and Config.Pause alone; inside synctest.Test, time.Sleep moves their defaults.
//   - [Clock], where a test talks to an emulator or to an HTTP server: a synctest bubble does not wait for those. Give
//     Clock.Now and Clock.Pause together. A clock that nothing moves never ends the retries of a request whose replies
//     are lost.
package idemtest
