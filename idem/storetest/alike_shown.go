package storetest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// outcome is what a caller can tell of an error: its kind, and what it shows of the rows.
func (a *alike) outcome(side int, err error) string {
	var (
		record  *storage.RecordConflictError
		message *storage.MessageConflictError
		write   *storage.WriteFailedError
	)
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &record):
		return "record conflict with " + a.shown(side, record.Existing) + " and " + shownMessage(record.Message)
	case errors.As(err, &message):
		return "message conflict with " + shownMessage(message.Existing)
	case errors.As(err, &write):
		return fmt.Sprintf("writes %v failed, unjudged %v %t", write.Indexes, write.Unjudged, write.OwnUnjudged)
	}
	return "refused"
}

// shown is a record with its body, and without what is a store's own: how many chunks hold that, and the place of what is in no queue.
func (a *alike) shown(side int, r *storage.Record) string {
	if r == nil {
		return "none"
	}
	same, err := a.sides[side].Store.LoadResponse(a.ctx, *r)
	switch {
	case errors.Is(err, storage.ErrChunksMissing):
		return "a record without its chunks"
	case err != nil:
		return "a record whose body can't be read: " + err.Error()
	}
	same.Chunks, same.ChunksDigest = 0, ""
	if _, at, queued := same.Queue(); queued {
		same.LookAt = at
	} else { // it is a place in no queue
		same.LookAt = time.Time{}
	}
	if same.Response = normal(same.Response); len(same.Response.Body) > briefBytesMax {
		same.Response.Body = fmt.Appendf(nil, "%d bytes, %x", len(same.Response.Body), sha256.Sum256(same.Response.Body))
	}
	return fmt.Sprintf("%+v", same)
}

func shownMessage(m *storage.Message) string {
	if m == nil {
		return "none"
	}
	same := *m
	same.Payload, same.KeptDelivered, same.KeptDeclined = orNil(same.Payload), nil, nil
	return fmt.Sprintf("%+v, delivered %s, declined %s", same, shownKept(m.KeptDelivered), shownKept(m.KeptDeclined))
}

func shownKept(k *storage.Kept) string {
	if k == nil {
		return "no"
	}
	return fmt.Sprintf("%+v", *keptOrNil(k))
}

// state is everything that a story may have written.
func (a *alike) state(side int) string {
	a.Helper()
	var all []string
	store := a.sides[side].Store
	for _, key := range a.keys {
		r, err := store.Get(a.ctx, key)
		all = append(all, fmt.Sprintf("%s %v", a.shown(side, r), err))
		for _, operation := range a.operations[key] {
			for n := 1; n <= chain; n++ {
				m, err := store.Message(a.ctx, operation.Message(n))
				all = append(all, fmt.Sprintf("%s %v", shownMessage(m), err))
			}
		}
	}
	for _, key := range a.rows {
		count, err := a.sides[side].CountRow(a.ctx, key)
		all = append(all, fmt.Sprintf("%d %v", count, err))
	}
	return strings.Join(all, "\n")
}

// sameQueues says whether the story's rows stand in the same queues of both stores. An index may be late.
func (a *alike) sameQueues(n int) bool {
	a.Helper()
	for range indexLate / indexPoll {
		if a.queues(0) == a.queues(1) {
			return true
		}
		if err := idem.Pause(a.ctx, indexPoll); err != nil {
			break
		}
	}
	return a.same(n, "queues", a.queues(0), a.queues(1))
}

// How late an index may be, and how often it is asked.
const (
	indexLate = 5 * time.Second
	indexPoll = 20 * time.Millisecond
)

// queues are the story's entries in every queue, with what an entry says. Which shard has one is the store's own.
func (a *alike) queues(side int) string {
	a.Helper()
	e := &env{T: a.T, Harness: a.sides[side], ctx: a.ctx}
	var messages, records, all []string
	for _, key := range a.keys {
		records = append(records, string(key))
		for _, operation := range a.operations[key] {
			for n := 1; n <= chain; n++ {
				messages = append(messages, string(operation.Message(n)))
			}
		}
	}
	until := base.AddDate(10, 0, 0)
	for shard := range e.Store.Shards() {
		for _, queue := range []string{storage.QueueOffer, storage.QueueUnknown, storage.QueueDead} {
			for _, ref := range e.messageIndex().shard(e, queue, shard, until, pageOfQueue, messages) {
				all = append(all, fmt.Sprintf("message in %s: %+v", queue, ref))
			}
		}
		for _, queue := range []string{storage.QueueLease, storage.QueueUnknown} {
			for _, ref := range e.recordIndex().shard(e, queue, shard, until, pageOfQueue, records) {
				all = append(all, fmt.Sprintf("record in %s: %+v", queue, ref))
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// pageOfQueue is how many entries of a queue are read at once.
const pageOfQueue = 100
