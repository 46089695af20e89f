package main

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/idem-go/idem-aws/bench/hand"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
)

// Whoever steps through a request, or reads its stack, goes through as many frames. The goal is 16 from ServeHTTP to the
// call of the SDK, which is reached; the bound to the store is what it is today.
const (
	framesToStoreMax = 13
	framesToSDKMax   = 16
)

func TestFewFramesLieBetweenServeHTTPAndTheSDK(t *testing.T) {
	var toStore, toSDK int
	var counting string
	all, err := open(t.Context(), dynamotest.Endpoint(t, dynamotest.Dynoxide), paths(), func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Frames",
				func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
					if store, sdk, ok := frames(); ok && counting != "" {
						t.Logf("%s: %d frames to the store, %d to the SDK's %s", counting, store, sdk, hand.Call{Input: in.Parameters}.Name())
						toStore, toSDK = max(toStore, store), max(toSDK, sdk)
					}
					return next.HandleInitialize(ctx, in)
				}), middleware.After)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		counting = s.path.name
		if err := post(s.idem, s.batch(1)[0]); err != nil {
			t.Fatal(err)
		}
	}
	if toStore == 0 || toStore > framesToStoreMax || toSDK > framesToSDKMax {
		t.Errorf("there are up to %d frames to the store and %d to the SDK, want at most %d and %d", toStore, toSDK, framesToStoreMax, framesToSDKMax)
	}
}

// frames counts those from the middleware's ServeHTTP, its own included, to the call of the store and to that of the SDK;
// not ok where idem makes no call.
func frames() (toStore, toSDK int, ok bool) {
	const (
		sdk   = "service/dynamodb.(*Client)."
		store = "/idem/dynamo.(*Store)."
		serve = "/middleware.(*endpoint).ServeHTTP"
	)
	pcs := make([]uintptr, 256)
	stack := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for more := true; more; {
		var frame runtime.Frame
		frame, more = stack.Next()
		toStore, toSDK = toStore+1, toSDK+1
		switch {
		case strings.Contains(frame.Function, sdk):
			toSDK = 0
		case strings.Contains(frame.Function, store):
			toStore = 0
		case strings.HasSuffix(frame.Function, serve):
			return toStore, toSDK, true
		}
	}
	return 0, 0, false
}
