package dynamo

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/schemas"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

var transactWriteItems = smithy.NewOperationSchema(schemas.TransactWriteItems, schemas.TransactWriteItemsInput, schemas.TransactWriteItemsOutput)

// serializedRequest is a client protocol that sends one request's bytes, made once. The SDK writes maps in their random
// order, so the same input has other bytes each time it is sent; under one client request token DynamoDB wants the same
// parameters, and a caller that sends again has to know that nothing has changed since.
type serializedRequest struct {
	smithyhttp.ClientProtocol
	header http.Header
	body   []byte
}

// serialize serializes the input as the client would.
func (s *Store) serialize(input *dynamodb.TransactWriteItemsInput) (serializedRequest, error) {
	request := smithyhttp.NewStackRequest().(*smithyhttp.Request)
	if err := s.protocol.SerializeRequest(context.Background(), transactWriteItems, input, request); err != nil {
		return serializedRequest{}, fmt.Errorf("serialize the transaction: %w", err)
	}
	size, _, err := request.StreamLength()
	if err != nil {
		return serializedRequest{}, fmt.Errorf("serialize the transaction: %w", err)
	}
	body := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead)) // which reads once more, for the end
	if _, err := body.ReadFrom(request.GetStream()); err != nil {
		return serializedRequest{}, fmt.Errorf("serialize the transaction: %w", err)
	}
	return serializedRequest{ClientProtocol: s.protocol, header: request.Header, body: body.Bytes()}, nil
}

// SerializeRequest implements smithyhttp.ClientProtocol.
func (s serializedRequest) SerializeRequest(_ context.Context, _ *smithy.OperationSchema, _ smithy.Serializable, request *smithyhttp.Request) error {
	request.Method = http.MethodPost
	if request.URL.Path == "" {
		request.URL.Path = "/"
	}
	for name, values := range s.header {
		request.Header[name] = slices.Clone(values) // which what signs them may change
	}
	streaming, err := request.SetStream(bytes.NewReader(s.body))
	if err != nil {
		return fmt.Errorf("set the serialized body: %w", err)
	}
	*request = *streaming
	return nil
}

// use makes a call send the serialized bytes.
func (s serializedRequest) use(o *dynamodb.Options) { o.Protocol = s }
