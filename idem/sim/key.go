package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// kind is a way to protect a request. It is the name of the operation, too.
type kind string

const (
	atomicWrite     kind = "sim.atomic"
	optimistic      kind = "sim.optimistic"
	deferredKeys    kind = "sim.deferred.keys"
	deferredLookUp  kind = "sim.deferred.lookup"
	deferredNothing kind = "sim.deferred.nothing"
	inlineKeys      kind = "sim.inline.keys"
	inlineNothing   kind = "sim.inline.nothing"
	chain           kind = "sim.chain"
	inlineChain     kind = "sim.inline.chain"
	keysAlone       kind = "sim.deferred.alone"
	besides         kind = "sim.besides" // a message of an operation that is complete without it
	besidesKeys     kind = "sim.besides.keys"
	pure            kind = "sim.pure" // writes nothing but its record
	wrappedOperator kind = "sim.wrapped.operator"
	wrappedProbed   kind = "sim.wrapped.probed"
	wrappedReleased kind = "sim.wrapped.released"
	wrappedSafe     kind = "sim.wrapped.safe"
)

var kinds = []kind{
	atomicWrite, optimistic, deferredKeys, deferredLookUp, deferredNothing, inlineKeys, inlineNothing, chain, inlineChain,
	keysAlone, besides, besidesKeys, pure,
	wrappedOperator, wrappedProbed, wrappedReleased, wrappedSafe,
}

func (k kind) wrapped() bool { return strings.HasPrefix(string(k), "sim.wrapped") }
func (k kind) inline() bool  { return strings.HasPrefix(string(k), "sim.inline") }
func (k kind) chained() bool { return strings.HasSuffix(string(k), "chain") }

// topic is where the first message goes; none for operations that send none.
func (k kind) topic() string {
	switch k {
	case deferredKeys, inlineKeys, besidesKeys:
		return withKeys
	case keysAlone:
		return withKeysAlone
	case deferredLookUp:
		return withLookUp
	case deferredNothing, inlineNothing, besides:
		return withNothing
	case chain, inlineChain:
		return first
	}
	return ""
}

func (k kind) operation() idem.Operation {
	operation := idem.Operation{Name: string(k), Kind: idem.KindDeferred, Policy: idem.IETF()}
	switch k {
	case atomicWrite, besidesKeys, pure:
		operation.Kind = idem.KindAtomic
	case optimistic, besides:
		operation.Kind = idem.KindOptimistic
	case wrappedOperator:
		operation.Kind, operation.UnknownToOperator = idem.KindWrapped, true
	case wrappedProbed:
		operation.Kind, operation.Probed = idem.KindWrapped, true
	case wrappedReleased:
		operation.Kind, operation.ReleaseOn, operation.UnknownToOperator = idem.KindWrapped, []int{503}, true
	case wrappedSafe:
		operation.Kind, operation.SafeToRunAgain = idem.KindWrapped, true
	}
	return operation
}

// key is a client's key, and what the story knows about it.
type key struct {
	// name is the story's. tenant is whose key it is, and client what they call it: two tenants may call theirs the same.
	name, tenant, client string
	kind                 kind
	id                   storage.RecordKey
	// wrapped, safe and probed are how its operation is registered.
	wrapped, safe, probed bool
	// ended are its incarnations whose answer was stored, in their order.
	ended []idem.OperationID
	// under counts the requests that the clients wait for, and those that they do not wait for any more.
	under int
	// finals are the answers that were final, and accepted the 202s before them, by incarnation.
	finals, accepted map[idem.OperationID]*answer
	// servers are the processes that served it, and began the incarnations whose handler began.
	servers []*process
	began   map[idem.OperationID]bool
	// nothing is set while the last answer said that nothing had happened, and nobody has asked again since.
	nothing bool
	// busted is when its answer was last taken out of use, which was that of answered, and changed when its record was last written.
	busted, changed time.Time
	answered        *act
	// contradicted says that the provider has said one thing and the opposite about it: then its books prove nothing.
	contradicted bool
}

// The tenants. The second one has the keys of the first, for the same kinds of operation.
const (
	oneTenant     = "t"
	anotherTenant = "u"
)

// asks is what the clients of a tenant's key ask for.
func asks(tenant, client string, k kind) Request {
	name := client
	if tenant != oneTenant {
		name += " of " + tenant
	}
	operation := k.operation()
	return Request{
		Name: name, Scope: idem.Scope{Tenant: tenant, Operation: string(k), Key: client},
		Kind: operation.Kind, SafeToRunAgain: operation.SafeToRunAgain, Probed: operation.Probed,
	}
}

// request is one of the key's. They differ in one part of what a fingerprint covers.
func (w *world) request(k *key, variant int) idem.Request {
	in := canonical.Input{Method: "POST", Path: "/orders", MediaType: "application/json"}
	body := 0
	switch other := fmt.Sprint(variant); w.oneOf("what differs for "+k.name, 5) {
	case 0:
		in.Method = [...]string{"POST", "PUT"}[variant]
	case 1:
		in.Path += "/" + other
	case 2:
		in.Query = url.Values{"variant": {other}}
	case 3:
		in.MediaType = [...]string{"application/json", "application/vnd.order+json"}[variant]
	default:
		body = variant
	}
	in.Body = fmt.Appendf(nil, `{"order":%q,"body":%d}`, k.client, body)
	return idem.Request{Tenant: k.tenant, Key: k.client, Input: in}
}

// add is a business write that counts how often it happened.
func add(row string) idem.Write {
	return memstore.Write{Key: row, Apply: func(before []byte) []byte { return append(before, 'x') }}
}

// The rows that all keys of a story change: each counts the writes. Of the first only mood.most succeed, and the second is changed under
// an optimistic lock.
const (
	limited = "limited"
	locked  = "locked"
)

// lockedAt is the lock's position among the writes of an operation.
const lockedAt = 2

// shared are writes that compete with those of others: a rejection where the limit is reached, another run where somebody was faster.
func (w *world) shared(a *act, seen int) []idem.Write {
	one, another := add(limited).(memstore.Write), add(locked).(memstore.Write)
	one.Condition = func(row []byte) bool { return len(row) < w.mood.most }
	one.Failure = idem.Reject(idem.NewProblem(limitStatus, "limit_reached", "Limit Reached", "There is nothing left."))
	another.Condition = func(row []byte) bool { return len(row) == seen }
	another.Failure = idem.Retry()
	a.locks = true
	return []idem.Write{one, another}
}

// atLock says that a transaction was refused at the lock, or that the lock was not judged.
func atLock(refused *storage.WriteFailedError) bool {
	return slices.Contains(refused.Indexes, lockedAt) || slices.Contains(refused.Unjudged, lockedAt)
}

// limitStatus is the rejection's alone.
const limitStatus = 409

// shares says whether the kind's operations write what others write too.
func (k kind) shares() bool { return !k.wrapped() && !k.chained() && k != pure }

// written is how often an incarnation's business write happened, settled that of its message's settlement, and returned that of what
// is written where a message was given up.
func written(id idem.OperationID) string  { return "written " + string(id) }
func settled(m storage.MessageID) string  { return "settled " + string(m) }
func returned(m storage.MessageID) string { return "returned " + string(m) }

// handler is what the application does for the key.
func (k *key) handler(p *process, body int) idem.Handler {
	w := p.world
	return func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
		a := actOf(ctx)
		run := w.numbered("handler of " + k.name)
		w.begun(k, a, tx.OperationID())
		defer func() { w.handled(ctx, a) }()
		w.say("%s runs in %s", run, p.name)
		if k.kind.wrapped() {
			response, err := k.effect(ctx, p, run, body)
			p.thaw()
			if err == nil && (response.Status == 201 || response.Status == 402) {
				w.answers(a)
			}
			return response, err
		}
		seen := len(w.memory.Row(locked))
		select { // most handlers heed their context
		case <-time.After(w.between(run, time.Millisecond, w.mood.handler)):
		case <-w.heeded(ctx, run):
			return idem.Response{}, ctx.Err()
		}
		if w.fault(run+" answers 503", w.mood.declines, 1) != nothingWrong {
			return idem.Response{Status: 503}, nil
		}
		if k.kind != pure {
			tx.Write(add(written(tx.OperationID())))
		}
		if k.kind.shares() {
			tx.Write(w.shared(a, seen)...)
		}
		said := map[string]any{"order": k.name, "by": tx.OperationID(), "run": run, "body": body}
		if topic := k.kind.topic(); topic != "" {
			tx.Send(topic, []byte(k.name))
			if k.kind != besides && k.kind != besidesKeys {
				return idem.JSON(202, said)
			}
		}
		return idem.JSON(201, said)
	}
}

// heeded is closed when the context ends, if the handler heeds it.
func (w *world) heeded(ctx context.Context, run string) <-chan struct{} {
	if w.oneOf(run+" heeds its context", 4) == 0 {
		return nil
	}
	return ctx.Done()
}

// effect is a handler that writes for itself: it makes one call, under a lease that it has looked at.
func (k *key) effect(ctx context.Context, p *process, run string, body int) (idem.Response, error) {
	w := p.world
	execution, _ := idem.ExecutionFrom(ctx)
	time.Sleep(w.between(run, time.Millisecond, w.mood.handler))
	if (k.kind == wrappedReleased || k.kind == wrappedSafe) && w.fault(run+" answers 503", w.mood.declines, 1) != nothingWrong {
		return idem.Response{Status: 503}, nil
	}
	if w.fault(run+" does nothing", w.mood.declines, 1) != nothingWrong {
		time.Sleep(w.between(run+" afterwards", time.Millisecond, w.mood.after))
		idem.NothingHappened(ctx)
		return idem.Response{Status: 503}, nil
	}
	p.thaw()
	if err := idem.Leased(ctx); err != nil {
		return idem.Response{Status: 500}, nil
	}
	declined := w.declines(k.kind == wrappedSafe, storage.Message{Payload: []byte(k.name)})
	outcome := p.ask(ctx, k.name, declined, func() {
		p.provider.charge(k.downstream(execution.OperationID), k.kind == wrappedSafe)
		actOf(ctx).made = true
		w.noteEffect(k, execution.OperationID)
	}, func() {})
	time.Sleep(w.between(run+" afterwards", time.Millisecond, w.mood.after))
	said := map[string]any{"order": k.name, "by": execution.OperationID, "run": run, "body": body}
	switch outcome := outcome.(type) {
	case outbox.Delivered:
		return idem.JSON(201, said)
	case outbox.Declined:
		return idem.JSON(402, said)
	case outbox.NotExecuted:
		if outcome.Unsent {
			idem.NothingHappened(ctx)
		}
		return idem.Response{Status: 503}, nil
	}
	return idem.Response{Status: 502}, nil
}

// downstream is the key that a wrapped handler hands down. Where running twice does no harm it is the client's own.
func (k *key) downstream(id idem.OperationID) string {
	if k.kind == wrappedSafe {
		return k.name
	}
	return string(id)
}

// probeWrapped looks up what a wrapped handler made, by the operation id that it handed down.
func (p *process) probeWrapped(ctx context.Context, r storage.Record) outbox.Finding {
	switch found, known := p.look(ctx, string(r.OperationID), func() bool { return p.provider.has(string(r.OperationID)) > 0 }); {
	case !known:
		return outbox.Unclear{Cause: errProvider}
	case found:
		response, _ := idem.JSON(201, map[string]string{"found": string(r.OperationID)})
		return outbox.Executed{Response: response}
	default:
		return outbox.Absent{}
	}
}

// settle is the application's: what an outcome means. A chain's second step that is not made has its first undone.
func (w *world) settle(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
	said := outbox.Settlement{Writes: []idem.Write{add(settled(m.ID))}}
	_, made := o.(outbox.Delivered)
	_, given := o.(outbox.NotExecuted)
	what := fmt.Sprintf("what %s of %s made %v means", m.Topic, m.Payload, made)
	if given {
		said.Writes = append(said.Writes, add(returned(m.ID)))
		what = fmt.Sprintf("what %s of %s given up means", m.Topic, m.Payload)
	}
	if w.fault(what, w.mood.fails, 1) != nothingWrong {
		return said, errNoMeaning
	}
	switch {
	case m.Topic == first && made:
		said.Next = &outbox.Next{Topic: second, Payload: m.Payload}
	case m.Topic == second && !made:
		said.Next = &outbox.Next{Topic: undo, Payload: m.Payload, Undoes: true}
	case m.Topic == undo:
		said.Response = told(502, m)
	case made:
		said.Response = told(201, m)
	default:
		said.Response = told(402, m)
	}
	return said, nil
}

var errNoMeaning = errors.New("sim: the application does not know what that means")

func told(status int, m storage.Message) idem.Response {
	body, err := json.Marshal(map[string]string{"order": string(m.Payload), "topic": m.Topic})
	if err != nil {
		panic(err) // strings always have JSON
	}
	return idem.Response{Status: status, Body: body}
}
