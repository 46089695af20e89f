package idemtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
)

// world is one run of an application: its store, its queue and its processes, one after the other.
type world struct {
	app    App
	clock  *Clock
	memory *memstore.Store
	queue  *memqueue.Queue

	mu sync.Mutex
	// applied counts the business writes that were made; effects those of the providers, by message.
	applied int
	effects map[idem.MessageID]int
	// streamed are the messages whose stream record a worker was given.
	streamed map[idem.MessageID]bool
	answers  []answer
}

// answer is what a client was told. Without a response it is to come again.
type answer struct {
	state    storage.State
	response idem.Response
	err      error
}

// final says whether the answer is one that every later one must repeat.
func (a answer) final() bool { return a.state.Final() && a.response.Status != 0 }

// same says whether the client can't tell the answers apart.
func (a answer) same(b answer) bool {
	return a.state == b.state && sameResponse(a.response, b.response)
}

func sameResponse(a, b idem.Response) bool {
	return a.Status == b.Status && slices.Equal(a.Header, b.Header) && bytes.Equal(a.Body, b.Body)
}

// accepted says whether the answer is a 202 that stands until the final one.
func (a answer) accepted() bool { return a.state == storage.StatePending && a.response.Status != 0 }

// A run has at most so many rounds, of a minute each; it goes on for so many once everything has ended.
const (
	roundsMax  = 60
	round      = time.Minute
	roundsLast = 3
)

var errNoSuchCall = errors.New("the call to interrupt was not made: the application's calls differ from run to run")

// run is one request, and a crash. Runs with different seeds draw different ids, at different times.
func (a App) run(ctx context.Context, at crash, seed uint64) (*end, error) {
	w := &world{
		app: a, clock: NewClock(noon.Add(time.Duration(seed) * 25 * time.Hour)),
		effects: map[idem.MessageID]int{}, streamed: map[idem.MessageID]bool{},
	}
	var err error
	if w.memory, err = memstore.New(memstore.Config{Translate: w.translate, Now: w.clock.Now, Shards: 1}); err != nil {
		return nil, err
	}
	w.queue = memqueue.New(w.clock.Now)
	for key, row := range a.Rows {
		w.memory.PutRow(key, row)
	}
	p, err := w.start(at, 2*seed)
	if err != nil {
		return nil, err
	}
	var calls []string
	for ended, n := 0, 0; ended < roundsLast && n < roundsMax; n++ {
		p.live(ctx)
		if p.died() { // the next process starts at once
			if p, err = w.start(crash{}, 2*seed+1); err != nil {
				return nil, err
			}
			continue
		}
		switch {
		case ended > 0:
			ended++
		case w.settled():
			ended++
			calls = slices.Clone(p.calls)
		}
		w.clock.Advance(round)
	}
	if p.at.call > 0 {
		return nil, errNoSuchCall
	}
	return w.end(calls), nil
}

// translate makes the application's write count when it is made.
func (w *world) translate(write idem.Write) (memstore.Write, error) {
	native, ok := write.(memstore.Write)
	switch {
	case w.app.Translate != nil:
		var err error
		if native, err = w.app.Translate(write); err != nil {
			return memstore.Write{}, err
		}
	case !ok:
		return memstore.Write{}, fmt.Errorf("idemtest: a write is a %T, which App.Translate has to turn into a memstore.Write", write)
	}
	if apply := native.Apply; apply != nil {
		native.Apply = func(row []byte) []byte {
			w.mu.Lock()
			w.applied++
			w.mu.Unlock()
			return apply(row)
		}
	}
	return native, nil
}

// made counts an effect of a provider.
func (w *world) made(id idem.MessageID, outcome outbox.Outcome) {
	if _, ok := outcome.(outbox.Delivered); !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.effects[id]++
}

func (w *world) answered(a answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers = append(w.answers, a)
}

// fresh are the messages that the stream has not shown yet.
func (w *world) fresh() []storage.Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	var fresh []storage.Message
	for _, m := range w.memory.Messages() {
		if m.State == storage.MessagePending && !w.streamed[m.ID] {
			w.streamed[m.ID] = true
			fresh = append(fresh, m)
		}
	}
	return fresh
}

// settled says whether nobody has anything left to do.
func (w *world) settled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.answers) == 0 {
		return false
	}
	if last := w.answers[len(w.answers)-1]; !last.final() && !last.accepted() {
		return false
	}
	for _, m := range w.memory.Messages() {
		if w.open(m) {
			return false
		}
	}
	return true
}

// open says whether something can still become of the message without a person.
func (w *world) open(m storage.Message) bool {
	topic, ok := w.topic(m.Topic)
	switch m.State {
	case storage.MessagePending, storage.MessageClaimed:
		return ok
	case storage.MessageUnknown:
		return ok && topic.Probe != nil
	case storage.MessageDelivered, storage.MessageDeclined, storage.MessageEvidenced, storage.MessageDead, storage.MessageCancelled: // no call is open
	}
	return false
}

// parked says whether the message is where only a person can decide, by what the provider offers.
func (w *world) parked(m storage.Message) bool {
	topic, _ := w.topic(m.Topic)
	return m.State == storage.MessageUnknown && !topic.Keys.Honoured && topic.Probe == nil
}

func (w *world) topic(name string) (outbox.Topic, bool) {
	for _, topic := range w.app.Topics {
		if topic.Name == name {
			return topic, true
		}
	}
	return outbox.Topic{}, false
}
