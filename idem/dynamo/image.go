package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/storage"
)

// DecodeImage reads the message that an image of the outbox table's stream shows: the row as it was then, so whoever acts
// on it does so under its fence. It returns an error for an image that no message has.
func (s *Store) DecodeImage(image map[string]types.AttributeValue) (*storage.Message, error) {
	return s.decodeMessage(image)
}
