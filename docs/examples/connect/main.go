// Command connect is a Connect service whose unary calls run once for each key, over each protocol of Connect: HTTP with JSON,
// gRPC and gRPC-Web.
//
// Before the first start, the two tables of package schema and the table of payments must be there.
package main

import (
	"context"
	"log"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/idem-go/idem-aws/docs/examples/internal/shoprpc"
	"github.com/idem-go/idem-aws/docs/examples/internal/shoprpc/shopv1"
	"github.com/idem-go/idem-aws/docs/examples/internal/shoprpc/shopv1/shopv1connect"
	"github.com/idem-go/idem-aws/docs/examples/rpc"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/storage"
)

func main() {
	client := dynamodb.NewFromConfig(must(config.LoadDefaultConfig(context.Background())))
	store := must(dynamo.New(client, dynamo.Config{IdempotencyTable: "shop-idempotency", OutboxTable: "shop-outbox"}))
	till := shoprpc.Till{Payments: shoprpc.Table{Client: client, Name: "shop-payments"}}
	server := must(newServer(store, payments{till}))
	log.Fatal(server.Serve(must(net.Listen("tcp", "127.0.0.1:8080"))))
}

// newServer protects Pay. It speaks HTTP/2 without TLS too, which gRPC needs.
func newServer(store storage.Store, service shopv1connect.PaymentServiceHandler) (*http.Server, error) {
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		return nil, err
	}
	guard, err := rpc.New(engine, rpc.Config{
		Services: []protoreflect.ServiceDescriptor{shopv1.File_shop_v1_shop_proto.Services().ByName("PaymentService")},
		Operations: map[string]idem.Operation{
			shopv1connect.PaymentServicePayProcedure: {Name: "payments.pay", Kind: idem.KindAtomic, Policy: idem.IETF()},
		},
		Tenant: shoprpc.Customer,
	})
	if err != nil {
		return nil, err
	}
	replies := map[string]reply{shopv1connect.PaymentServicePayProcedure: replyOf[shopv1.PayResponse]()}
	protected, err := protect(guard, replies)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(shopv1connect.NewPaymentServiceHandler(service, connect.WithInterceptors(protected)))
	server := &http.Server{Handler: authenticated(mux), Protocols: new(http.Protocols), ReadHeaderTimeout: 10 * time.Second}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	return server, nil
}

// payments serves the till.
type payments struct{ till shoprpc.Till }

// Pay implements shopv1connect.PaymentServiceHandler.
func (p payments) Pay(ctx context.Context, r *connect.Request[shopv1.PayRequest]) (*connect.Response[shopv1.PayResponse], error) {
	return respond(p.till.Pay(ctx, r.Msg))
}

// GetPayment implements shopv1connect.PaymentServiceHandler.
func (p payments) GetPayment(ctx context.Context, r *connect.Request[shopv1.GetPaymentRequest]) (*connect.Response[shopv1.GetPaymentResponse], error) {
	return respond(p.till.GetPayment(ctx, r.Msg))
}

func respond[T any](message *T, err error) (*connect.Response[T], error) {
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(message), nil
}

// authenticated lets customers in: the caller is known before the key is looked at.
func authenticated(next http.Handler) http.Handler {
	refuse := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, err := shoprpc.WithCustomer(r.Context(), r.Header.Get("Authorization"))
		if err != nil {
			if err := refuse.Write(w, r, fromStatus(err)); err != nil {
				log.Printf("refuse: %v", err)
			}
			return
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// must ends a service that can't start.
func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
