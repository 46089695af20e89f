package rpc

import (
	"context"
	"log/slog"
	"strings"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Call is one unary call.
type Call struct {
	// Procedure is the full name: "/shop.v1.PaymentService/Pay".
	Procedure string
	// Keys are the values of the metadata "idempotency-key".
	Keys    []string
	Message proto.Message
}

// Answer is the end of a call: a reply, or a status that is not OK.
type Answer struct {
	Reply  proto.Message
	Status *status.Status
	// Executed says that the reply is that of this call's own run.
	Executed bool
	// Trailer says what became of the key.
	Trailer map[string]string
}

// Do answers a call of a protected procedure.
func (g *Guard) Do(ctx context.Context, call Call, h Handler) Answer {
	p := g.procedures[call.Procedure]
	request, err := g.request(ctx, p, call)
	if err != nil {
		return Answer{Status: refusal(err)}
	}
	result, err := p.registered.Do(ctx, request, func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
		return p.serve(ctx, tx, h)
	})
	if err != nil {
		slog.WarnContext(ctx, "call failed", "procedure", call.Procedure, "key_hash", p.registered.RecordKey(request), "error", err)
		return Answer{Status: refusal(err)}
	}
	return answer(p.registered.Operation(), result)
}

func (g *Guard) request(ctx context.Context, p *procedure, call Call) (idem.Request, error) {
	tenant, err := g.tenant(ctx)
	if err != nil {
		return idem.Request{}, err
	}
	key, err := header.ParseKey(call.Keys, header.KeyRule{Syntax: header.Syntax(p.policy.Syntax), BytesMin: p.policy.KeyBytesMin})
	if err != nil {
		return idem.Request{}, err
	}
	return idem.Request{Tenant: tenant, Key: key, Input: canonical.Input{
		MediaType: mediaType, Body: fingerprinted(call.Message),
	}}, nil
}

// serve runs the handler. A status is a response, which the engine stores or not by its HTTP status.
func (p *procedure) serve(ctx context.Context, tx *idem.Tx, h Handler) (idem.Response, error) {
	collected := &Tx{id: tx.OperationID()}
	if p.kind != idem.KindWrapped {
		ctx = context.WithValue(ctx, txKey{}, collected)
	}
	reply, err := h(ctx)
	if err != nil {
		s, ok := status.FromError(err)
		if !ok {
			return idem.Response{}, err
		}
		return encode(httpStatus(s.Code()), s.Proto())
	}
	tx.Write(collected.writes...)
	return encode(httpStatus(codes.OK), reply)
}

const mediaType = "application/x-protobuf"

// encode stores a message with its name, which a replay needs to read it.
func encode(httpStatus int, message proto.Message) (idem.Response, error) {
	named, err := anypb.New(message)
	if err != nil {
		return idem.Response{}, err
	}
	body, err := proto.Marshal(named)
	return idem.Response{Status: httpStatus, Header: []idem.Field{{Name: "Content-Type", Value: mediaType}}, Body: body}, err
}

// decode reads what is stored: a reply, a status, or the problem of a call that was refused by idem.Reject or ended by the engine.
func decode(response idem.Response) (proto.Message, *status.Status) {
	if response.Get("Content-Type") != mediaType {
		return nil, refused(response)
	}
	named := new(anypb.Any)
	if err := proto.Unmarshal(response.Body, named); err != nil {
		return nil, status.New(codes.Internal, "the stored reply can't be read")
	}
	message, err := named.UnmarshalNew()
	if err != nil {
		return nil, status.New(codes.Internal, "the stored reply can't be read")
	}
	if stored, ok := message.(*spb.Status); ok {
		return nil, status.FromProto(stored)
	}
	return message, nil
}

// answer translates what became of the key.
func answer(op idem.Operation, result *idem.Result) Answer {
	a := Answer{Trailer: map[string]string{lower(header.NameStatus): string(result.Outcome)}}
	switch result.Outcome {
	case idem.OutcomeExecuted, idem.OutcomeReplayed:
		if result.State == storage.StateUnknown { // the handler's own answer, of which nobody knows what it did
			a.Trailer[lower(header.NameStatus)] = string(idem.OutcomeUnknown)
		}
		a.Reply, a.Status = decode(result.Response)
		a.Executed = result.Outcome == idem.OutcomeExecuted
		if result.Outcome == idem.OutcomeReplayed {
			a.Trailer[lower(header.NameReplayed)] = "true"
		}
		if result.State.Final() && !result.ExpiresAt.IsZero() { // zero: it lives as long as its resource
			a.Trailer[lower(header.NameExpires)] = header.FormatExpires(result.ExpiresAt)
		}
	default:
		a.Status = outcome(op, result)
	}
	return a
}

// lower is the name of a header as metadata has it.
func lower(name string) string { return strings.ToLower(name) }
