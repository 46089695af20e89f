package dynamo_test

import (
	"testing"

	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Native TTL must not remove a record under a lease that was renewed again and again, nor ever one that it may not remove.
func TestNativeTTLFollowsARenewedLease(t *testing.T) {
	store, client, tables := onDynoxide(t, dynamo.Config{})
	for kind, removed := range map[storage.Kind]bool{storage.KindAtomic: true, storage.KindWrapped: false} {
		r := reserved(t)
		r.Kind = kind
		must(t, store.Insert(t.Context(), r, base))
		r = renewed(r)
		must(t, store.Renew(t.Context(), r, storage.FenceOfHolder(r)))
		ttl, there := stored(t, client, tables.Idempotency, "pk", string(r.Key))["ttl"]
		if there != removed {
			t.Errorf("%s: ttl %v", kind, ttl)
		}
		if want := int(r.LeaseUntil.Add(r.Retention+late).Unix()) + 1; removed && numberOf(t, ttl) != want { // rounded up
			t.Errorf("%s: ttl %v, want %d", kind, ttl, want)
		}
	}
}
