package rpc_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/idem-go/idem-aws/docs/examples/internal/shoprpc/shopv1"
	"github.com/idem-go/idem-aws/docs/examples/rpc"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
)

// What would leave a call unprotected, or protected otherwise than it says, does not start.
func TestAServerThatCanNotBeProtectedDoesNotStart(t *testing.T) {
	const pay, check, list, watch = "/shop.v1.PaymentService/Pay", "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/List", "/grpc.health.v1.Health/Watch"
	paid := idem.Operation{Name: "payments.pay", Kind: idem.KindAtomic, Policy: idem.IETF()}
	exempt := idem.Operation{Policy: idem.Exempt("it has no effects")}
	deferred, unkeyed := paid, paid
	deferred.Kind = idem.KindDeferred
	unkeyed.Policy = idem.Stripe()
	for name, c := range map[string]struct {
		operations map[string]idem.Operation
		want       string
	}{
		"a procedure that nobody has":      {map[string]idem.Operation{pay: paid, check: exempt, list: exempt, watch: exempt, "/shop.v1.PaymentService/Refund": paid}, "/Refund: no service has this procedure"},
		"a stream":                         {map[string]idem.Operation{pay: paid, check: exempt, list: exempt, watch: paid}, "/Watch: a stream can't be stored and replayed"},
		"a procedure that nobody protects": {map[string]idem.Operation{check: exempt, list: exempt, watch: exempt}, "/Pay: may have effects"},
		"a deferred operation":             {map[string]idem.Operation{pay: deferred, check: exempt, list: exempt, watch: exempt}, "/Pay: an RPC has no answer"},
		"a policy without a key":           {map[string]idem.Operation{pay: unkeyed, check: exempt, list: exempt, watch: exempt}, `/Pay: the policy "stripe"`},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := memstore.New(memstore.Config{})
			if err != nil {
				t.Fatal(err)
			}
			engine, err := idem.New(store, idem.Config{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = rpc.New(engine, rpc.Config{
				Services: []protoreflect.ServiceDescriptor{
					shopv1.File_shop_v1_shop_proto.Services().ByName("PaymentService"), healthpb.File_grpc_health_v1_health_proto.Services().ByName("Health"),
				},
				Operations: c.operations,
				Tenant:     func(context.Context) (string, error) { return "shop", nil },
			})
			if !errors.Is(err, rpc.ErrConfig) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A stream is served where its procedure is known and needs no protection. A protected one's unary calls may come as streams: a gRPC
// server hands calls of a service that it has not registered to its UnknownServiceHandler so.
func TestAStreamIsServedWhereNothingIsToBeProtected(t *testing.T) {
	const pay, get, watch = "/shop.v1.PaymentService/Pay", "/shop.v1.PaymentService/GetPayment", "/grpc.health.v1.Health/Watch"
	exempt := idem.Operation{Policy: idem.Exempt("it has no effects")}
	store, storeErr := memstore.New(memstore.Config{})
	engine, engineErr := idem.New(store, idem.Config{})
	guard, err := rpc.New(engine, rpc.Config{
		Services: []protoreflect.ServiceDescriptor{
			shopv1.File_shop_v1_shop_proto.Services().ByName("PaymentService"), healthpb.File_grpc_health_v1_health_proto.Services().ByName("Health"),
		},
		Operations: map[string]idem.Operation{
			pay: {Name: "payments.pay", Kind: idem.KindAtomic, Policy: idem.IETF()}, watch: exempt,
			"/grpc.health.v1.Health/Check": exempt, "/grpc.health.v1.Health/List": exempt,
		},
		Tenant: func(context.Context) (string, error) { return "shop", nil },
	})
	if err := errors.Join(storeErr, engineErr, err); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{watch: nil, get: nil, pay: rpc.ErrConfig, "/shop.v1.RefundService/Refund": rpc.ErrConfig} {
		if err := guard.CheckStream(name); !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
}
