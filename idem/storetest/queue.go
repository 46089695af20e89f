package storetest

import (
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// queues are those of the messages' sparse index.
var queues = []string{storage.QueueOffer, storage.QueueUnknown, storage.QueueDead}

// queueTests: whatever is not final stands in its queue, so nothing is ever lost (design.md "Tables"). Indexes are read
// eventually consistent, so each test waits for what it demands.
var queueTests = []test{
	{"each message that is not final stands in the queue of its state, and in no other", func(e *env) {
		for state, queue := range ordered(map[string]string{
			string(storage.MessagePending): storage.QueueOffer, string(storage.MessageClaimed): storage.QueueOffer,
			string(storage.MessageUnknown): storage.QueueUnknown, string(storage.MessageDead): storage.QueueDead,
			string(storage.MessageEvidenced): storage.QueueOffer,
		}) {
			_, m := e.deferred()
			now := e.claimed(m)
			now.State, now.Epoch, now.SweepAt = storage.MessageState(state), 3, base.Add(5*time.Millisecond)
			e.ok(e.Store.UpdateMessage(e.ctx, now, storage.FenceOfMessage(m)))
			want := []storage.MessageRef{ref(now)}
			for _, q := range queues {
				if q == queue {
					e.wantQueued(q, now.SweepAt, want, now)
				} else {
					e.wantQueued(q, now.SweepAt.AddDate(1, 0, 0), nil, now)
				}
			}
		}
	}},
	{"a final message stands in no queue, whether it was settled or updated", func(e *env) {
		for _, state := range []storage.MessageState{storage.MessageDelivered, storage.MessageDeclined, storage.MessageCancelled} {
			_, settled := e.deferred()
			_, updated := e.deferred()
			e.wantQueued(storage.QueueOffer, settled.SweepAt, []storage.MessageRef{ref(settled)}, settled)
			end := delivered(settled)
			end.State = state
			e.ok(e.settle(storage.Settlement{Message: end, Token: e.token()}))
			final := updated
			final.State, final.DoneAt, final.SweepAt = state, base, time.Time{}
			e.ok(e.Store.UpdateMessage(e.ctx, final, storage.FenceOfMessage(updated)))
			for _, q := range queues {
				e.wantQueued(q, base.AddDate(1, 0, 0), nil, settled, updated)
			}
		}
	}},
	{"a settlement that leaves the message dead puts it into the operator's queue", func(e *env) {
		_, m := e.deferred()
		dead := delivered(m)
		dead.State, dead.DoneAt, dead.SweepAt = storage.MessageDead, time.Time{}, base.Add(time.Hour)
		e.ok(e.settle(storage.Settlement{Message: dead, Token: e.token()}))
		e.wantQueued(storage.QueueDead, dead.SweepAt, []storage.MessageRef{{ID: m.ID, Tenant: m.Tenant, Topic: m.Topic, At: dead.SweepAt}}, m)
		e.wantQueued(storage.QueueOffer, base.AddDate(1, 0, 0), nil, m)
	}},
	{"the next message of a chain stands in its queue", func(e *env) {
		r, m := e.deferred()
		next := message(r, 2)
		e.ok(e.settle(storage.Settlement{Message: delivered(m), Next: &next, Token: e.token()}))
		e.wantQueued(storage.QueueOffer, next.SweepAt, []storage.MessageRef{ref(next)}, m, next)
	}},
	{"a message is due from its millisecond on, not before", func(e *env) {
		_, m := e.deferred()
		e.wantQueued(storage.QueueOffer, m.SweepAt, []storage.MessageRef{ref(m)}, m)
		e.wantQueued(storage.QueueOffer, m.SweepAt.Add(-time.Millisecond), nil, m)
	}},
	{"a message that names no time is due at once", func(e *env) {
		r := pending(e.reserved())
		m := message(r, 1)
		m.SweepAt = time.Time{}
		e.ok(e.send(storage.Commit{Record: r, Now: base, Messages: []storage.Message{m}, Token: e.token()}))
		e.wantMessage(m.ID, &m)
		for found := false; !found; {
			for shard := range e.Store.Shards() {
				refs, _, err := e.Store.QueuedMessages(e.ctx, storage.QueueOffer, shard, base, 100, "") // it is before any other test's
				e.ok(err)
				found = found || slices.ContainsFunc(refs, func(r storage.MessageRef) bool { return r.ID == m.ID })
			}
			if err := idem.Pause(e.ctx, 20*time.Millisecond); err != nil {
				e.Fatal("it stands in no queue")
			}
		}
		e.ok(e.settle(storage.Settlement{Message: delivered(m), Token: e.token()}))
	}},
	{"pages are bounded, oldest first, and miss nothing in any shard", func(e *env) {
		var messages []storage.Message
		var want []storage.MessageRef
		for i := range 8 + 4*e.Store.Shards() {
			r := pending(e.reserved())
			m := message(r, 1)
			m.SweepAt = base.Add(time.Duration(i*7%5) * time.Millisecond) // out of order, some at the same time
			e.ok(e.send(storage.Commit{Record: r, Now: base, Messages: []storage.Message{m}, Token: e.token()}))
			messages, want = append(messages, m), append(want, ref(m))
		}
		e.wantQueued(storage.QueueOffer, base.Add(time.Second), want, messages...)
		for _, limit := range []int{1, 3} {
			if diff := e.messageIndex().differs(e, storage.QueueOffer, base.Add(time.Second), limit, want, ids(messages, messageID)); diff != "" {
				e.Errorf("in pages of %d: %s", limit, diff)
			}
		}
	}},
	{"many messages are spread over more than one shard where there are more", func(e *env) {
		shards := e.Store.Shards()
		if shards < 1 {
			e.Fatalf("the store has %d shards", shards)
		}
		var messages []storage.Message
		var want []storage.MessageRef
		for range 4 * min(shards, 16) {
			_, m := e.deferred()
			messages, want = append(messages, m), append(want, ref(m))
		}
		e.wantQueued(storage.QueueOffer, base.Add(time.Minute), want, messages...)
		used := 0
		for shard := range shards {
			if len(e.messageIndex().shard(e, storage.QueueOffer, shard, base.Add(time.Minute), 100, ids(messages, messageID))) > 0 {
				used++
			}
		}
		if used < min(shards, 2) {
			e.Errorf("%d messages stand in %d of %d shards", len(messages), used, shards)
		}
	}},
}

func ref(m storage.Message) storage.MessageRef {
	return storage.MessageRef{ID: m.ID, Tenant: m.Tenant, Topic: m.Topic, At: m.SweepAt}
}

// messageIndex is the sparse index of messages.
func (e *env) messageIndex() index[storage.MessageRef] {
	return index[storage.MessageRef]{e.Store.QueuedMessages, func(r storage.MessageRef) (string, time.Time) { return string(r.ID), r.At }}
}

// wantQueued waits until exactly want of the given messages are due in the queue.
func (e *env) wantQueued(queue string, until time.Time, want []storage.MessageRef, messages ...storage.Message) {
	e.Helper()
	e.messageIndex().want(e, queue, until, want, ids(messages, messageID))
}

func messageID(m storage.Message) string { return string(m.ID) }
