package rpc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/idem-go/idem-aws/docs/examples/internal/shoprpc/shopv1"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Each error of the engine has the code that the README's table says, and says when to come again where that helps.
func TestEachRefusalHasItsCode(t *testing.T) {
	secret := errors.New("table shop-idempotency, key k-17")
	for name, c := range map[string]struct {
		err    error
		code   codes.Code
		reason string
		again  bool
	}{
		"no key":             {header.ErrMissing, codes.InvalidArgument, header.CodeKeyMissing, false},
		"an empty key":       {header.ErrEmpty, codes.InvalidArgument, header.CodeKeyMissing, false},
		"a malformed key":    {&header.InvalidError{Reason: header.ReasonTooLong}, codes.InvalidArgument, header.CodeKeyInvalid, false},
		"expired":            {&idem.ExpiredError{}, codes.FailedPrecondition, header.CodeKeyExpired, false},
		"erased":             {fmt.Errorf("%w: %w", storage.ErrErased, secret), codes.FailedPrecondition, header.CodeResponseErased, false},
		"no time":            {&idem.UnavailableError{RetryAfter: time.Second, Cause: idem.ErrNoTime}, codes.DeadlineExceeded, header.CodeNoTime, true},
		"tables unavailable": {&idem.UnavailableError{RetryAfter: time.Second, Cause: secret}, codes.Unavailable, header.CodeStoreUnavailable, true},
		"quota":              {&idem.QuotaError{Limit: "new keys", RetryAfter: time.Second}, codes.ResourceExhausted, header.CodeQuotaExceeded, true},
		"reply too large":    {fmt.Errorf("%w: %w", idem.ErrResponseTooLarge, secret), codes.Internal, header.CodeResponseTooLarge, false},
		"request too large":  {canonical.ErrTooLarge, codes.ResourceExhausted, "", false},
		"handler":            {&idem.HandlerError{Cause: secret}, codes.Internal, "", false},
		"handler's time":     {&idem.HandlerError{Cause: context.DeadlineExceeded}, codes.DeadlineExceeded, "", false},
		"the tenant's error": {status.Error(codes.Unauthenticated, "who are you?"), codes.Unauthenticated, "", false},
		"anything else":      {secret, codes.Internal, "", false},
	} {
		t.Run(name, func(t *testing.T) { wants(t, refusal(c.err), c.code, c.reason, c.again) })
	}
}

func wants(t *testing.T, s *status.Status, code codes.Code, reason string, again bool) {
	t.Helper()
	gotReason, gotAgain := "", false
	for _, detail := range s.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			gotReason = detail.GetReason()
		case *errdetails.RetryInfo:
			gotAgain = detail.GetRetryDelay().AsDuration() > 0
		}
	}
	if s.Code() != code || gotReason != reason || gotAgain != again {
		t.Errorf("got %v %q, again %v; want %v %q, %v", s, gotReason, gotAgain, code, reason, again)
	}
	if message := s.Message(); len(message) == 0 || message == "table shop-idempotency, key k-17" {
		t.Errorf("the message is %q", message)
	}
}

const pay = "/shop.v1.PaymentService/Pay"

// A wrapped handler that failed may have had its effect: it is not run again, and the next caller is told so.
func TestAnUnknownOutcomeIsNotRunAgain(t *testing.T) {
	guard := newGuard(t, idem.Operation{Name: "payments.pay", Kind: idem.KindWrapped, Policy: idem.IETF(), UnknownToOperator: true})
	runs := 0
	fails := func(ctx context.Context) (proto.Message, error) {
		if _, ok := TxFrom(ctx); ok {
			t.Error("a wrapped handler has a transaction that nobody commits")
		}
		runs++
		return nil, status.Error(codes.Unavailable, "the provider is down")
	}
	call := Call{Procedure: pay, Keys: []string{"k"}, Message: wrapperspb.String("a")}
	first := guard.Do(t.Context(), call, fails)
	wants(t, first.Status, codes.Unavailable, "", false)
	if said := first.Trailer["idempotency-status"]; said != "unknown" {
		t.Errorf("the trailer says %q of a failure that may have had an effect", said)
	}
	wants(t, guard.Do(t.Context(), call, fails).Status, codes.Aborted, header.CodeOutcomeUnknown, true)
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
}

// A handler's context is cancelled where its lease can't be renewed any more, and its own call may have arrived by then. Were the
// cancellation stored, every retry would get it as the outcome, and the client would pay again under another key.
func TestACallThatWasCutOffIsStoredUnderNoPolicy(t *testing.T) {
	policy := idem.IETF()
	policy.StoreClientErrors = true
	for _, code := range []codes.Code{codes.Canceled, codes.DeadlineExceeded} {
		t.Run(code.String(), func(t *testing.T) {
			guard := newGuard(t, idem.Operation{Name: "payments.pay", Kind: idem.KindWrapped, Policy: policy, UnknownToOperator: true})
			call := Call{Procedure: pay, Keys: []string{"k"}, Message: wrapperspb.String("a")}
			cutOff := func(context.Context) (proto.Message, error) { return nil, status.Error(code, "cut off") }
			first := guard.Do(t.Context(), call, cutOff)
			wants(t, first.Status, code, "", false)
			if said := first.Trailer["idempotency-status"]; said != "unknown" {
				t.Errorf("the trailer says %q of a call that may have had an effect", said)
			}
			again := guard.Do(t.Context(), call, func(context.Context) (proto.Message, error) { t.Error("run again"); return nil, nil })
			wants(t, again.Status, codes.Aborted, header.CodeOutcomeUnknown, true)
		})
	}
}

// Nobody resolves an outcome that waits for an operator, and nobody but an operator one that was only observed.
func TestAnUnknownOutcomeSaysWhoDecidesIt(t *testing.T) {
	for name, c := range map[string]struct {
		declare func(*idem.Operation)
		want    string
	}{
		"a probe":        {func(op *idem.Operation) { op.Probed = true }, "; it is being resolved; "},
		"an operator":    {func(op *idem.Operation) { op.UnknownToOperator = true }, "; it waits for the API's operator; "},
		"other statuses": {func(op *idem.Operation) { op.ReleaseOn = []int{http.StatusTooManyRequests} }, "; it waits for the API's operator; "},
	} {
		t.Run(name, func(t *testing.T) {
			op := idem.Operation{Name: "payments.pay", Kind: idem.KindWrapped, Policy: idem.IETF()}
			c.declare(&op)
			guard := newGuard(t, op)
			call := Call{Procedure: pay, Keys: []string{"k"}, Message: wrapperspb.String("a")}
			fails := func(context.Context) (proto.Message, error) {
				return nil, status.Error(codes.Unavailable, "the provider is down")
			}
			guard.Do(t.Context(), call, fails)
			if said := guard.Do(t.Context(), call, fails).Status.Message(); !strings.Contains(said, c.want) {
				t.Errorf("it says %q, want %q", said, c.want)
			}
		})
	}
	if said := whoDecides(idem.Operation{Probed: true}, &idem.Result{OnlyObserved: true}); !strings.Contains(said, "only the API's operator") {
		t.Errorf("of what was only observed it says %q", said)
	}
}

// Whoever reads that nothing was executed pays again, under another key: nobody is told so of a wrapped handler that failed.
func TestAWrappedHandlersFailureIsNotCalledHarmless(t *testing.T) {
	guard := newGuard(t, idem.Operation{Name: "payments.pay", Kind: idem.KindWrapped, Policy: idem.IETF(), UnknownToOperator: true})
	for name, failure := range map[string]error{
		"time-over": context.DeadlineExceeded, "another": errors.New("broken pipe"),
	} {
		t.Run(name, func(t *testing.T) {
			call := Call{Procedure: pay, Keys: []string{name}, Message: wrapperspb.String("a")}
			s := guard.Do(t.Context(), call, func(context.Context) (proto.Message, error) { return nil, failure }).Status
			if s.Code() == codes.OK || strings.Contains(s.Message(), "nothing") {
				t.Errorf("got %v of a call that may have been executed", s)
			}
			again := guard.Do(t.Context(), call, func(context.Context) (proto.Message, error) { t.Error("run again"); return nil, failure })
			wants(t, again.Status, codes.Aborted, header.CodeOutcomeUnknown, true)
		})
	}
}

// What is stored need not come from a handler: a refused write and the engine store a problem. Its caller is told what it says.
func TestAStoredProblemIsAStatus(t *testing.T) {
	rejecting := func(httpStatus int) Handler {
		return func(context.Context) (proto.Message, error) {
			return nil, &idem.RejectedError{Problem: idem.NewProblem(httpStatus, "no", "No", "No.")}
		}
	}
	soldOut := func(ctx context.Context) (proto.Message, error) {
		tx, _ := TxFrom(ctx)
		tx.Write(memstore.Write{
			Key: "row", Condition: func([]byte) bool { return false },
			Failure: idem.Reject(idem.NewProblem(http.StatusConflict, "sold_out", "Sold out", "There is none left.")),
		})
		return wrapperspb.String("reply"), nil
	}
	large := func(context.Context) (proto.Message, error) { return wrapperspb.Bytes(make([]byte, 5<<20)), nil }
	for name, c := range map[string]struct {
		kind    idem.Kind
		handler Handler
		code    codes.Code
		reason  string
	}{
		"a refused write":                   {idem.KindAtomic, soldOut, codes.FailedPrecondition, "sold_out"},
		"400":                               {idem.KindAtomic, rejecting(http.StatusBadRequest), codes.InvalidArgument, "no"},
		"403":                               {idem.KindAtomic, rejecting(http.StatusForbidden), codes.PermissionDenied, "no"},
		"404":                               {idem.KindAtomic, rejecting(http.StatusNotFound), codes.NotFound, "no"},
		"402":                               {idem.KindAtomic, rejecting(http.StatusPaymentRequired), codes.FailedPrecondition, "no"},
		"a wrapped reply that is too large": {idem.KindWrapped, large, codes.Internal, header.CodeResponseNotKept},
	} {
		t.Run(name, func(t *testing.T) {
			guard := newGuard(t, idem.Operation{Name: "payments.pay", Kind: c.kind, Policy: idem.IETF(), UnknownToOperator: c.kind == idem.KindWrapped})
			call := Call{Procedure: pay, Keys: []string{"k"}, Message: wrapperspb.String("a")}
			for range 2 {
				wants(t, guard.Do(t.Context(), call, c.handler).Status, c.code, c.reason, false)
			}
		})
	}
	t.Run("an operator's answer", func(t *testing.T) {
		_, s := decode(idem.Response{Status: http.StatusOK, Header: []idem.Field{{Name: "Content-Type", Value: "application/json"}}, Body: []byte("{}")})
		wants(t, s, codes.Internal, "", false)
	})
}

// A reply that lives as long as its resource names no time at which it expires.
func TestAReplyWithoutEndNamesNone(t *testing.T) {
	policy := idem.IETF()
	policy.ResourceBacked = true
	guard := newGuard(t, idem.Operation{Name: "payments.pay", Kind: idem.KindAtomic, Policy: policy})
	answer := guard.Do(t.Context(), Call{Procedure: pay, Keys: []string{"k"}, Message: wrapperspb.String("a")}, func(context.Context) (proto.Message, error) {
		return wrapperspb.String("reply"), nil
	})
	if expires, ok := answer.Trailer["idempotency-expires"]; ok || answer.Reply == nil {
		t.Errorf("got %+v, which expires %s", answer, expires)
	}
}

// A status error commits nothing of what its handler wrote, also where the status is stored.
func TestAStatusErrorCommitsNoWrites(t *testing.T) {
	for code, wantRuns := range map[codes.Code]int{codes.FailedPrecondition: 1, codes.Unavailable: 2, codes.Canceled: 2} {
		t.Run(code.String(), func(t *testing.T) {
			guard, store := newGuardOn(t, idem.Operation{Name: "payments.pay", Kind: idem.KindAtomic, Policy: idem.IETF()})
			runs := 0
			fails := func(ctx context.Context) (proto.Message, error) {
				runs++
				tx, _ := TxFrom(ctx)
				tx.Write(memstore.Write{Key: "row", Apply: func([]byte) []byte { return []byte("written") }})
				return nil, status.Error(code, "no")
			}
			call := Call{Procedure: pay, Keys: []string{"k"}, Message: wrapperspb.String("a")}
			for range 2 {
				wants(t, guard.Do(t.Context(), call, fails).Status, code, "", false)
			}
			if row := store.Row("row"); row != nil || runs != wantRuns {
				t.Errorf("%d runs, want %d; the row is %q", runs, wantRuns, row)
			}
		})
	}
}

func newGuard(t *testing.T, op idem.Operation) *Guard {
	guard, _ := newGuardOn(t, op)
	return guard
}

func newGuardOn(t *testing.T, op idem.Operation) (*Guard, *memstore.Store) {
	t.Helper()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	guard, err := New(engine, Config{
		Services:   []protoreflect.ServiceDescriptor{shopv1.File_shop_v1_shop_proto.Services().ByName("PaymentService")},
		Operations: map[string]idem.Operation{pay: op},
		Tenant:     func(context.Context) (string, error) { return "shop", nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return guard, store
}
