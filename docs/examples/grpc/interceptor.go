package main

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/idem-go/idem-aws/docs/examples/rpc"
)

// protect runs the guard around the procedures that it protects. A server needs [protectStreams], too.
func protect(guard *rpc.Guard) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		protected, err := guard.Protects(info.FullMethod)
		if err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
		if !protected {
			return handler(ctx, request)
		}
		message, ok := request.(proto.Message)
		if !ok {
			return nil, status.Error(codes.Internal, "the request is no message of Protocol Buffers")
		}
		call := rpc.Call{Procedure: info.FullMethod, Keys: metadata.ValueFromIncomingContext(ctx, "idempotency-key"), Message: message}
		answer := guard.Do(ctx, call, func(ctx context.Context) (proto.Message, error) {
			// Another run, and the engine after it, must see the request as it came.
			reply, err := handler(ctx, proto.Clone(message))
			if err != nil {
				return nil, err
			}
			return reply.(proto.Message), nil
		})
		if err := grpc.SetTrailer(ctx, metadata.New(answer.Trailer)); err != nil {
			return nil, err
		}
		if answer.Status != nil {
			return nil, answer.Status.Err()
		}
		return answer.Reply, nil
	}
}

// protectStreams refuses the streams that the guard does not permit. gRPC asks no unary interceptor about a stream.
func protectStreams(guard *rpc.Guard) grpc.StreamServerInterceptor {
	return func(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if err := guard.CheckStream(info.FullMethod); err != nil {
			return status.Error(codes.Internal, err.Error())
		}
		return handler(service, stream)
	}
}
