package shoprpc

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/protobuf/proto"

	"github.com/idem-go/idem-aws/docs/examples/internal/shoprpc/shopv1"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/memstore"
)

// Memory keeps payments beside the records of a store in memory.
type Memory struct{ Store *memstore.Store }

// Insert implements Payments.
func (m Memory) Insert(payment *shopv1.PayResponse) idem.Write {
	row, _ := proto.Marshal(payment) // strings from the wire are valid UTF-8, which is all that Marshal asks for
	return memstore.Write{Key: payment.GetPayment(), Apply: func([]byte) []byte { return row }}
}

// Get implements Payments.
func (m Memory) Get(_ context.Context, id string) (*shopv1.PayResponse, error) {
	row := m.Store.Row(id)
	if row == nil {
		return nil, nil
	}
	return read(row)
}

// Table keeps payments in a table of DynamoDB with the key "pk".
type Table struct {
	Client *dynamodb.Client
	Name   string
}

// Insert implements Payments.
func (t Table) Insert(payment *shopv1.PayResponse) idem.Write {
	row, _ := proto.Marshal(payment) // as in Memory
	return dynamo.Put(types.Put{TableName: aws.String(t.Name), Item: map[string]types.AttributeValue{
		"pk":  &types.AttributeValueMemberS{Value: payment.GetPayment()},
		"row": &types.AttributeValueMemberB{Value: row},
	}})
}

// Get implements Payments.
func (t Table) Get(ctx context.Context, id string) (*shopv1.PayResponse, error) {
	found, err := t.Client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(t.Name), Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: id}},
	})
	if err != nil {
		return nil, err
	}
	row, ok := found.Item["row"].(*types.AttributeValueMemberB)
	if !ok {
		return nil, nil
	}
	return read(row.Value)
}

func read(row []byte) (*shopv1.PayResponse, error) {
	payment := new(shopv1.PayResponse)
	return payment, proto.Unmarshal(row, payment)
}
