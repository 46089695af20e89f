package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/idem-go/idem-aws/docs/examples/internal/shoprpc"
	"github.com/idem-go/idem-aws/docs/examples/internal/shoprpc/shoptest"
	"github.com/idem-go/idem-aws/docs/examples/internal/shoprpc/shopv1"
	"github.com/idem-go/idem-aws/docs/examples/internal/shoprpc/shopv1/shopv1connect"
	"github.com/idem-go/idem-aws/docs/examples/rpc"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

func TestACallRunsOnceForEachKeyAndProtocol(t *testing.T) {
	shoptest.Run(t, func(t *testing.T, store storage.Store, till shoprpc.Till) map[string]shoptest.Client {
		url := serve(t, store, till)
		return map[string]shoptest.Client{
			"json-over-http1": newClient(t, url, (*http.Protocols).SetHTTP1, connect.WithProtoJSON()),
			"grpc":            newClient(t, url, (*http.Protocols).SetUnencryptedHTTP2, connect.WithGRPC()),
		}
	})
}

// A retry over another protocol gets the first one's reply: the message is what counts, not its encoding.
func TestARetryOverAnotherProtocolIsReplayed(t *testing.T) {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	url := serve(t, store, shoprpc.Till{Payments: shoprpc.Memory{Store: store}})
	overJSON := newClient(t, url, (*http.Protocols).SetHTTP1, connect.WithProtoJSON())
	overGRPC := newClient(t, url, (*http.Protocols).SetUnencryptedHTTP2, connect.WithGRPC())
	request := &shopv1.PayRequest{Order: "1", Amount: 500, Labels: map[string]string{"a": "1", "b": "2"}}
	first, again := overJSON.Pay(t.Context(), "one", request), overGRPC.Pay(t.Context(), "one", request)
	if first.Reply.GetPayment() == "" || again.Reply.GetPayment() != first.Reply.GetPayment() || again.Trailer["idempotency-status"] != "replayed" {
		t.Errorf("got %+v, then %+v", first, again)
	}
}

// A replay of a procedure whose type is not known could not be answered.
func TestAProcedureWithoutATypeOfReplyDoesNotStart(t *testing.T) {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	guard, err := rpc.New(engine, rpc.Config{
		Services:   []protoreflect.ServiceDescriptor{shopv1.File_shop_v1_shop_proto.Services().ByName("PaymentService")},
		Operations: map[string]idem.Operation{shopv1connect.PaymentServicePayProcedure: {Name: "payments.pay", Kind: idem.KindAtomic, Policy: idem.IETF()}},
		Tenant:     shoprpc.Customer,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := protect(guard, nil); err == nil || !strings.Contains(err.Error(), shopv1connect.PaymentServicePayProcedure) {
		t.Errorf("got %v", err)
	}
}

func serve(t *testing.T, store storage.Store, till shoprpc.Till) string {
	server, err := newServer(store, payments{till})
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
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

func newClient(t *testing.T, url string, speak func(*http.Protocols, bool), options ...connect.ClientOption) shoptest.Client {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	speak(transport.Protocols, true)
	t.Cleanup(transport.CloseIdleConnections)
	client := shopv1connect.NewPaymentServiceClient(&http.Client{Transport: transport}, url, options...)
	pay := func(ctx context.Context, key string, message *shopv1.PayRequest) shoptest.Answer {
		request := connect.NewRequest(message)
		request.Header().Set("Authorization", shoptest.Authorization)
		if key != "" {
			request.Header().Set("Idempotency-Key", key)
		}
		response, err := client.Pay(ctx, request)
		var a shoptest.Answer
		var failed *connect.Error
		switch {
		case errors.As(err, &failed):
			a.Status = status.Convert(toStatus(err))
			a.Trailer = lowered(failed.Meta())
		case err != nil:
			t.Error(err)
		default:
			a.Reply = response.Msg
			a.Trailer = lowered(response.Trailer())
		}
		return a
	}
	get := func(ctx context.Context, payment string) (*shopv1.PayResponse, error) {
		request := connect.NewRequest(&shopv1.GetPaymentRequest{Payment: payment})
		request.Header().Set("Authorization", shoptest.Authorization)
		found, err := client.GetPayment(ctx, request)
		if err != nil {
			return nil, err
		}
		return found.Msg.GetPayment(), nil
	}
	return shoptest.Client{Pay: pay, Get: get}
}

// lowered is metadata by the names that gRPC has for it.
func lowered(fields http.Header) map[string]string {
	lower := map[string]string{}
	for name := range fields {
		lower[strings.ToLower(name)] = fields.Get(name)
	}
	return lower
}

// forgotten is a procedure of a service that nobody told the guard of.
const forgotten = "/shop.v1.RefundService/Refund"

// unaware is the interceptor of a guard that was told of no service.
func unaware(t *testing.T) connect.Interceptor {
	t.Helper()
	store, storeErr := memstore.New(memstore.Config{})
	engine, engineErr := idem.New(store, idem.Config{})
	guard, guardErr := rpc.New(engine, rpc.Config{Tenant: shoprpc.Customer})
	protected, err := protect(guard, nil)
	if err := errors.Join(storeErr, engineErr, guardErr, err); err != nil {
		t.Fatal(err)
	}
	return protected
}

// A service that nobody told the guard of is not served without protection.
func TestACallOfAnUnknownServiceIsRefused(t *testing.T) {
	protected := unaware(t)
	server := httptest.NewServer(connect.NewUnaryHandler(forgotten, func(context.Context, *connect.Request[shopv1.PayRequest]) (*connect.Response[shopv1.PayResponse], error) {
		t.Error("it was executed")
		return connect.NewResponse(&shopv1.PayResponse{}), nil
	}, connect.WithInterceptors(protected)))
	defer server.Close()
	client := connect.NewClient[shopv1.PayRequest, shopv1.PayResponse](server.Client(), server.URL+forgotten)
	if _, err := client.CallUnary(t.Context(), connect.NewRequest(&shopv1.PayRequest{})); connect.CodeOf(err) != connect.CodeInternal || !strings.Contains(err.Error(), forgotten) {
		t.Errorf("got %v", err)
	}
}

// So is a stream of such a service.
func TestAStreamOfAnUnknownServiceIsRefused(t *testing.T) {
	protected := unaware(t)
	server := httptest.NewServer(connect.NewServerStreamHandler(forgotten, func(context.Context, *connect.Request[shopv1.PayRequest], *connect.ServerStream[shopv1.PayResponse]) error {
		t.Error("it was executed")
		return nil
	}, connect.WithInterceptors(protected)))
	defer server.Close()
	client := connect.NewClient[shopv1.PayRequest, shopv1.PayResponse](server.Client(), server.URL+forgotten)
	stream, err := client.CallServerStream(t.Context(), connect.NewRequest(&shopv1.PayRequest{}))
	if err == nil {
		stream.Receive()
		err = stream.Err()
		_ = stream.Close()
	}
	if connect.CodeOf(err) != connect.CodeInternal || !strings.Contains(err.Error(), forgotten) {
		t.Errorf("got %v", err)
	}
}
