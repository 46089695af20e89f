// Package dynamo is the store on DynamoDB. It keeps records and messages, and makes business writes of the AWS SDK
// for Go v2 part of the same transaction. [New] returns the [storage.Store] that idem.New takes and the store that
// package outbox delivers from.
//
// Use it in production. [Put], [Update], [Delete] and [ConditionCheck] turn the SDK's own types into writes for a handler's
// idem.Tx. A table that the application writes must be in the same account and Region as the store's two tables. For
// tests without an endpoint use package memstore, and with one package dynamotest. Package schema has the shape of
// the tables, and infra/idemconstruct creates them with the CDK.
//
// A write is one conditional PutItem or one TransactWriteItems whose item 0 is the record or the message. Nothing is read
// before it is written: if a condition fails, DynamoDB returns the stored item (ReturnValuesOnConditionCheckFailure).
//
// Reads are retried as the client is configured. The store sends each write once per call, whatever the client is
// configured with, because a retry by the SDK could turn a lost reply into "nothing happened". The caller sends a write
// again: conditions name the operation id and the revision, and transactions carry a token, so a request that arrives
// twice is applied once. A client through package sdkhttp loses fewer replies, and sends each request in one write.
package dynamo
