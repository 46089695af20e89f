package middleware

import (
	"context"
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Replay describes the replayed answer for Route.OnReplay.
type Replay struct {
	// OperationID names the operation whose response is replayed.
	OperationID idem.OperationID
	// State is the record's.
	State storage.State
	// Status is the stored HTTP status.
	Status int
	// ExpiresAt is when the key may be reused; zero while the operation is not finished.
	ExpiresAt time.Time
}

// onReplay are the headers that the route adds to a replay.
func (c *call) onReplay(ctx context.Context, result *idem.Result) (fields []idem.Field) {
	if c.endpoint.route.OnReplay == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			c.log().ErrorContext(ctx, "OnReplay panicked", "error", fmt.Sprint(p))
			fields = nil
		}
	}()
	added, err := c.endpoint.route.OnReplay(ctx, c.request.copy(ctx), Replay{
		OperationID: result.OperationID, State: result.State, Status: result.Response.Status, ExpiresAt: result.ExpiresAt,
	})
	if err != nil {
		c.log().ErrorContext(ctx, "OnReplay failed", "error", err)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(added)) {
		if !c.endpoint.mayAdd(name) {
			c.log().ErrorContext(ctx, "OnReplay may not set the header", "name", name)
			continue
		}
		for _, value := range added[name] {
			fields = append(fields, idem.Field{Name: name, Value: value})
		}
	}
	return fields
}

// ownHeaders are the layer's to say, or belong to the first exchange alone.
var ownHeaders = []string{header.NameReplayed, header.NameStatus, header.NameExpires, header.NameRetryAfter, "Set-Cookie", "Date"}

// mayAdd says whether a replay may carry a header that was not stored: all may but those that are stored, and those that
// say how the stored body is to be read.
func (e *endpoint) mayAdd(name string) bool {
	name = textproto.CanonicalMIMEHeaderKey(name)
	return !e.policy.Replays(name) && !strings.HasPrefix(name, "Content-") &&
		!slices.Contains(connectionHeaders, name) && !slices.Contains(ownHeaders, name)
}
