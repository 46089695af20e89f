package main

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/idem-go/idem-aws/docs/examples/rpc"
)

// protect runs the guard around the procedures that it protects, and refuses the streams that it does not permit. replies has the type
// of each one's reply, which a replay is put into.
func protect(guard *rpc.Guard, replies map[string]reply) (connect.Interceptor, error) {
	for _, procedure := range guard.Procedures() {
		if replies[procedure] == nil {
			return nil, fmt.Errorf("%s: its type of reply must be given", procedure)
		}
	}
	return interceptor{guard: guard, UnaryInterceptorFunc: func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
			procedure := request.Spec().Procedure
			protected, err := guard.Protects(procedure)
			if err != nil {
				return nil, connect.NewError(connect.CodeInternal, err)
			}
			if !protected {
				response, err := next(ctx, request)
				return response, fromStatus(err)
			}
			message, ok := request.Any().(proto.Message)
			if !ok {
				return nil, connect.NewError(connect.CodeInternal, errors.New("the request is no message of Protocol Buffers"))
			}
			call := rpc.Call{Procedure: procedure, Keys: request.Header().Values("Idempotency-Key"), Message: proto.Clone(message)}
			var made connect.AnyResponse
			answer := guard.Do(ctx, call, func(ctx context.Context) (proto.Message, error) {
				// Another run must see the request as it came. A connect.Request has its message behind a pointer, so
				// it is put back in place.
				proto.Reset(message)
				proto.Merge(message, call.Message)
				response, err := next(ctx, request)
				if err != nil {
					return nil, toStatus(err)
				}
				made = response
				return response.Any().(proto.Message), nil
			})
			if answer.Status != nil {
				failed := newError(answer.Status)
				for name, value := range answer.Trailer {
					failed.Meta().Set(name, value)
				}
				return nil, failed
			}
			response := made // with the headers of the handler, which are not stored
			if !answer.Executed {
				response = replies[procedure](answer.Reply)
			}
			for name, value := range answer.Trailer {
				response.Trailer().Set(name, value)
			}
			return response, nil
		}
	}}, nil
}

// interceptor is one of unary calls that is asked about streams, too.
type interceptor struct {
	connect.UnaryInterceptorFunc
	guard *rpc.Guard
}

// WrapStreamingHandler implements connect.Interceptor.
func (i interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, stream connect.StreamingHandlerConn) error {
		if err := i.guard.CheckStream(stream.Spec().Procedure); err != nil {
			return connect.NewError(connect.CodeInternal, err)
		}
		return next(ctx, stream)
	}
}

// reply is a message as the response of its procedure: Connect's handlers take no other type.
type reply func(proto.Message) connect.AnyResponse

// replyOf is the reply of procedures that answer with T.
func replyOf[T any, M interface {
	*T
	protoreflect.ProtoMessage
}]() reply {
	return func(message proto.Message) connect.AnyResponse { return connect.NewResponse((*T)(message.(M))) }
}

// toStatus is an error of a Connect handler with its details, as the guard stores it. Others are left as they are.
func toStatus(err error) error {
	var failed *connect.Error
	if !errors.As(err, &failed) {
		return err
	}
	s := &spb.Status{Code: int32(failed.Code()), Message: failed.Message()}
	for _, detail := range failed.Details() {
		s.Details = append(s.Details, &anypb.Any{TypeUrl: "type.googleapis.com/" + detail.Type(), Value: detail.Bytes()})
	}
	return status.FromProto(s).Err()
}

// fromStatus is an error of the till in Connect's form.
func fromStatus(err error) error {
	if s, ok := status.FromError(err); ok && s.Code() != codes.OK {
		return newError(s)
	}
	return err
}

func newError(s *status.Status) *connect.Error {
	failed := connect.NewError(connect.Code(s.Code()), errors.New(s.Message()))
	for _, detail := range s.Proto().GetDetails() {
		if d, err := connect.NewErrorDetail(detail); err == nil {
			failed.AddDetail(d)
		}
	}
	return failed
}
