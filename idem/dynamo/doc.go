// Package dynamo is the Store on DynamoDB: records, messages and business writes through the AWS SDK for Go v2.
//
// A write is one conditional PutItem or one TransactWriteItems whose item 0 is the record or the message. Nothing is read
// before it is written; a failed condition brings the stored item along (ReturnValuesOnConditionCheckFailure).
//
// The client may retry as the SDK does by default: conditions name the operation id, owners are compared by the caller,
// and transactions carry a token, so a request that arrives twice happens once. What a retry must not do is turn a lost
// reply into "nothing happened"; the package watches each attempt for that (see errors.go). A client through package
// sdkhttp loses fewer replies, and sends each request in one write.
package dynamo
