package rpc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/idem-go/idem-aws/idem"
)

// ErrConfig is returned at start for a configuration that would leave a call unprotected.
var ErrConfig = errors.New("rpc: configuration")

// Config is what New takes. All fields are required.
type Config struct {
	// Services are all services of the server. Calls of others are refused, streams too.
	Services []protoreflect.ServiceDescriptor
	// Operations are the protected procedures, by their full names: "/shop.v1.PaymentService/Pay". An unsafe procedure that needs no
	// protection has an operation with the policy idem.Exempt.
	Operations map[string]idem.Operation
	// Tenant says whose the call is, by what the server authenticated. Its error is the call's status.
	Tenant func(ctx context.Context) (string, error)
}

// Guard protects unary calls. It is safe for concurrent use.
type Guard struct {
	tenant func(ctx context.Context) (string, error)
	// procedures has every one of Config.Services; those that need no protection are nil.
	procedures map[string]*procedure
}

type procedure struct {
	registered *idem.Registered
	policy     idem.Policy
	kind       idem.Kind
}

// New registers the operations. It returns an [*idem.ConfigError], or an ErrConfig that names the procedure: one that does not
// exist, one that streams, or one that may have effects and has no operation. A procedure whose idempotency_level is
// NO_SIDE_EFFECTS needs none.
func New(engine *idem.Engine, cfg Config) (*Guard, error) {
	if cfg.Tenant == nil {
		return nil, fmt.Errorf("%w: Tenant must be given", ErrConfig)
	}
	methods := map[string]protoreflect.MethodDescriptor{}
	for _, service := range cfg.Services {
		for i := range service.Methods().Len() {
			method := service.Methods().Get(i)
			methods[fmt.Sprintf("/%s/%s", service.FullName(), method.Name())] = method
		}
	}
	for name := range cfg.Operations {
		if methods[name] == nil {
			return nil, fmt.Errorf("%w: %s: no service has this procedure", ErrConfig, name)
		}
	}
	g := &Guard{tenant: cfg.Tenant, procedures: map[string]*procedure{}}
	for _, name := range slices.Sorted(maps.Keys(methods)) { // so that the same mistake is reported each time
		method := methods[name]
		op, named := cfg.Operations[name]
		switch {
		case !named && safe(method), named && op.Policy.ExemptReason != "":
			g.procedures[name] = nil
			continue
		case !named:
			return nil, fmt.Errorf("%w: %s: may have effects: it needs an operation, or the policy idem.Exempt", ErrConfig, name)
		}
		p, err := register(engine, name, method, op)
		if err != nil {
			return nil, err
		}
		g.procedures[name] = p
	}
	return g, nil
}

func safe(method protoreflect.MethodDescriptor) bool {
	options, ok := method.Options().(*descriptorpb.MethodOptions)
	return ok && options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
}

func register(engine *idem.Engine, name string, method protoreflect.MethodDescriptor, op idem.Operation) (*procedure, error) {
	switch policy := op.Policy; {
	case method.IsStreamingClient() || method.IsStreamingServer():
		return nil, fmt.Errorf("%w: %s: a stream can't be stored and replayed: protect a unary procedure", ErrConfig, name)
	case op.Kind == idem.KindDeferred:
		return nil, fmt.Errorf("%w: %s: an RPC has no answer that stands for one that comes later: use another kind", ErrConfig, name)
	case policy.MissingKey != idem.MissingKeyRefused, policy.KeyTime != idem.KeyTimeNone, policy.InFlight == idem.InFlightAccepted,
		policy.BindPrincipal, policy.Observe, policy.StoreServerErrors:
		return nil, fmt.Errorf("%w: %s: the policy %q asks for what this interceptor does not do", ErrConfig, name, policy.Name)
	}
	registered, err := engine.Register(op)
	if err != nil {
		return nil, err
	}
	return &procedure{registered: registered, policy: op.Policy, kind: op.Kind}, nil
}

// Protects says whether calls of the procedure need [Guard.Do]. It returns an ErrConfig for one of no service in Config.Services:
// nobody has said whether its calls may be made twice, so they must be refused.
func (g *Guard) Protects(name string) (bool, error) {
	p, known := g.procedures[name]
	if !known {
		return false, fmt.Errorf("%w: %s: its service is not among Config.Services", ErrConfig, name)
	}
	return p != nil, nil
}

// CheckStream returns an ErrConfig for a stream that must be refused: one of no service in Config.Services, and one of a protected
// procedure, whose unary calls a proxy may serve as streams. [Guard.Do] would not be asked there.
func (g *Guard) CheckStream(name string) error {
	protected, err := g.Protects(name)
	if protected {
		return fmt.Errorf("%w: %s: it is protected, and a stream can't be", ErrConfig, name)
	}
	return err
}

// Procedures are those that it protects, in order.
func (g *Guard) Procedures() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(g.procedures)), func(name string) bool { return g.procedures[name] == nil })
}

// Handler serves a call, under a context that [TxFrom] reads.
type Handler func(ctx context.Context) (proto.Message, error)
