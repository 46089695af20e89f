package dynamo_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// spans is a tracer that keeps a line for each span that has ended.
type spans struct{ lines []string }

type oneSpan struct {
	of         *spans
	name       string
	attributes []string
	failed     string
}

func (s *spans) Begin(ctx context.Context, name string, _ trace.Options) (context.Context, trace.Recording) {
	return ctx, &oneSpan{of: s, name: name}
}
func (s *oneSpan) Context() trace.Context { return traced }
func (s *oneSpan) Set(attributes ...trace.Attribute) {
	for _, a := range attributes {
		s.attributes = append(s.attributes, fmt.Sprintf("%s=%v", a.Name, a.Value))
	}
}
func (s *oneSpan) Link(trace.Context) {}
func (s *oneSpan) Fail(code string)   { s.failed = " failed: " + code }
func (s *oneSpan) End() {
	s.of.lines = append(s.of.lines, s.name+" "+strings.Join(s.attributes, " ")+s.failed)
}

// A call below a span is a span of its own. A failed condition is an answer, which its code names; a call without a reply
// has failed. A call that belongs to nothing is not traced.
func TestCallBelowASpanIsTraced(t *testing.T) {
	store, _, _ := onDynoxide(t, dynamo.Config{})
	recorded := &spans{}
	ctx, _ := trace.Begin(t.Context(), recorded, "above", trace.Options{})
	r := reserved(t)
	must(t, store.Insert(ctx, r, base))
	if err := store.Insert(ctx, r, base); err == nil {
		t.Fatal("inserted twice")
	}
	if _, err := store.Get(ctx, r.Key); err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := store.Get(canceled, r.Key); err == nil {
		t.Fatal("read without time")
	}
	must(t, store.Renew(t.Context(), renewed(r), storage.FenceOfHolder(r)))
	const by = "db.system.name=aws.dynamodb db.operation.name="
	want := []string{
		"dynamodb.PutItem " + by + "PutItem",
		"dynamodb.PutItem " + by + "PutItem db.response.status_code=ConditionalCheckFailedException",
		"dynamodb.GetItem " + by + "GetItem",
		"dynamodb.GetItem " + by + "GetItem db.response.status_code=no_reply failed: no_reply",
	}
	if !slices.Equal(recorded.lines, want) {
		t.Errorf("spans\n%s\nwant\n%s", strings.Join(recorded.lines, "\n"), strings.Join(want, "\n"))
	}
}
