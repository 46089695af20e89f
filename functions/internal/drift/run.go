package drift

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

const (
	// lag is for how long after its row most effects have happened: so far beyond the window listings are read. What came
	// later is looked up by key. Every step reads so much twice: at 10,000 payments a second it is as much as a step compares, and
	// a minute would take longer to list than a step may (hourly.PartsMax).
	lag = 10 * time.Second
	// skew is how far the provider's clock may be behind ours.
	skew = time.Minute
	// looksAtOnce bounds the second looks under way.
	looksAtOnce = 4
	// toldMax bounds what is remembered of the findings.
	toldMax = 10 * ListedMax
)

// run is one comparison under way.
type run struct {
	rules    rules
	tables   tables
	provider provider
	meter    *meter
	window   Window
	// enough says, after a page, that the run should end; nil: never.
	enough func(rows int) bool
	pool   pool
	// objectsMax bounds the pool: beyond it objects are asked after one by one.
	objectsMax int
	// olderReadsMax bounds each look for rows that are older than their objects can be without a redrive; 0: nothing does.
	olderReadsMax int
	// again says that the window's objects were compared before, when all of them had their traces.
	again   bool
	refunds refundSums
	// early are the times of objects that were counted, and that a cut of the window may leave out: those before the last row.
	early []time.Time

	mu sync.Mutex // over what follows
	// rowless are untraced objects whose rows are still to be looked for, and rowlessSize is how many.
	rowless     map[claim][]object
	rowlessSize int
	report      Report
	told        map[string]bool
	// tell logs a finding.
	tell func(Drift)
}

func newRun(j *Job, w Window, now time.Time, tell func(Drift), known ...string) *run {
	m := &meter{}
	r := &run{
		rules: rules{
			now: now, grace: j.cfg.Grace, retention: j.cfg.Retention, outlives: messagesOutlive, workMax: j.cfg.WorkMax,
		},
		tables: j.tables, provider: j.provider, meter: m, window: w, objectsMax: j.cfg.ObjectsMax, refunds: refundSums{}, told: map[string]bool{}, tell: tell,
		report: newReport(w), rowless: map[claim][]object{},
	}
	r.tables.meter, r.provider.meter = m, m
	for _, id := range known {
		r.told[id] = true
	}
	return r
}

// all walks rows and listings side by side, newest first, and then asks after the objects that no row has claimed. Where it is
// enough, the window ends at the last row's time: the rest of that millisecond is compared, and nothing before it.
func (r *run) all(ctx context.Context) error {
	rows := newHours(r.tables, r.window)
	objects := newFeed(r.provider, r.window.From, r.window.To.Add(lag))
	for {
		page, err := rows.next(ctx, batchMax)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		last := page[len(page)-1].at
		if err := r.pull(ctx, objects, last); err != nil {
			return err
		}
		if err := r.ahead(ctx, objects, last.Add(-skew)); err != nil {
			return err
		}
		if err := r.page(ctx, page); err != nil {
			return err
		}
		r.report.Reached = last
		r.early = slices.DeleteFunc(r.early, func(at time.Time) bool { return !at.Before(last) })
		if r.enough != nil && r.enough(r.report.Compared.Rows) {
			r.cut(last)
			rows.cut(last)
		}
		if len(r.refunds) > sumsMax {
			if err := r.compareRefunds(ctx); err != nil {
				return err
			}
		}
	}
	r.enough = nil // no row is left to end at
	if err := r.pull(ctx, objects, r.window.From); err != nil {
		return err
	}
	if err := r.unclaimed(ctx, r.pool.flush(r.window)); err != nil {
		return err
	}
	if err := r.lookForRows(ctx); err != nil {
		return err
	}
	if err := r.compareRefunds(ctx); err != nil {
		return err
	}
	r.report.Reached = r.window.From
	return nil
}

// cut moves the window's beginning up, once. What was counted before it is the next run's.
func (r *run) cut(at time.Time) {
	r.window.From, r.report.Window.From, r.enough = at, at, nil
	r.report.Compared.Objects -= len(r.early)
}

// pull takes the objects that were made at or after the time into the pool. Where they don't fit, those that wait are asked
// after at once.
func (r *run) pull(ctx context.Context, objects *feed, at time.Time) error {
	for {
		over, err := objects.until(ctx, at, r.pooled)
		if err != nil || over {
			return err
		}
		if err := r.unclaimed(ctx, r.pool.flush(r.window)); err != nil {
			return err
		}
	}
}

// ahead takes the objects into the pool that were made at or after the time, as far as they take no more than half of it: the others
// wait for their turn. A row whose object has not come by its turn is looked at again, by key.
func (r *run) ahead(ctx context.Context, objects *feed, at time.Time) error {
	half := func(o object) bool {
		r.pooled(o)
		return r.pool.size < r.objectsMax/2
	}
	if r.pool.size >= r.objectsMax/2 {
		return nil
	}
	_, err := objects.until(ctx, at, half)
	return err
}

// pooled says whether there is room for another one.
func (r *run) pooled(o object) bool {
	r.pool.add(o)
	if !o.CreatedAt.Before(r.window.From) && o.CreatedAt.Before(r.window.To) {
		r.report.Compared.Objects++
		if r.enough != nil {
			r.early = append(r.early, o.CreatedAt)
		}
	}
	return r.pool.size <= r.objectsMax
}

// page compares rows of the window.
func (r *run) page(ctx context.Context, page []row) error {
	keys := make([]string, len(page))
	for i, row := range page {
		keys[i] = row.pk
	}
	stories, malformed, err := r.tables.stories(ctx, keys)
	if err != nil {
		return err
	}
	r.report.Unreadable += malformed
	looks, ctx := errgroup.WithContext(ctx)
	looks.SetLimit(looksAtOnce)
	for _, s := range stories {
		s.objects = r.pool.take(s)
		if v := r.rules.classify(s); len(v.drifts) == 0 {
			r.settle(s, v)
			continue
		}
		looks.Go(func() error {
			pk, _ := payments.EntryKey(s.entry.Kind, s.entry.Tenant, s.entry.ID)
			again, err := r.look(ctx, pk, s.entry.Kind, s.operation, s.objects)
			switch {
			case errors.Is(err, errLeftOut):
				return nil
			case err != nil || again == nil:
				return err
			}
			r.settle(*again, r.rules.classify(*again))
			return nil
		})
	}
	return looks.Wait()
}

// settle counts what a row of the window comes to.
func (r *run) settle(s story, v verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Compared.Rows++
	r.conclude(s, v)
	r.refunds.note(s)
}

// conclude counts a classification; r.mu is held.
func (r *run) conclude(s story, v verdict) {
	for _, m := range s.messages {
		if m != nil {
			r.report.Compared.Messages++
		}
	}
	if s.record != nil {
		r.report.Compared.Records++
	}
	if v.removed {
		r.report.Removed++
	}
	switch v.standing {
	case unreadable:
		r.report.Unreadable++
	case open:
		r.report.Open++
	case parked:
		r.report.WithOperator++
		if m, _ := s.last(); len(r.report.Parked) < ListedMax {
			r.report.Parked = append(r.report.Parked, Parked{Tenant: s.entry.Tenant, Entry: s.entry.ID, Message: m.ID, State: m.State})
		}
	case compared:
	}
	r.add(v.drifts...)
}

// add counts drifts, and lists them while there is room; one that is not listed is told of at once. The same finding counts
// once, however it was come by. r.mu is held.
func (r *run) add(drifts ...Drift) {
	for _, d := range drifts {
		id := d.ID()
		if r.told[id] {
			continue
		}
		if len(r.told) < toldMax {
			r.told[id] = true
		}
		r.report.Drift[d.Kind]++
		if len(r.report.Drifts) < ListedMax {
			r.report.Drifts = append(r.report.Drifts, d)
			continue
		}
		r.tell(d)
	}
}

func (r *run) found(drifts ...Drift) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(drifts...)
}

// errLeftOut: an entry can't be classified, and has been counted as such. The others go on.
var errLeftOut = errors.New("drift: left out")

// leaveOut counts an entry that can't be classified.
func (r *run) leaveOut(count *int) (*story, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*count++
	return nil, errLeftOut
}

// look reads an entry once more: row, messages and record as they were at one moment, and after that what the provider has
// under each key, so that nothing is missing there that only came later. It is nil where there is no row, and errLeftOut
// where it can't be read, or where the provider does not say what it has.
func (r *run) look(ctx context.Context, pk string, kind payments.EntryKind, operation idem.OperationID, known []object) (*story, error) {
	s, err := r.tables.together(ctx, pk, kind, operation)
	if errors.Is(err, errMalformed) {
		return r.leaveOut(&r.report.Unreadable)
	}
	if err != nil || s == nil {
		return nil, err
	}
	s.objects = slices.Clone(known)
	for _, e := range effects(kind) {
		made, err := r.provider.under(ctx, e.family, operation.Message(e.position))
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return r.leaveOut(&r.report.Unanswered)
		}
		for _, o := range made {
			if !slices.ContainsFunc(s.objects, func(known object) bool { return known.ID == o.ID }) {
				s.objects = append(s.objects, o)
			}
		}
	}
	return s, nil
}

// unclaimed asks after objects of the window that no row of it has claimed: rows from before it, or nobody's.
func (r *run) unclaimed(ctx context.Context, objects []object) error {
	for batch := range slices.Chunk(objects, batchMax) {
		if err := r.trace(ctx, batch); err != nil {
			return err
		}
	}
	if r.rowlessSize > r.objectsMax {
		return r.lookForRows(ctx)
	}
	return nil
}

// claim is what objects of one operation are looked at by.
type claim struct {
	kind      payments.EntryKind
	operation idem.OperationID
}

func (r *run) trace(ctx context.Context, objects []object) error {
	claims, order := map[claim][]object{}, []claim{}
	for _, o := range objects {
		kind, ok := o.family().entryKind()
		c := claim{kind, o.operation()}
		if !ok || c.operation == "" {
			r.nobodys("", o)
			continue
		}
		if claims[c] == nil {
			order = append(order, c)
		}
		claims[c] = append(claims[c], o)
	}
	tenants, err := r.tenants(ctx, order)
	if err != nil {
		return err
	}
	looks, ctx := errgroup.WithContext(ctx)
	looks.SetLimit(looksAtOnce)
	for _, c := range order {
		looks.Go(func() error { return r.late(ctx, c, tenants[c.operation], claims[c]) })
	}
	return looks.Wait()
}

// tenants tells whose operations are, by their messages or their records; one that has neither is not in the map.
func (r *run) tenants(ctx context.Context, claims []claim) (map[idem.OperationID]string, error) {
	var messages, records []string
	for _, c := range claims {
		messages = append(messages, string(c.operation.Message(1)))
	}
	found, err := r.tables.many(ctx, r.tables.cfg.OutboxTable, schema.MessageID, messages, schema.MessageID, schema.Tenant)
	if err != nil {
		return nil, err
	}
	tenants := map[idem.OperationID]string{}
	for _, c := range claims {
		if it, ok := found[string(c.operation.Message(1))]; ok {
			tenants[c.operation] = text(it, schema.Tenant)
		} else {
			records = append(records, recordKey(c.operation))
		}
	}
	keys, err := r.tables.many(ctx, r.tables.cfg.IdempotencyTable, schema.RecordKey, records, schema.RecordKey, schema.Tenant)
	if err != nil {
		return nil, err
	}
	for _, c := range claims {
		// A record of another incarnation is the same tenant's: the key is a hash over it.
		if it, ok := keys[recordKey(c.operation)]; ok && tenants[c.operation] == "" {
			tenants[c.operation] = text(it, schema.Tenant)
		}
	}
	return tenants, nil
}

// late compares the row that the objects' operation made.
func (r *run) late(ctx context.Context, c claim, tenant string, objects []object) error {
	if tenant == "" {
		for _, o := range objects {
			r.untraced(c, o)
		}
		return nil
	}
	if r.window.Tenant != "" && tenant != r.window.Tenant {
		return nil
	}
	pk, _ := payments.EntryOf(c.kind, tenant, c.operation)
	s, err := r.look(ctx, pk, c.kind, c.operation, objects)
	switch {
	case errors.Is(err, errLeftOut):
		return nil
	case err != nil:
		return err
	case s == nil:
		for _, o := range objects {
			r.nobodys(tenant, o)
		}
	case s.entry.CreatedAt.Before(r.window.To): // else it is a later window's
		r.mu.Lock()
		defer r.mu.Unlock()
		r.report.Late++
		r.conclude(*s, r.rules.classify(*s))
	}
	return nil
}

// nobodys is an object that no row here accounts for.
func (r *run) nobodys(tenant string, o object) {
	if tenant != r.window.Tenant && r.window.Tenant != "" {
		return
	}
	r.found(Drift{Kind: MissingHere, Tenant: tenant, Sides: []Side{o.side()}})
}

// finish sorts the report, and says what it cost.
func (r *run) finish(unfinished bool) Report {
	r.report.Unfinished = unfinished
	r.report.sort()
	r.report.Cost = r.meter.total()
	return r.report
}
