package sim

import (
	"context"
	"encoding/json"
	"fmt"
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
	wrappedOperator kind = "sim.wrapped.operator"
	wrappedProbed   kind = "sim.wrapped.probed"
	wrappedReleased kind = "sim.wrapped.released"
	wrappedSafe     kind = "sim.wrapped.safe"
)

var kinds = []kind{
	atomicWrite, optimistic, deferredKeys, deferredLookUp, deferredNothing, inlineKeys, inlineNothing, chain, inlineChain,
	wrappedOperator, wrappedProbed, wrappedReleased, wrappedSafe,
}

func (k kind) wrapped() bool { return strings.HasPrefix(string(k), "sim.wrapped") }
func (k kind) leased() bool  { return k.wrapped() || k == atomicWrite } // no two of its handlers run at once
func (k kind) inline() bool  { return strings.HasPrefix(string(k), "sim.inline") }
func (k kind) chained() bool { return strings.HasSuffix(string(k), "chain") }

// topic is where the first message goes; none for operations that send none.
func (k kind) topic() string {
	switch k {
	case deferredKeys, inlineKeys:
		return withKeys
	case deferredLookUp:
		return withLookUp
	case deferredNothing, inlineNothing:
		return withNothing
	case chain, inlineChain:
		return first
	}
	return ""
}

func (k kind) operation() idem.Operation {
	operation := idem.Operation{Name: string(k), Kind: idem.KindDeferred, Policy: idem.IETF()}
	switch k {
	case atomicWrite:
		operation.Kind = idem.KindAtomic
	case optimistic:
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
	name string
	kind kind
	id   storage.RecordKey
	// under counts the requests that the clients wait for, and those that they do not wait for any more.
	under int
	// final is the answer that was final, accepted the 202 before it.
	final, accepted *answer
	// servers are the processes that served it, and began the incarnations whose handler began.
	servers []*process
	began   map[idem.OperationID]bool
	// nothing is set while the last answer said that nothing had happened, and nobody has asked again since.
	nothing bool
}

const tenant = "t"

func (k *key) request() idem.Request {
	body := fmt.Sprintf(`{"order":%q}`, k.name)
	return idem.Request{Tenant: tenant, Key: k.name, Input: canonical.Input{MediaType: "application/json", Body: []byte(body)}}
}

// add is a business write that counts how often it happened.
func add(row string) idem.Write {
	return memstore.Write{Key: row, Apply: func(before []byte) []byte { return append(before, 'x') }}
}

// The rows that all keys of a story change: each counts the writes. Of the first only so many succeed, and the second is changed under
// an optimistic lock.
const (
	limited     = "limited"
	limitedMost = 2
	locked      = "locked"
)

// shared are writes that compete with those of others: a rejection where the limit is reached, another run where somebody was faster.
func (w *world) shared() []idem.Write {
	seen := len(w.memory.Row(locked))
	one, another := add(limited).(memstore.Write), add(locked).(memstore.Write)
	one.Condition = func(row []byte) bool { return len(row) < limitedMost }
	one.Failure = idem.Reject(idem.NewProblem(409, "limit_reached", "Limit Reached", "There is nothing left."))
	another.Condition = func(row []byte) bool { return len(row) == seen }
	another.Failure = idem.Retry()
	return []idem.Write{one, another}
}

// written is how often the key's business write happened, settled that of its message's settlement.
func (k *key) written() string           { return "written " + k.name }
func settled(m storage.MessageID) string { return "settled " + string(m) }

// handler is what the application does for the key.
func (k *key) handler(p *process) idem.Handler {
	w := p.world
	return func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
		run := w.numbered("handler of " + k.name)
		w.begun(k, tx.OperationID())
		w.say("%s runs in %s", run, p.name)
		if k.kind.wrapped() {
			return k.effect(ctx, p, run)
		}
		time.Sleep(w.between(run, time.Millisecond, w.mood.handler))
		if w.fault(run+" answers 503", w.mood.declines, 1) != nothingWrong {
			return idem.Response{Status: 503}, nil
		}
		tx.Write(add(k.written()))
		if k.kind == atomicWrite || k.kind == optimistic {
			tx.Write(w.shared()...)
		}
		if topic := k.kind.topic(); topic != "" {
			tx.Send(topic, []byte(k.name))
			return idem.JSON(202, map[string]string{"order": k.name, "by": string(tx.OperationID())})
		}
		return idem.JSON(201, map[string]string{"order": k.name, "by": string(tx.OperationID())})
	}
}

// effect is a handler that writes for itself: it makes one call, under a lease that it has looked at.
func (k *key) effect(ctx context.Context, p *process, run string) (idem.Response, error) {
	w := p.world
	execution, _ := idem.ExecutionFrom(ctx)
	time.Sleep(w.between(run, time.Millisecond, w.mood.handler))
	if k.kind == wrappedReleased && w.fault(run+" answers 503", w.mood.declines, 1) != nothingWrong {
		return idem.Response{Status: 503}, nil
	}
	p.thaw()
	if err := idem.Leased(ctx); err != nil {
		return idem.Response{Status: 500}, nil
	}
	outcome := p.ask(ctx, k.name, w.declines("", k.kind == wrappedSafe, storage.Message{Payload: []byte(k.name)}), func() {
		p.provider.charge(k.downstream(execution.OperationID), k.kind == wrappedSafe)
		w.noteEffect(k, string(execution.OperationID))
	})
	time.Sleep(w.between(run+" afterwards", time.Millisecond, w.mood.handler))
	switch outcome := outcome.(type) {
	case outbox.Delivered:
		return idem.JSON(201, map[string]string{"order": k.name})
	case outbox.Declined:
		return idem.JSON(402, map[string]string{"order": k.name})
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
	switch known := p.look(ctx, string(r.OperationID)); {
	case !known:
		return outbox.Unclear{Cause: errProvider}
	case p.provider.has(string(r.OperationID)) > 0:
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
	switch {
	case m.Topic == first && made:
		said.Next = &outbox.Next{Topic: second, Payload: m.Payload}
	case m.Topic == second && !made:
		said.Next = &outbox.Next{Topic: undo, Payload: m.Payload}
	case m.Topic == undo:
		said.Response = told(502, m)
	case made:
		said.Response = told(201, m)
	default:
		said.Response = told(402, m)
	}
	return said, nil
}

func told(status int, m storage.Message) idem.Response {
	body, err := json.Marshal(map[string]string{"order": string(m.Payload), "topic": m.Topic})
	if err != nil {
		panic(err) // strings always have JSON
	}
	return idem.Response{Status: status, Body: body}
}
