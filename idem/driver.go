package idem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/internal/timers"
	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// driver performs what a machine asks of the store: one action is one call. It holds what the machine's handles stand for.
type driver struct {
	engine *Engine
	key    storage.RecordKey
	// tenant is whose record it must be, another tenant's counts as none; "" means any tenant.
	tenant string
	// asked is the request that rows are compared with; nil compares nothing.
	asked *asked
	// rows are the records as they were seen or written last, one for each incarnation. seen is what the store showed last.
	rows    []row
	seen    *storage.Record
	answers answers
	// message came along with the last conflict.
	message *storage.Message
	frozen  frozen
	// reason, where set, is kept on the record instead of the machine's own.
	reason string
	// cause is why the machine may have to say that it does not know. fatal ends the machine: it can't be driven on.
	cause, fatal error
	// clock is the latest instant that was read or waited for: it never goes back, and goes on while a wait does, whatever
	// Config.Now says.
	clock protocol.Instant
}

// row is the newest record of an incarnation.
type row struct {
	incarnation protocol.ID
	record      *storage.Record
}

// answer is a response, or the stored record that has one.
type answer struct {
	response Response
	row      *storage.Record
}

// answers are what stands behind [protocol.Answer], from 1.
type answers []answer

func (a *answers) add(one answer) protocol.Answer {
	*a = append(*a, one)
	return protocol.Answer(len(*a))
}

func (a answers) at(n protocol.Answer) answer {
	if n == 0 {
		return answer{}
	}
	return a[n-1]
}

// frozen is the last write that a machine asked for. Sending it again is sending the same.
type frozen struct {
	as       protocol.As
	revision protocol.ID
	record   *storage.Record
	fence    storage.Fence
	free     time.Time
	// send sends a transaction, with these writes of the application.
	send   func(context.Context) error
	writes []Write
}

// asked is what a stored record is compared with.
type asked struct {
	fingerprinter *canonical.Fingerprinter
	input         *canonical.Input
	operation     string
	anyPayload    bool
	// fingerprint is the request's, under the version, secret and selection that were needed last.
	fingerprint canonical.Fingerprint
	// differing are the parts in which the request differs from the record that it was compared with last.
	differing []canonical.Part
}

// match compares the request with a record. The fingerprint is computed again where the record's was made otherwise; the
// error is that this release can't.
func (a *asked) match(r *storage.Record) (protocol.Match, error) {
	switch {
	case r.Operation != a.operation:
		return protocol.Different, nil
	case a.anyPayload:
		return protocol.Same, nil
	case !r.Fingerprint.Alike(a.fingerprint):
		again, err := a.fingerprinter.SumAs(r.Fingerprint, *a.input)
		if err != nil {
			return protocol.Different, fmt.Errorf("idem: fingerprint under version %d, selection %q: %w", r.Fingerprint.Version, r.Fingerprint.Selection, err)
		}
		a.fingerprint = again
	}
	if !r.Fingerprint.Equal(a.fingerprint) {
		a.differing = r.Fingerprint.Differing(a.fingerprint)
		return protocol.Different, nil
	}
	return protocol.Same, nil
}

// now is the clock in the resolution that is stored.
func (d *driver) now() protocol.Instant {
	d.clock = max(d.clock, translation.InstantOf(d.engine.now()))
	return d.clock
}

// ends is when a context ends that lasts until then. A process that is frozen once it has read its clock has that much less time.
func (d *driver) ends(until protocol.Instant) time.Time {
	watch := timers.Begin()
	return watch.Deadline(translation.SpanOf(until - d.now()))
}

// see keeps a stored record and returns what the machine judges of it. What this release can't judge ends the machine.
func (d *driver) see(r *storage.Record) protocol.Record {
	if d.seen = r; r == nil || d.tenant != "" && r.Tenant != d.tenant {
		d.seen = nil
		return protocol.Record{}
	}
	h, err := headerOf(r)
	if err == nil && d.asked != nil && !h.FreeAt(d.now()) {
		if h.Match, err = d.asked.match(r); err != nil {
			err = errors.Join(&UnreadableError{r.SchemaVersion, r.State, r.Kind}, err)
		}
	}
	if err != nil {
		d.fatal = unavailable(err)
		return protocol.Record{}
	}
	if r.State == storage.StatePending || r.State.Final() {
		h.Answer = d.answers.add(answer{row: r})
	}
	d.keep(h.Op, r)
	return h
}

// keep remembers the newest row of an incarnation.
func (d *driver) keep(incarnation protocol.ID, r *storage.Record) {
	for i := range d.rows {
		if d.rows[i].incarnation == incarnation {
			d.rows[i].record = r
			return
		}
	}
	d.rows = append(d.rows, row{incarnation, r})
}

// row is the newest row of an incarnation; nil where there is none.
func (d *driver) row(incarnation protocol.ID) *storage.Record {
	for i := range d.rows {
		if d.rows[i].incarnation == incarnation {
			return d.rows[i].record
		}
	}
	return nil
}

// read performs protocol.Read.
func (d *driver) read(ctx context.Context, a protocol.Action) protocol.Input {
	r, err := d.engine.get(ctx, d.key, d.within(a.Until))
	if err != nil {
		d.cause = err
		return protocol.Input{What: protocol.Replied, Reply: protocol.Reply{Code: protocol.Broken}}
	}
	return protocol.Input{What: protocol.Replied, Reply: protocol.Reply{Code: protocol.OK, Rec: d.see(r)}}
}

// within is how long the reply to a read is waited for that is of use until then; 0 is always.
func (d *driver) within(until protocol.Instant) time.Duration {
	if until == 0 {
		return d.engine.cfg.CallTimeout
	}
	return min(d.engine.cfg.CallTimeout, translation.SpanOf(until-d.now()))
}

// first and last pause of the one backoff.
const (
	pauseMin     = 20 * time.Millisecond
	pauseMax     = time.Second
	waitPauseMin = 50 * time.Millisecond // for another execution
)

// pause waits before the n-th repetition, not past until. It returns the context's error.
func (d *driver) pause(ctx context.Context, first time.Duration, n uint8, until protocol.Instant) error {
	now := d.now()
	wait := min(d.engine.jitter(growing(first, pauseMax, int(n)-1)), translation.SpanOf(until-now))
	if wait <= 0 {
		return ctx.Err()
	}
	err := d.engine.cfg.Pause(ctx, wait)
	d.clock = max(d.clock, now+translation.MillisOf(wait))
	return err
}

// pauseFirst waits as an action says before it is performed. An error ends the machine: its caller has gone.
func (d *driver) pauseFirst(ctx context.Context, a protocol.Action) error {
	if a.Pause == 0 {
		return nil
	}
	err := d.pause(ctx, pauseMin, a.Pause, a.Until)
	if err != nil {
		d.fatal = unavailable(err)
	}
	return err
}

// send performs protocol.Send: the frozen write is sent once. It returns the store's error besides, nil where nothing was
// asked because the time was over.
func (d *driver) send(ctx context.Context, a protocol.Action) (protocol.Input, error) {
	watch := timers.Begin()
	now := d.now()
	if now >= a.Until { // judged last
		return protocol.Input{What: protocol.Replied, Reply: protocol.Reply{Code: protocol.NotSent}}, nil
	}
	timeout := min(translation.SpanOf(a.Until-now), d.engine.cfg.CallTimeout)
	try, cancel := d.engine.timers.WithDeadline(ctx, watch.Deadline(timeout))
	err := d.call(try)
	if errors.Is(try.Err(), context.DeadlineExceeded) { // and not where it was cut
		d.clock = max(d.clock, now+translation.MillisOf(timeout))
	}
	cancel()
	reply, rejection := d.replied(err, d.frozen.writes)
	return protocol.Input{What: protocol.Replied, Reply: reply, Rejection: rejection}, err
}

// call sends the frozen write.
func (d *driver) call(ctx context.Context) error {
	f := &d.frozen
	switch {
	case f.send != nil:
		return f.send(ctx)
	case f.as == protocol.Renew:
		return d.engine.store.Renew(ctx, *f.record, f.fence)
	case !f.free.IsZero():
		return d.engine.store.Insert(ctx, *f.record, f.free)
	}
	return d.engine.store.Update(ctx, *f.record, f.fence)
}

// freeze makes the row of a write, on top of what is known of its incarnation, and its condition.
func (d *driver) freeze(w protocol.Write, base *storage.Record) {
	r := *base
	if w.RecAs == protocol.Renew {
		r.LeaseUntil, r.Revision = translation.TimeOf(w.Rec.Lease), storage.NameOf[storage.Revision](w.Rec.Revision)
	} else {
		d.put(&r, w)
	}
	d.keep(w.Rec.Op, &r)
	d.frozen = frozen{as: w.RecAs, revision: w.Rec.Revision, record: &r, fence: fenceOf(&r, w.RecIf)}
	if f := d.frozen.fence; f.OperationID == "" {
		d.frozen.free = f.FreeAt
	}
}

// put gives the row its header, the reason, and the response where it is a new one.
func (d *driver) put(r *storage.Record, w protocol.Write) {
	*r = withHeader(*r, w.Rec)
	if r.LastError = w.Why.String(); d.reason != "" {
		r.LastError = d.reason
	}
	a := d.answers.at(w.Rec.Answer)
	if a.row != nil {
		return
	}
	r.Response, r.Sealed, r.Chunks, r.ChunksDigest, r.DoneAt = a.response, false, 0, "", time.Time{}
	if r.State.Final() {
		r.DoneAt = translation.TimeOf(d.clock)
	}
}
