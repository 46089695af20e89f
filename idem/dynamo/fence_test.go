package dynamo

import (
	"maps"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

var placeholder = regexp.MustCompile(`[#:][a-z0-9]+`)

// DynamoDB refuses a name or a value that stands nowhere, as it refuses a placeholder without one. All shapes of fences are
// tried twice, because the second time their text is there already.
func TestEveryFenceNamesExactlyWhatStandsInIt(t *testing.T) {
	key := idem.Scope{Tenant: "tenant", Operation: "orders.create", Key: "1"}.RecordKey()
	operation, err := key.Operation(protocol.ID{1})
	if err != nil {
		t.Fatal(err)
	}
	states := []storage.State{
		storage.StateInProgress, storage.StatePending, storage.StateCompleted, storage.StateFailed, storage.StateFailedRetryable, storage.StateUnknown,
	}
	texts := map[string]bool{}
	each := func(f storage.Fence) {
		c, err := fenced(key, f)
		if f.FreeAt.IsZero() && f.Revision == "" && len(f.States) == 0 {
			if err == nil {
				t.Errorf("%+v: taken, and admits nothing", f)
			}
			return
		}
		if err != nil {
			t.Fatalf("%+v: %v", f, err)
		}
		used := slices.Compact(slices.Sorted(slices.Values(placeholder.FindAllString(*c.text, -1))))
		given := slices.Sorted(slices.Values(slices.AppendSeq(slices.Collect(maps.Keys(c.names)), maps.Keys(c.values))))
		if !slices.Equal(used, given) {
			t.Errorf("%s\nuses  %v\ngiven %v", *c.text, used, given)
		}
		texts[*c.text] = true
	}
	for range 2 {
		for n := range len(states) + 1 {
			for bits := range 1 << 6 {
				f := storage.Fence{OperationID: operation, States: states[:n], AnyEpoch: bits&1 != 0}
				for i, set := range []func(){
					func() { f.Revision = "r" }, func() { f.Owner = "o" }, func() { f.Epoch = 7 },
					func() { f.FreeAt = time.UnixMilli(1) }, func() { f.LeaseBefore = time.UnixMilli(2) },
				} {
					if bits&(2<<i) != 0 {
						set()
					}
				}
				each(f)
			}
		}
	}
	if len(texts) != 294 { // 6 without a holder; 6 counts of states, 2 owners, 3 epochs, with or without a revision, a free key and a lease
		t.Errorf("%d texts, want 294: each shape has its own", len(texts))
	}
}

// What a fence's text is made of is shared by all calls: a change of a row's part adds names of its own to its own.
func TestNamesThatAnUpdateAddsStayItsOwn(t *testing.T) {
	key := idem.Scope{Tenant: "tenant", Operation: "orders.create", Key: "1"}.RecordKey()
	f := storage.Fence{OperationID: "op_1", Revision: "r"}
	c, err := fencedStored(key, f)
	if err != nil {
		t.Fatal(err)
	}
	c.assign([]string{"xx"}, item{"xx": numberValue(1)})
	again, err := fenced(key, f)
	if err != nil || again.names["#xx"] != "" || c.names["#xx"] == "" {
		t.Errorf("names %v, then %v; %v", c.names, again.names, err)
	}
}
