package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// DecodeImage reads the message of an image of the outbox table's stream. It is the row as it was then, so a change must
// be fenced by it. It returns an error for an image that is not a message's.
func (s *Store) DecodeImage(image map[string]types.AttributeValue) (*storage.Message, error) {
	return s.decodeMessage(image)
}

// OperationOf returns the operation id of a record's row. The two attributes schema.RecordKey and schema.OperationID are
// enough. It returns an error for a row that is not a record's.
func OperationOf(row map[string]types.AttributeValue) (storage.OperationID, error) {
	r := &reader{item: row}
	id := r.operation(storage.RecordKey(r.text(schema.RecordKey)))
	if id == "" {
		r.malformed(schema.OperationID)
	}
	return id, r.err
}
