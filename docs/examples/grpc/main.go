// Command grpc is a gRPC service whose unary calls run once for each key: an interceptor asks the engine first.
//
// Before the first start, the two tables of package schema and the table of payments must be there.
package main

import (
	"context"
	"log"
	"net"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/idem-go/idem-aws/docs/examples/internal/shoprpc"
	"github.com/idem-go/idem-aws/docs/examples/internal/shoprpc/shopv1"
	"github.com/idem-go/idem-aws/docs/examples/rpc"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/storage"
)

func main() {
	client := dynamodb.NewFromConfig(must(config.LoadDefaultConfig(context.Background())))
	store := must(dynamo.New(client, dynamo.Config{IdempotencyTable: "shop-idempotency", OutboxTable: "shop-outbox"}))
	till := shoprpc.Till{Payments: shoprpc.Table{Client: client, Name: "shop-payments"}}
	server := must(newServer(store, payments{Till: till}))
	listener := must(net.Listen("tcp", "127.0.0.1:8080"))
	log.Fatal(server.Serve(listener))
}

// newServer protects Pay. The caller is known before the key is looked at.
func newServer(store storage.Store, service shopv1.PaymentServiceServer) (*grpc.Server, error) {
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		return nil, err
	}
	guard, err := rpc.New(engine, rpc.Config{
		Services: []protoreflect.ServiceDescriptor{shopv1.File_shop_v1_shop_proto.Services().ByName("PaymentService")},
		Operations: map[string]idem.Operation{
			shopv1.PaymentService_Pay_FullMethodName: {Name: "payments.pay", Kind: idem.KindAtomic, Policy: idem.IETF()},
		},
		Tenant: shoprpc.Customer,
	})
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(authenticated, protect(guard)),
		grpc.ChainStreamInterceptor(authenticatedStream, protectStreams(guard)),
	)
	shopv1.RegisterPaymentServiceServer(server, service)
	return server, nil
}

// payments serves the till.
type payments struct {
	shopv1.UnimplementedPaymentServiceServer
	shoprpc.Till
}

// Pay implements shopv1.PaymentServiceServer.
func (p payments) Pay(ctx context.Context, r *shopv1.PayRequest) (*shopv1.PayResponse, error) {
	return p.Till.Pay(ctx, r)
}

// GetPayment implements shopv1.PaymentServiceServer.
func (p payments) GetPayment(ctx context.Context, r *shopv1.GetPaymentRequest) (*shopv1.GetPaymentResponse, error) {
	return p.Till.GetPayment(ctx, r)
}

// authenticated lets customers in.
func authenticated(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	ctx, err := withCustomer(ctx)
	if err != nil {
		return nil, err
	}
	return handler(ctx, request)
}

// authenticatedStream lets customers in who open a stream.
func authenticatedStream(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, err := withCustomer(stream.Context())
	if err != nil {
		return err
	}
	return handler(service, customerStream{stream, ctx})
}

// customerStream is a stream whose context says who calls.
type customerStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s customerStream) Context() context.Context { return s.ctx }

func withCustomer(ctx context.Context) (context.Context, error) {
	var authorization string
	if values := metadata.ValueFromIncomingContext(ctx, "authorization"); len(values) == 1 {
		authorization = values[0]
	}
	return shoprpc.WithCustomer(ctx, authorization)
}

// must ends a service that can't start.
func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
