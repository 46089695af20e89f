package main

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/idem-go/idem-aws/docs/examples/internal/shoprpc"
	"github.com/idem-go/idem-aws/docs/examples/internal/shoprpc/shoptest"
	"github.com/idem-go/idem-aws/docs/examples/internal/shoprpc/shopv1"
	"github.com/idem-go/idem-aws/docs/examples/rpc"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

func TestACallRunsOnceForEachKey(t *testing.T) {
	shoptest.Run(t, func(t *testing.T, store storage.Store, till shoprpc.Till) map[string]shoptest.Client {
		server, err := newServer(store, payments{Till: till})
		if err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		t.Cleanup(func() {
			server.Stop()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
		return map[string]shoptest.Client{"grpc": newClient(t, listener.Addr().String())}
	})
}

func newClient(t *testing.T, address string) shoptest.Client {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	client := shopv1.NewPaymentServiceClient(connection)
	pay := func(ctx context.Context, key string, request *shopv1.PayRequest) shoptest.Answer {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", shoptest.Authorization)
		if key != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "idempotency-key", key)
		}
		var trailer metadata.MD
		reply, err := client.Pay(ctx, request, grpc.Trailer(&trailer))
		a := shoptest.Answer{Reply: reply, Status: status.Convert(err), Trailer: map[string]string{}}
		for name := range trailer {
			a.Trailer[name] = trailer.Get(name)[0]
		}
		return a
	}
	get := func(ctx context.Context, payment string) (*shopv1.PayResponse, error) {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", shoptest.Authorization)
		found, err := client.GetPayment(ctx, &shopv1.GetPaymentRequest{Payment: payment})
		return found.GetPayment(), err
	}
	return shoptest.Client{Pay: pay, Get: get}
}

// A service that nobody told the guard of is not served without protection.
func TestACallOfAnUnknownServiceIsRefused(t *testing.T) {
	store, storeErr := memstore.New(memstore.Config{})
	engine, engineErr := idem.New(store, idem.Config{})
	guard, err := rpc.New(engine, rpc.Config{Tenant: shoprpc.Customer})
	if err := errors.Join(storeErr, engineErr, err); err != nil {
		t.Fatal(err)
	}
	forgotten := &grpc.UnaryServerInfo{FullMethod: "/shop.v1.RefundService/Refund"}
	_, err = protect(guard)(t.Context(), &shopv1.PayRequest{}, forgotten, func(context.Context, any) (any, error) {
		t.Error("it was executed")
		return &shopv1.PayResponse{}, nil
	})
	if status.Code(err) != codes.Internal || !strings.Contains(err.Error(), forgotten.FullMethod) {
		t.Errorf("got %v", err)
	}
}

// So is a stream of such a service, which gRPC asks other interceptors about. Nobody opens one who is not let in.
func TestAStreamOfAnUnknownServiceIsRefused(t *testing.T) {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	const forgotten = "/shop.v1.RefundService/Refund"
	server, err := newServer(store, payments{Till: shoprpc.Till{Payments: shoprpc.Memory{Store: store}}})
	if err != nil {
		t.Fatal(err)
	}
	stream := grpc.StreamDesc{StreamName: "Refund", ServerStreams: true, Handler: func(any, grpc.ServerStream) error {
		t.Error("it was executed")
		return nil
	}}
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "shop.v1.RefundService", HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{stream}}, nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	for name, c := range map[string]struct {
		authorization string
		want          codes.Code
	}{"a customer": {shoptest.Authorization, codes.Internal}, "nobody": {"", codes.Unauthenticated}} {
		t.Run(name, func(t *testing.T) {
			ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", c.authorization)
			opened, err := connection.NewStream(ctx, &stream, forgotten)
			if err == nil {
				err = opened.RecvMsg(&shopv1.PayResponse{})
			}
			if status.Code(err) != c.want {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
