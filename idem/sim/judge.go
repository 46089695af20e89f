package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// judge is what the story's invariants are judged by: what was seen of the rows, what the provider made, and who did what.
type judge struct {
	records  map[storage.RecordKey]storage.Record
	messages map[storage.MessageID]storage.Message
	// last are all incarnations, and lastMessages all messages that there ever were, as each was seen last: rows expire, keys are taken
	// by the next incarnation, and what they said is held to the provider's books all the same.
	last         map[storage.OperationID]storage.Record
	lastMessages map[storage.MessageID]storage.Message
	// owners are the acts that hold or held records, and founders those that began incarnations.
	owners   map[storage.Owner]*act
	founders map[storage.OperationID]*act
	// keys are those of incarnations.
	keys map[storage.OperationID]*key
	// effects are those of each intent: an incarnation, or a step of its chain.
	effects map[string]int
	// knows are the acts that were given the provider's definite answer about a message: that it was made.
	knows map[storage.MessageID][]*act
	// calls counts the calls that left for a message.
	calls map[storage.MessageID]int
	// told are the messages of whose death an operator was told.
	told map[storage.MessageID]bool
	// rung are the messages and the operations that are unknown, and an alarm said so.
	rung map[string]bool
	// finals are the answers that were stored, by incarnation.
	finals map[storage.OperationID]storage.Response
}

func newJudge() judge {
	return judge{
		records: map[storage.RecordKey]storage.Record{}, messages: map[storage.MessageID]storage.Message{},
		last: map[storage.OperationID]storage.Record{}, lastMessages: map[storage.MessageID]storage.Message{},
		owners: map[storage.Owner]*act{}, founders: map[storage.OperationID]*act{}, keys: map[storage.OperationID]*key{},
		effects: map[string]int{}, knows: map[storage.MessageID][]*act{}, calls: map[storage.MessageID]int{}, told: map[storage.MessageID]bool{}, rung: map[string]bool{},
		finals: map[storage.OperationID]storage.Response{},
	}
}

// told notes that an operator was told of a message.
func (w *world) told(id storage.MessageID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge.told[id] = true
}

// rang notes that an alarm said of a message, or of an operation, that it is unknown.
func (w *world) rang(about string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge.rung[about] = true
}

// served notes which process serves a request.
func (w *world) served(k *key, p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k.servers = append(k.servers, p)
}

// unhurt says whether none of the processes died or froze.
func unhurt(processes []*process) bool {
	return !slices.ContainsFunc(processes, func(p *process) bool { return p.dead.Load() || p.hurt.Load() })
}

// effected counts an effect that the provider has just made for a message, and has it tell of it. Called with the lock held.
func (w *world) effected(m storage.Message, made bool) {
	intent := m.Topic + " of " + string(m.OperationID)
	w.judge.effects[intent] = w.provider.has(string(m.ID))
	w.judgeEffect(intent)
	if k := w.key(string(m.Payload)); k.nothing {
		w.broken("I1: %s has an effect after its client was told that nothing had happened", k.name)
	}
	w.judgeReturned(m)
	w.webhook(m, made)
}

// noteEffect counts what a wrapped handler made.
func (w *world) noteEffect(k *key, id storage.OperationID) {
	if k.kind == wrappedSafe {
		return // made again as often as it likes: it does no harm
	}
	w.judge.effects[string(id)]++
	w.judgeEffect(string(id))
	if w.judge.last[id].State == storage.StateFailedRetryable {
		w.broken("I1: the record of %s says that nothing happened, and it has", k.name)
	}
	if k.nothing {
		w.broken("I1: %s has an effect by %s after its client was told that nothing had happened", k.name, short(string(id)))
	}
}

// judgeEffect holds I2.
func (w *world) judgeEffect(intent string) {
	if n := w.judge.effects[intent]; n > 1 {
		w.broken("I2: %s was made %d times", intent, n)
	}
}

// judgeReturned: what the application was told will not happen does not happen.
func (w *world) judgeReturned(m storage.Message) {
	if len(w.memory.Row(returned(m.ID))) > 0 && w.provider.has(string(m.ID)) > 0 && !w.key(string(m.Payload)).contradicted {
		w.broken("I1: message %s to %s was given up with what that means, and was made", short(string(m.ID)), m.Topic)
	}
}

// look finds what an act has changed in the rows since the last look, judges it, and says it. A nil act is the native TTL. Called
// with the lock held.
func (w *world) look(a *act) (changes []string) {
	records, messages := w.memory.Records(), w.memory.Messages()
	earlier, before := w.judge.records, w.judge.messages
	w.judge.records = make(map[storage.RecordKey]storage.Record, len(records))
	for _, r := range records {
		w.judge.records[r.Key], w.judge.last[r.OperationID] = r, r
	}
	for _, r := range records {
		was, had := earlier[r.Key]
		if had && was.Revision == r.Revision && was.State == r.State {
			continue
		}
		if w.tell {
			changes = append(changes, fmt.Sprintf("the record of %s is %s %d (%s, epoch %d)", w.nameOf(r.Key), r.State, r.Response.Status, short(string(r.OperationID)), r.Epoch))
		}
		w.judgeRecord(a, was, r)
	}
	changes = append(changes, w.lookAtMessages(a, messages, earlier)...)
	w.judgeVanished(a, earlier, before)
	return changes
}

// lookAtMessages is the part of look about messages.
func (w *world) lookAtMessages(a *act, messages []storage.Message, records map[storage.RecordKey]storage.Record) (changes []string) {
	earlier := w.judge.messages
	w.judge.messages = make(map[storage.MessageID]storage.Message, len(messages))
	for _, m := range messages {
		w.judge.messages[m.ID], w.judge.lastMessages[m.ID] = m, m
	}
	for _, m := range messages {
		before, had := earlier[m.ID]
		if had && before.Revision == m.Revision && before.State == m.State && before.RemoveAt.Equal(m.RemoveAt) {
			continue
		}
		if !had {
			w.stream(m)
		}
		if w.tell {
			changes = append(changes, fmt.Sprintf("message %s of %s to %s is %s (epoch %d, %d calls)", short(string(m.ID)), w.subject(m), m.Topic, m.State, m.Epoch, m.Attempts))
		}
		w.judgeMessage(a, before, m, records[m.RecordKey])
	}
	return changes
}

func (w *world) nameOf(id storage.RecordKey) string {
	for _, k := range w.keys {
		if k.id == id {
			return k.name
		}
	}
	if k, ok := w.others.Load(id); ok {
		return k.(*key).name
	}
	return "somebody"
}

// skews is more than a clock differs from the story's.
const skews = time.Second
