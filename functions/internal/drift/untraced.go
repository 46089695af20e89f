package drift

import (
	"context"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/idem-go/idem-aws/functions/internal/payments"
)

// untraced is an object whose operation has neither message nor record. Its message stays for a retention and a day after its end, which
// is hardly before the object was made: only later may TTL have taken it. Before a known loss a message may be gone at any age, so there
// age proves nothing, and the row is looked for.
func (r *run) untraced(c claim, o object) {
	if r.rules.now.Before(o.CreatedAt.Add(r.rules.retention + r.rules.outlives - r.rules.grace)) {
		r.nobodys("", o)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.window.Tenant == "" && o.CreatedAt.Before(r.rules.lost) {
		r.rowless[c] = append(r.rowless[c], o)
		r.rowlessSize++
		return
	}
	r.report.Removed++ // also of one tenant: what is nobody's is left out then
}

// lookForRows compares the rows of untraced objects from before a known loss. Where there is none the object is missing here.
func (r *run) lookForRows(ctx context.Context) error {
	wanted := r.rowless
	r.rowless, r.rowlessSize = map[claim][]object{}, 0
	tenants, err := r.tables.owners(ctx, wanted, r.rules.workMax)
	if err != nil {
		return err
	}
	looks, ctx := errgroup.WithContext(ctx)
	looks.SetLimit(looksAtOnce)
	for c, objects := range wanted {
		if tenant, ok := tenants[c]; ok {
			looks.Go(func() error { return r.late(ctx, c, tenant, objects) })
			continue
		}
		for _, o := range objects {
			r.nobodys("", o)
		}
	}
	return looks.Wait()
}

// owners tell whose rows there are of some operations, by the index: a row's key has its tenant, which its operation's id does not tell.
// A row is made before its objects, and not longer before than its messages may be worked on.
func (t tables) owners(ctx context.Context, wanted map[claim][]object, workMax time.Duration) (map[claim]string, error) {
	ids, span := map[string]claim{}, Window{}
	for c, objects := range wanted {
		ids[string(c.kind)+"/"+payments.EntryID(c.kind, c.operation)] = c
		for _, o := range objects {
			if from := o.CreatedAt.Add(-workMax); span.From.IsZero() || from.Before(span.From) {
				span.From = from
			}
			if to := o.CreatedAt.Add(skew); to.After(span.To) {
				span.To = to
			}
		}
	}
	found := map[claim]string{}
	rows := newHours(t, span)
	rows.whole = true
	for len(found) < len(wanted) {
		page, err := rows.next(ctx, batchMax)
		if err != nil || len(page) == 0 {
			return found, err
		}
		for _, row := range page {
			kind, _, _ := strings.Cut(row.pk, "#")
			if c, ok := ids[kind+row.pk[strings.LastIndexByte(row.pk, '/'):]]; ok {
				found[c] = payments.EntryTenant(row.pk)
			}
		}
	}
	return found, nil
}
