// Package dynamo is the Store on DynamoDB: records, messages and business writes through the AWS SDK for Go v2.
//
// A write is one conditional PutItem or one TransactWriteItems whose item 0 is the record or the message. Nothing is read
// before it is written: if a condition fails, DynamoDB returns the stored item (ReturnValuesOnConditionCheckFailure).
//
// Reads are retried as the client is configured. The store sends each write once per call, whatever the client is
// configured with, because a retry by the SDK could turn a lost reply into "nothing happened". The caller sends a write
// again: conditions name the operation id and the revision, and transactions carry a token, so a request that arrives
// twice is applied once. A client through package sdkhttp loses fewer replies, and sends each request in one write.
package dynamo
