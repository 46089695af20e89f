package dynamo

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/schemas"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

var transactWriteItems = smithy.NewOperationSchema(schemas.TransactWriteItems, schemas.TransactWriteItemsInput, schemas.TransactWriteItemsOutput)

// frozen is a client protocol that sends one request's bytes, made once. The SDK writes maps in their random order, so
// the same input has other bytes each time it is sent; under one client request token DynamoDB wants the same
// parameters, and whoever sends again wants to know that nothing has changed since.
type frozen struct {
	smithyhttp.ClientProtocol
	header http.Header
	body   []byte
}

// freeze serializes the input as the client would.
func freeze(client *dynamodb.Client, input *dynamodb.TransactWriteItemsInput) (frozen, error) {
	protocol := client.Options().Protocol
	request := smithyhttp.NewStackRequest().(*smithyhttp.Request)
	if err := protocol.SerializeRequest(context.Background(), transactWriteItems, input, request); err != nil {
		return frozen{}, fmt.Errorf("serialize the transaction: %w", err)
	}
	size, _, err := request.StreamLength()
	if err != nil {
		return frozen{}, fmt.Errorf("serialize the transaction: %w", err)
	}
	body := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead)) // which reads once more, for the end
	if _, err := body.ReadFrom(request.GetStream()); err != nil {
		return frozen{}, fmt.Errorf("serialize the transaction: %w", err)
	}
	return frozen{ClientProtocol: protocol, header: request.Header, body: body.Bytes()}, nil
}

// SerializeRequest implements smithyhttp.ClientProtocol.
func (f frozen) SerializeRequest(_ context.Context, _ *smithy.OperationSchema, _ smithy.Serializable, request *smithyhttp.Request) error {
	request.Method = http.MethodPost
	if request.URL.Path == "" {
		request.URL.Path = "/"
	}
	maps.Copy(request.Header, f.header.Clone()) // which what signs them may change
	streaming, err := request.SetStream(bytes.NewReader(f.body))
	if err != nil {
		return fmt.Errorf("set the frozen body: %w", err)
	}
	*request = *streaming
	return nil
}

// use makes a call send the frozen bytes.
func (f frozen) use(o *dynamodb.Options) { o.Protocol = f }
