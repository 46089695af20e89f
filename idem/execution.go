package idem

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/internal/principal"
	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// execution performs one request: what package protocol decides about it, call by call.
type execution struct {
	driver
	registered  *Registered
	op          *Operation
	req         Request
	fingerprint canonical.Fingerprint
	machine     protocol.Execution
	cfg         protocol.Config
	began       time.Time
	// span is the request's, nil where nobody traces.
	span *trace.Span

	run run
	// barred is why nothing may be executed, whatever is there; a policy in observe mode executes all the same.
	barred error
	// refused is why a new key may not begin, which it does all the same in observe mode; giveBack returns the right to one.
	refused  error
	giveBack func()
	// sent is the message of the last transaction where it was inserted as claimed, and left where it is a worker's although the
	// operation delivers inline.
	sent, left *storage.Message
	// leave ends the wait for another execution; nil where there was none.
	leave func()
	// unsettled is why a release or a parking was not written.
	unsettled error
}

func (o *Registered) begin(req Request) (*execution, error) {
	e := o.engine
	scope := o.op.scope(req)
	if err := scope.validate(); err != nil {
		return nil, err
	}
	req.Input.Operation = o.op.recordedAs()
	fingerprint, err := e.cfg.Fingerprinter.Sum(req.Input)
	if err != nil {
		return nil, err
	}
	x := &execution{
		driver: driver{engine: e, key: scope.recordKey(e.cfg.ScopeSecret), asked: &asked{
			fingerprinter: e.cfg.Fingerprinter, operation: o.op.recordedAs(),
			anyPayload: o.op.Policy.Mismatch == MismatchReplay, fingerprint: fingerprint,
		}},
		registered: o, op: &o.op, req: req, fingerprint: fingerprint, cfg: o.protocol, began: e.now(),
	}
	x.asked.input = &x.req.Input
	x.cfg.Life = lifeOf(o.op.Policy.Retention, x.expiry(), 0)
	var request protocol.Request
	if request.Seed, err = e.mint.ID(); err == nil {
		request.Incarnation, err = e.mint.ID()
	}
	x.machine = protocol.NewExecution(request)
	return x, err
}

// expiry is how the life of a record ends besides, that this request makes.
func (x *execution) expiry() storage.Expiry {
	if x.req.OneOff {
		return storage.Expiry{}
	}
	return x.op.Policy.expiry()
}

// begins is the input that an execution starts with, at the time that its caller began at.
func (x *execution) begins(ctx context.Context, began protocol.Instant) protocol.Input {
	return protocol.Input{What: protocol.Begin, Now: began, Deadline: x.deadline(ctx)}
}

// drive drives the machine to its end: one action, one call. asking is the caller's context as [Engine.InTime] bounds it.
func (x *execution) drive(ctx, asking context.Context, in protocol.Input, handler Handler) (protocol.Say, error) {
	detached := context.WithoutCancel(ctx) // a client that hangs up changes nothing about what was begun
	defer x.endWait()
	for {
		a := x.next(ctx, in)
		if a.Do == protocol.Tell {
			return a.Say, nil
		}
		if err := x.engine.CheckScopeSecret(asking); err != nil {
			return protocol.Say{}, err
		}
		switch a.Do {
		case protocol.Read:
			in = x.look(ctx, detached, a)
		case protocol.Admit:
			in = x.admit(asking)
		case protocol.Send:
			in = x.sendOwn(detached, a)
		case protocol.Run:
			x.endWait()
			in = x.start(detached, a, handler)
		case protocol.Wait:
			in = x.wait(ctx, asking, a)
		case protocol.Ask, protocol.Call, protocol.Probe, protocol.Alert, protocol.Tell: // never of an execution; Tell ended it above
		}
		if x.fatal != nil {
			return protocol.Say{}, x.fatal
		}
	}
}

// next asks the machine what to do next.
func (x *execution) next(ctx context.Context, in protocol.Input) (a protocol.Action) {
	if in.What != protocol.Begin {
		in.Now = x.now()
	}
	held, zombie := x.machine.Held, x.machine.Zombie
	x.machine, a = x.machine.Next(in, &x.cfg)
	if x.machine.Zombie && !zombie {
		x.tellZombie(ctx, held)
	}
	return a
}

// deadline is the caller's on the engine's clock; 0 where it has none.
func (x *execution) deadline(ctx context.Context) protocol.Instant {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return 0
	}
	return x.now() + translation.MillisOf(time.Until(deadline))
}

// look reads the record, for a caller that still waits, or for the last time.
func (x *execution) look(ctx, detached context.Context, a protocol.Action) protocol.Input {
	if x.machine.Phase == protocol.LastLook {
		cause := x.cause // a look that fails changes nothing about why there was one
		in := x.read(detached, a)
		x.cause = cause
		return in
	}
	return x.read(ctx, a)
}

// admit asks once whether a new key may begin: its time first, then the quota. In observe mode the answer is for the report only:
// what is executed without a record would be executed again for the next request with its key.
func (x *execution) admit(ctx context.Context) protocol.Input {
	if x.refused = x.op.Policy.begins(x.req, translation.TimeOf(x.now())); x.refused == nil {
		x.refused = x.askQuota(ctx)
	}
	if x.refused != nil && !x.op.Policy.Observe {
		return protocol.Input{What: protocol.TurnedAway}
	}
	return protocol.Input{What: protocol.Admitted}
}

// overruled is why an engine that enforces would not have run the handler that ran for this request.
func (x *execution) overruled() error {
	switch {
	case !x.op.Policy.Observe || x.machine.Runs == 0:
		return nil
	case x.barred != nil:
		return x.barred
	case x.machine.Holding && !x.machine.NewKey: // it took a key over, which needs no right to a new one
		return nil
	}
	return x.refused
}

// sendOwn sends a write of this execution.
func (x *execution) sendOwn(ctx context.Context, a protocol.Action) protocol.Input {
	if x.pauseFirst(ctx, a) != nil {
		return protocol.Input{}
	}
	in, err := x.attempt(ctx, a)
	switch x.machine.Phase {
	case protocol.Releasing, protocol.Parking, protocol.GivingBack:
		x.settles(in.Reply.Code, err)
	case protocol.FencingOff: // what had no reply stays the cause
	default:
		if err != nil {
			x.cause = err
		}
	}
	return in
}

// settles notes what a try of a release or a parking met. Where the store has decided, the record is settled, or no longer this execution's.
// A try that was not sent because its time was over says nothing new.
func (x *execution) settles(code protocol.Code, err error) {
	switch {
	case code == protocol.OK || code == protocol.Refused:
		x.unsettled = nil
	case err != nil:
		x.unsettled = err
	}
}

// attempt sends a write once, which is frozen before it is sent first.
func (x *execution) attempt(ctx context.Context, a protocol.Action) (protocol.Input, error) {
	if a.Write.Rec.Revision != x.frozen.revision {
		if err := x.freezeOwn(a.Write); err != nil { // nothing of it can have been sent
			x.frozen = frozen{}
			reply, _ := x.replied(err, nil)
			return protocol.Input{What: protocol.Replied, Reply: reply}, err
		}
	}
	return x.send(ctx, a)
}

// freezeOwn freezes a write, as a transaction where the handler's writes ride along.
func (x *execution) freezeOwn(w protocol.Write) error {
	x.freeze(w, x.incarnation(w.Rec.Op))
	if w.Slot == 0 {
		return nil
	}
	messages, err := x.outgoing(w)
	if err != nil {
		return err
	}
	c := storage.Commit{
		Record: *x.frozen.record, Now: translation.TimeOf(x.clock), Writes: x.run.tx.writes, Messages: messages, Token: tokenOf(w.Token),
	}
	if x.frozen.free.IsZero() {
		c.Fence = &x.frozen.fence
	}
	x.frozen.writes = c.Writes
	x.frozen.send, err = x.engine.store.Prepare(c)
	return err
}

// tokenOf is the client request token of a transaction: each purpose has tokens of its own.
func tokenOf(t protocol.Token) string {
	purpose := [...]string{protocol.ForCommit: "commit", protocol.ForSettle: "settle", protocol.ForKeep: "keep", protocol.ForFail: "fail"}
	var named [64]byte
	text := append(append(named[:0], purpose[t.For]...), t.N)
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(text, t.Seed[0]), t.Seed[1]))
	return base64.RawURLEncoding.EncodeToString(sum[:24])
}

// incarnation is the newest row of an incarnation; a new one where this execution begins it.
func (x *execution) incarnation(id protocol.ID) *storage.Record {
	if r := x.row(id); r != nil {
		return r
	}
	r := &storage.Record{
		Key: x.key, OperationID: operationOf(x.key, id), Tenant: x.req.Tenant, Operation: x.op.recordedAs(), Fingerprint: x.fingerprint,
		Epoch: 1, CreatedAt: translation.TimeOf(x.clock), Retention: x.op.Policy.Retention, Expiry: x.expiry(), Attempts: 1,
		Trace: x.span.Context().WithoutState(), SchemaVersion: storage.SchemaVersion,
	}
	if x.op.Policy.BindPrincipal {
		r.Principal = principal.Stored(x.req.Tenant, x.req.Principal)
	}
	x.keep(id, r)
	return r
}
