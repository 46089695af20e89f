package drift

import (
	"context"
	"maps"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/idem-go/idem-aws/functions/internal/payments"
)

// untraced is an object whose operation has neither message nor record. Its message stays for a retention and a day after its end, which
// is hardly before the object was made: only later may TTL have taken it. Its row stays for good, so that is looked for: an object whose
// operation has failed is money that its client knows nothing of, however late it is compared. Where the object was compared before, with its
// traces, it is passed over, unless it is from before a known loss.
func (r *run) untraced(c claim, o object) {
	if r.rules.now.Before(o.CreatedAt.Add(r.rules.retention + r.rules.outlives - r.rules.grace)) {
		r.nobodys("", o)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.window.Tenant == "" && (!r.again || o.CreatedAt.Before(r.rules.lost)) {
		r.rowless[c] = append(r.rowless[c], o)
		r.rowlessSize++
		return
	}
	r.report.Removed++ // also of one tenant: what is nobody's is left out then
}

// lookForRows compares the rows of untraced objects. Where there is none the object is missing here.
func (r *run) lookForRows(ctx context.Context) error {
	wanted := r.rowless
	r.rowless, r.rowlessSize = map[claim][]object{}, 0
	tenants, err := r.owners(ctx, wanted)
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

// olderRows is how long before its object a row is looked for at most.
const olderRows = WindowMax

// owners tell whose rows there are of some operations. A row is made before its objects, and mostly not longer before than its messages
// may be worked on. But an operator who redrives a message starts that time anew, so the rows that are not there are looked for once
// more, among those of a month before: what is not found is told of as money that nobody has asked for.
func (r *run) owners(ctx context.Context, wanted map[claim][]object) (map[claim]string, error) {
	span := before(wanted)
	older := Window{From: span.From.Add(-olderRows), To: span.From.Add(-r.rules.workMax)}
	span.From = older.To
	tenants, err := r.tables.owners(ctx, wanted, span, 0)
	if err != nil || len(tenants) == len(wanted) {
		return tenants, err
	}
	left := maps.Clone(wanted)
	maps.DeleteFunc(left, func(c claim, _ []object) bool { return tenants[c] != "" })
	found, err := r.tables.owners(ctx, left, older, r.olderReadsMax)
	maps.Copy(tenants, found)
	return tenants, err
}

// before is from the first of the objects to the last, as our clock may have been.
func before(wanted map[claim][]object) (span Window) {
	for _, objects := range wanted {
		for _, o := range objects {
			if span.From.IsZero() || o.CreatedAt.Before(span.From) {
				span.From = o.CreatedAt
			}
			if to := o.CreatedAt.Add(skew); to.After(span.To) {
				span.To = to
			}
		}
	}
	return span
}

// owners tell whose rows there are of some operations, of a span of the index: a row's key has its tenant, which its operation's id
// does not tell. They end where all are found, and after so many reads, newest first; 0: after any number.
func (t tables) owners(ctx context.Context, wanted map[claim][]object, span Window, readsMax int) (map[claim]string, error) {
	ids := map[string]claim{}
	for c := range wanted {
		ids[string(c.kind)+"/"+payments.EntryID(c.kind, c.operation)] = c
	}
	found := map[claim]string{}
	rows := newHours(t, span)
	rows.whole, rows.readsMax = true, readsMax
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
