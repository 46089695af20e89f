package sim

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// judge is what the story's invariants are judged by: what was seen of the rows, and what the provider made.
type judge struct {
	records  map[storage.RecordKey]storage.Record
	messages map[storage.MessageID]storage.Message
	// effects are those of each intent: a key, or a step of a key's chain.
	effects map[string]int
	// knows are processes that were given the provider's definite answer about a message: that it was made.
	knows map[storage.MessageID][]*process
	// told are the messages of whose death an operator was told.
	told map[storage.MessageID]bool
}

func newJudge() judge {
	return judge{
		records: map[storage.RecordKey]storage.Record{}, messages: map[storage.MessageID]storage.Message{}, effects: map[string]int{},
		knows: map[storage.MessageID][]*process{}, told: map[storage.MessageID]bool{},
	}
}

// learnt notes that a process was given a definite answer.
func (w *world) learnt(id storage.MessageID, p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge.knows[id] = append(w.judge.knows[id], p)
}

// told notes that an operator was told of a message.
func (w *world) told(id storage.MessageID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge.told[id] = true
}

// served notes which process serves a request, and begun that a handler began.
func (w *world) served(k *key, p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k.servers = append(k.servers, p)
}

func (w *world) begun(k *key, id storage.OperationID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k.began == nil {
		k.began = map[storage.OperationID]bool{}
	}
	k.began[id] = true
}

// unhurt says whether none of the processes died or froze.
func unhurt(processes []*process) bool {
	return !slices.ContainsFunc(processes, func(p *process) bool { return p.dead.Load() || p.hurt.Load() })
}

// effected counts an effect that the provider has just made for a message, and has it tell of it. Called with the lock held.
func (w *world) effected(m storage.Message) {
	w.judge.effects[m.Topic+" of "+string(m.Payload)] = w.provider.has(string(m.ID))
	w.judgeEffect(m.Topic + " of " + string(m.Payload))
	if k := w.key(string(m.Payload)); k.nothing {
		w.broken("I1: %s has an effect after its client was told that nothing had happened", k.name)
	}
	w.webhook(m)
}

// noteEffect counts what a wrapped handler made.
func (w *world) noteEffect(k *key, id string) {
	intent := k.name
	if k.kind == wrappedSafe {
		return // made again as often as it likes: it does no harm
	}
	w.judge.effects[intent]++
	w.judgeEffect(intent)
	if k.nothing {
		w.broken("I1: %s has an effect by %s after its client was told that nothing had happened", k.name, short(id))
	}
}

// judgeEffect holds I2.
func (w *world) judgeEffect(intent string) {
	if n := w.judge.effects[intent]; n > 1 {
		w.broken("I2: %s was made %d times", intent, n)
	}
}

// look finds what has changed in the rows since the last look, judges it, and says it. Called with the lock held.
func (w *world) look() (changes []string) {
	records := w.memory.Records()
	for _, r := range records {
		before, had := w.judge.records[r.Key]
		if had && before.Revision == r.Revision && before.State == r.State {
			continue
		}
		changes = append(changes, fmt.Sprintf("the record of %s is %s %d (%s, epoch %d)", w.nameOf(r.Key), r.State, r.Response.Status, short(string(r.OperationID)), r.Epoch))
		if had && before.State.Final() && before.OperationID == r.OperationID && !sameFinal(before, r) {
			w.broken("I8: the final record of %s, %s %d, became %s %d", w.nameOf(r.Key), before.State, before.Response.Status, r.State, r.Response.Status)
		}
		w.judge.records[r.Key] = r
	}
	for _, m := range w.memory.Messages() {
		before, had := w.judge.messages[m.ID]
		if had && before.Revision == m.Revision && before.State == m.State {
			continue
		}
		if !had {
			w.stream(m)
		}
		changes = append(changes, fmt.Sprintf("message %s of %s to %s is %s (epoch %d, %d calls)", short(string(m.ID)), m.Payload, m.Topic, m.State, m.Epoch, m.Attempts))
		if had && before.State.Final() && before.State != m.State {
			w.broken("I8: message %s of %s, which was %s, became %s", short(string(m.ID)), m.Payload, before.State, m.State)
		}
		if n := len(w.memory.Row(settled(m.ID))); n > 1 {
			w.broken("I1: message %s of %s was settled %d times", short(string(m.ID)), m.Payload, n)
		}
		w.judge.messages[m.ID] = m
	}
	for _, k := range w.keys {
		n := len(w.memory.Row(k.written()))
		if n > 1 {
			w.broken("I1: the business write of %s happened %d times", k.name, n)
		}
		if n > 0 && k.nothing {
			w.broken("I1: the business write of %s happened after its client was told that nothing had", k.name)
		}
	}
	return changes
}

func sameFinal(a, b storage.Record) bool {
	return a.State == b.State && a.Response.Status == b.Response.Status && bytes.Equal(a.Response.Body, b.Response.Body)
}

func (w *world) nameOf(id storage.RecordKey) string {
	for _, k := range w.keys {
		if k.id == id {
			return k.name
		}
	}
	return "somebody"
}

// asked notes that a client asks: what the last answer said of now need not hold any more. It says whether a final answer
// was told before.
func (w *world) asked(k *key) (afterFinal bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k.under++
	k.nothing = false
	return k.final != nil
}

// answered judges what a client was told (I4).
func (w *world) answered(k *key, who string, afterFinal bool, a answer) {
	w.say("%s is told %s", who, a)
	w.mu.Lock()
	defer w.mu.Unlock()
	if errors.Is(a.err, errNoAnswer) {
		return // the request may still be under way: under stays as it is
	}
	k.under--
	switch {
	case a.final():
		if k.final != nil && !k.final.same(a) {
			w.broken("I4: %s was told %s after %s", k.name, a, k.final)
		}
		k.final = &a
	case a.accepted():
		if afterFinal {
			w.broken("I4: %s was told %s after %s", k.name, a, k.final)
		}
		if k.accepted != nil && !k.accepted.same(a) {
			w.broken("I4: %s was accepted as %s and as %s", k.name, k.accepted, a)
		}
		k.accepted = &a
	case a.err == nil && a.result.Outcome == idem.OutcomeMismatch:
		w.broken("I4: %s is a mismatch of itself", k.name)
	case a.err == nil && a.result.State == storage.StateFailedRetryable && a.result.Response.Status != 0 && k.kind.leased():
		if k.final != nil || k.accepted != nil {
			w.broken("I4: %s was told that nothing had happened, after an answer that stands", k.name)
		}
		if len(w.memory.Row(k.written())) > 0 || w.judge.effects[k.name] > 0 {
			w.broken("I1: %s was told that nothing had happened, and it had", k.name)
		}
		k.nothing = k.under == 0 && k.kind != wrappedSafe
	}
}

func (a answer) same(b answer) bool {
	return a.result.Response.Status == b.result.Response.Status && bytes.Equal(a.result.Response.Body, b.result.Response.Body)
}

// String is the answer as a story tells it.
func (a answer) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	return fmt.Sprintf("%s, %s %d %s", a.result.Outcome, a.result.State, a.result.Response.Status, a.result.Response.Body)
}

// judgeEnd judges how the story ended: everybody is gone, and the background had time.
func (w *world) judgeEnd() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look()
	successes := 0
	for _, k := range w.keys {
		w.judgeKey(k)
		if k.kind == atomicWrite || k.kind == optimistic {
			successes += len(w.memory.Row(k.written()))
		}
	}
	for _, row := range []string{limited, locked} {
		if n := len(w.memory.Row(row)); n != successes {
			w.broken("I1: row %s was changed %d times by %d operations", row, n, successes)
		}
	}
}

// judgeKey holds the end of one key to I1, I2, I3 and I9.
func (w *world) judgeKey(k *key) {
	r, ok := w.judge.records[k.id]
	if !ok {
		if len(w.memory.Row(k.written())) > 0 || w.judge.effects[k.name] > 0 {
			w.broken("I1: %s has no record, and had an effect", k.name)
		}
		return
	}
	written := len(w.memory.Row(k.written()))
	messages := w.messagesOf(r)
	switch {
	case k.final != nil && r.State.Final() && k.final.result.Response.Status != r.Response.Status:
		w.broken("I4: %s was told %s, and %d is stored", k.name, k.final, r.Response.Status)
	case k.final != nil && !r.State.Final():
		w.broken("I4: %s was told %s, and its record is %s", k.name, k.final, r.State)
	case k.kind.wrapped():
		w.judgeWrapped(k, r)
	case r.State.Final() && r.Response.Status == 201 && written != 1:
		w.broken("I1: %s is completed, and its write happened %d times", k.name, written)
	case r.State == storage.StatePending && (written != 1 || len(messages) == 0):
		w.broken("I1: %s is pending with %d writes and %d messages", k.name, written, len(messages))
	case r.State == storage.StateUnknown:
		w.broken("I9: %s, which needs no operator, is unknown", k.name)
	}
	open, dead := false, false
	for _, m := range messages {
		w.judgeMessage(k, m)
		open, dead = open || !m.State.Final(), dead || m.State == storage.MessageDead
	}
	if r.State == storage.StatePending && !open {
		w.broken("I9: %s is pending, and none of its messages is open", k.name)
	}
	if len(messages) > 0 && r.State.Final() && k.kind.chained() && !dead { // what is dead an operator has been told of
		w.judgeChain(k, r)
	}
}

// judgeWrapped holds a wrapped key's record to what its handler did.
func (w *world) judgeWrapped(k *key, r storage.Record) {
	made := w.judge.effects[k.name]
	switch {
	case k.kind == wrappedSafe:
	case r.State == storage.StateCompleted && r.Response.Status == 201 && made != 1:
		w.broken("I1: %s is completed, and was made %d times", k.name, made)
	case r.State == storage.StateCompleted && r.Response.Status == 402 && made != 0:
		w.broken("I1: %s is declined, and was made %d times", k.name, made)
	case r.State == storage.StateFailedRetryable && made != 0:
		w.broken("I1: %s is free, and was made %d times", k.name, made)
	case r.State == storage.StateInProgress:
		w.broken("I9: %s is still in progress", k.name)
	case r.State == storage.StateUnknown && !k.began[r.OperationID] && unhurt(k.servers):
		w.broken("I9: %s is unknown, and its handler never began", k.name)
	case r.State == storage.StateUnknown && k.kind == wrappedProbed:
		w.broken("I9: %s can be looked up, and is still unknown", k.name)
	}
}

// judgeMessage holds a message's end to the provider's books.
func (w *world) judgeMessage(k *key, m storage.Message) {
	made := w.provider.has(string(m.ID))
	switch {
	case m.State == storage.MessageDelivered && made == 0:
		w.broken("I3: message %s of %s is delivered, and was never made", short(string(m.ID)), k.name)
	case (m.State == storage.MessageDeclined || m.State == storage.MessageCancelled) && made > 0:
		w.broken("I3: message %s of %s is %s, and was made", short(string(m.ID)), k.name, m.State)
	case !m.State.Final() && m.State != storage.MessageDead && m.State != storage.MessageUnknown:
		w.broken("I9: message %s of %s is still %s", short(string(m.ID)), k.name, m.State)
	case w.untold(m):
		w.broken("I3: message %s of %s is dead, and nobody was told", short(string(m.ID)), k.name)
	case !m.State.Final() && m.KeptDelivered == nil && slices.ContainsFunc(w.judge.knows[m.ID], func(p *process) bool { return !p.dead.Load() }):
		w.broken("I3: message %s of %s is %s, and a process that lived on was told that it was made", short(string(m.ID)), k.name, m.State)
	case m.State == storage.MessageUnknown && m.Topic != withNothing:
		w.broken("I9: message %s of %s can be looked up, and is still unknown", short(string(m.ID)), k.name)
	}
}

// judgeChain demands that what a chain holds at the provider goes with what its record says.
func (w *world) judgeChain(k *key, r storage.Record) {
	count := func(topic string) int { return w.judge.effects[topic+" of "+k.name] }
	held, paid, undone := count(first), count(second), count(undo)
	switch {
	case r.Response.Status == 201 && (held != 1 || paid != 1 || undone != 0):
		w.broken("I6: %s is completed with %d held, %d paid and %d undone", k.name, held, paid, undone)
	case r.Response.Status != 201 && (paid != 0 || held != undone):
		w.broken("I6: %s is %d with %d held, %d paid and %d undone", k.name, r.Response.Status, held, paid, undone)
	}
}

// untold says whether a message is dead, and waits for an operator whom nobody has told. What failed with its operation is told of
// once: its client knows, and nobody has to do anything.
func (w *world) untold(m storage.Message) bool {
	return m.State == storage.MessageDead && !w.judge.told[m.ID] && !w.judge.records[m.RecordKey].State.Final()
}

// messagesOf are the messages of an operation, as they were seen last.
func (w *world) messagesOf(r storage.Record) (all []storage.Message) {
	for _, m := range w.judge.messages {
		if m.OperationID == r.OperationID {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b storage.Message) int { return a.Index - b.Index })
	return all
}

// ended says whether nothing but a person can change anything any more.
func (w *world) ended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.judge.messages {
		if w.untold(m) {
			return false
		}
		if !m.State.Final() && m.State != storage.MessageDead && (m.State != storage.MessageUnknown || m.Topic != withNothing) {
			return false
		}
	}
	for _, r := range w.judge.records {
		if r.Kind == idem.KindWrapped && r.State == storage.StateInProgress || r.State == storage.StateUnknown && r.Operation == string(wrappedProbed) {
			return false
		}
	}
	return true
}
