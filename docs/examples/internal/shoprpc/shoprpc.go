// Package shoprpc is the business of the examples of gRPC and Connect: payments, behind the service of proto/shop/v1.
// To generate the code anew: npx @bufbuild/buf@1.75.0 generate, in this folder.
package shoprpc

import (
	"context"
	"net/http"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/idem-go/idem-aws/docs/examples/internal/shoprpc/shopv1"
	"github.com/idem-go/idem-aws/docs/examples/rpc"
	"github.com/idem-go/idem-aws/idem"
)

// Payments keeps payments: [Memory] or [Table].
type Payments interface {
	// Insert is the write of a new payment, for the transaction of its call.
	Insert(payment *shopv1.PayResponse) idem.Write
	// Get returns nil where there is no such payment.
	Get(ctx context.Context, id string) (*shopv1.PayResponse, error)
}

// Till takes payments.
type Till struct{ Payments Payments }

// Pay decides and writes nothing itself: what it passes to the transaction is committed together with the reply.
func (t Till) Pay(ctx context.Context, request *shopv1.PayRequest) (*shopv1.PayResponse, error) {
	tx, protected := rpc.TxFrom(ctx)
	if !protected {
		return nil, status.Error(codes.Internal, "Pay is not protected")
	}
	if request.GetAmount() <= 0 {
		refused, err := status.New(codes.InvalidArgument, "a payment has an amount").WithDetails(&errdetails.BadRequest{
			FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "amount", Description: "must be positive"}},
		})
		if err != nil {
			return nil, err
		}
		return nil, refused.Err()
	}
	payment := &shopv1.PayResponse{Payment: string(tx.OperationID()), Order: request.GetOrder(), Amount: request.GetAmount()}
	tx.Write(t.Payments.Insert(payment))
	return payment, nil
}

// GetPayment has no effect, so its calls need no key.
func (t Till) GetPayment(ctx context.Context, request *shopv1.GetPaymentRequest) (*shopv1.GetPaymentResponse, error) {
	payment, err := t.Payments.Get(ctx, request.GetPayment())
	if err != nil {
		return nil, err
	}
	if payment == nil {
		return nil, status.Error(codes.NotFound, "there is no such payment")
	}
	return &shopv1.GetPaymentResponse{Payment: payment}, nil
}

type customerKey struct{}

// WithCustomer returns the context of an authenticated customer, by the value of the header Authorization. A service would check
// the password.
func WithCustomer(ctx context.Context, authorization string) (context.Context, error) {
	name, _, ok := (&http.Request{Header: http.Header{"Authorization": {authorization}}}).BasicAuth()
	if !ok || name == "" {
		return nil, status.Error(codes.Unauthenticated, "who are you?")
	}
	return context.WithValue(ctx, customerKey{}, name), nil
}

// Customer is whose the call is: the tenant.
func Customer(ctx context.Context) (string, error) {
	name, ok := ctx.Value(customerKey{}).(string)
	if !ok {
		return "", status.Error(codes.Unauthenticated, "who are you?")
	}
	return name, nil
}
