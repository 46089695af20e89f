package audit

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/faultproxy"
)

// Attributes are those that the fault proxy's journal has to keep for [Writes].
func Attributes() []string {
	return []string{
		schema.RecordKey, schema.MessageID, schema.State, schema.OperationID, schema.Epoch, schema.Owner, schema.Revision, schema.Topic,
		schema.ClearedAt,
	}
}

// Tables are the names of the two tables, and what the application knows of its topics.
type Tables struct {
	Records, Messages string
	// IgnoresKeys says that the provider of a topic does: a second call is a second effect.
	IgnoresKeys func(topic string) bool
}

// WriteCounts are what [Writes] has judged.
type WriteCounts struct {
	Rows, Writes int
	// Steps are pairs of a write and the one just before it; Overlapping are writes of which nobody knows what was just before.
	Steps, Overlapping int
	// FromUnknown are the steps that began in unknown.
	FromUnknown int
}

// Writes holds every write to a record or a message of a run against I7 and I8.
//
// I7: no step leads from unknown to a row that executes: a message is claimed, or a record reserved or committed, only after a step
// of its own has said that nothing happened (of a message, with the time of that proof). A message whose provider ignores keys is
// never claimed by one claim after the other.
//
// I8: no write has an older epoch than one that was there before it; of one epoch there is one owner; an incarnation that was
// replaced never comes back, and its holder changes nothing of the next one; what is final stays what it is. A cache-bust, which gives an
// epoch another owner and ends what is final, is a person's: no function makes one.
//
// It sees what functions wrote through the fault proxy, and neither what tests and operators wrote beside it nor what native TTL
// removed. It sees the calls of a provider as claims only: that one claim makes one call is I2's. Of two writes that overlapped it
// does not know which was first; it judges neither that pair nor, for I7, what came next to it. It trusts the database with the
// conditions. Whether a probe's proof was true, no row says.
func Writes(journal faultproxy.Journal, tables Tables) (broken []string, counts WriteCounts) {
	if journal.Dropped > 0 {
		broken = append(broken, fmt.Sprintf("I7, I8: the journal has lost %d writes: they are not judged", journal.Dropped))
	}
	rows := map[[2]string][]faultproxy.Write{}
	for _, w := range journal.Writes {
		id := ""
		switch w.Table {
		case tables.Records:
			id = w.Values[schema.RecordKey]
		case tables.Messages:
			id = w.Values[schema.MessageID]
		}
		if id == "" || w.Values[schema.State] == "" { // of another table, or a write that moves no state, or a chunk or mark
			continue
		}
		counts.Writes++
		rows[[2]string{w.Table, id}] = append(rows[[2]string{w.Table, id}], w)
	}
	for id, all := range rows {
		counts.Rows++
		h := history{name: "record " + id[1], record: id[0] == tables.Records, all: merged(all), tables: tables, counts: &counts}
		if !h.record {
			h.name = "message " + id[1]
		}
		h.fences()
		h.steps()
		broken = append(broken, h.broken...)
	}
	slices.Sort(broken)
	return broken, counts
}

// merged makes one write of those of one revision: they are the same one, sent again.
func merged(all []faultproxy.Write) (writes []faultproxy.Write) {
	seen := map[string]int{}
	for _, w := range all {
		revision := w.Values[schema.Revision]
		i, again := seen[revision]
		if !again || revision == "" {
			seen[revision] = len(writes)
			writes = append(writes, w)
		} else if first := &writes[i]; !first.Accepted {
			began := first.Began
			*first = w
			first.Began = began
		}
	}
	return writes
}

// history is all that was written to one row.
type history struct {
	name   string
	record bool
	all    []faultproxy.Write
	tables Tables
	counts *WriteCounts
	broken []string
}

func (h *history) blame(invariant, format string, arguments ...any) {
	h.broken = append(h.broken, fmt.Sprintf("%s: %s: %s", invariant, h.name, fmt.Sprintf(format, arguments...)))
}

// before says that a was made before b for certain. What had no answer may have been made at any later time.
func before(a, b faultproxy.Write) bool { return a.Accepted && a.Ended < b.Began }

func state(w faultproxy.Write) string { return w.Values[schema.State] }

// epoch is 0 where the write leaves it as it is.
func epoch(w faultproxy.Write) int64 {
	n, _ := strconv.ParseInt(w.Values[schema.Epoch], 10, 64)
	return n
}

// incarnation is the record's operation that a write is about; of an update its condition says it. It is empty for a message.
func (h *history) incarnation(w faultproxy.Write) string {
	switch {
	case !h.record:
		return ""
	case w.Whole:
		return w.Values[schema.OperationID]
	}
	return w.Given[schema.OperationID]
}

// final says that a state is one that nothing leaves.
func (h *history) final(state string) bool {
	if h.record {
		return storage.State(state).Final()
	}
	return storage.MessageState(state).Final()
}

// fences compares each write with all that were made before it for certain.
func (h *history) fences() {
	for i, b := range h.all {
		if !b.Accepted {
			continue
		}
		for j, a := range h.all {
			if i == j || !before(a, b) {
				continue
			}
			if h.incarnation(a) != h.incarnation(b) {
				h.replaced(a, b)
				continue
			}
			h.fenced(a, b)
		}
	}
}

// fenced judges two writes of one incarnation, a before b.
func (h *history) fenced(a, b faultproxy.Write) {
	of, by := epoch(a), epoch(b)
	owner, other := a.Values[schema.Owner], b.Values[schema.Owner]
	switch {
	case by > 0 && by < of:
		h.blame("I8", "epoch %d is written after epoch %d: %v after %v", by, of, b, a)
	case by > 0 && by == of && owner != "" && other != "" && owner != other:
		h.blame("I8", "epoch %d has the owners %s and %s: %v after %v", by, owner, other, b, a)
	case h.final(state(a)) && state(a) != state(b):
		h.blame("I8", "%s, which is final, becomes %s: %v after %v", state(a), state(b), b, a)
	}
}

// replaced: an incarnation that came before another one does not come after it.
func (h *history) replaced(a, b faultproxy.Write) {
	for _, earlier := range h.all {
		if h.incarnation(earlier) == h.incarnation(b) && before(earlier, a) {
			h.blame("I8", "an incarnation comes back after the one that replaced it: %v after %v after %v", b, a, earlier)
			return
		}
	}
	if !b.Whole {
		h.blame("I8", "a holder changes another incarnation: %v after %v", b, a)
	}
}

// steps judges each write with the one just before it.
func (h *history) steps() {
	for _, b := range h.all {
		if !b.Accepted {
			continue
		}
		a, found, overlapping := h.justBefore(b)
		if overlapping {
			h.counts.Overlapping++
		}
		if !found {
			continue
		}
		h.counts.Steps++
		if state(a) == string(storage.StateUnknown) { // of a message the same word
			h.counts.FromUnknown++
			h.fromUnknown(a, b)
		}
		claimed := string(storage.MessageClaimed)
		if !h.record && state(a) == claimed && state(b) == claimed && epoch(b) > epoch(a) && h.tables.IgnoresKeys(b.Values[schema.Topic]) {
			h.blame("I7", "a claim that may have called follows another one, and the provider ignores keys: %v after %v", b, a)
		}
	}
}

// fromUnknown judges what follows unknown.
func (h *history) fromUnknown(a, b faultproxy.Write) {
	switch next := state(b); {
	case h.record && (next == string(storage.StateInProgress) || next == string(storage.StatePending)),
		!h.record && next == string(storage.MessageClaimed):
		h.blame("I7", "what is unknown becomes %s: %v after %v", next, b, a)
	case !h.record && next == string(storage.MessagePending):
		if cleared := b.Values[schema.ClearedAt]; cleared == "" || cleared == a.Values[schema.ClearedAt] {
			h.blame("I7", "what is unknown becomes pending without a proof of absence: %v after %v", b, a)
		}
	}
}

// justBefore is the write just before another one, where that is certain.
func (h *history) justBefore(b faultproxy.Write) (a faultproxy.Write, found, overlapping bool) {
	for _, c := range h.all {
		if before(c, b) && (!found || c.Ended > a.Ended) {
			a, found = c, true
		}
	}
	for _, c := range h.all {
		self := c.Began == b.Began && c.Ended == b.Ended
		if self || found && c.Began == a.Began && c.Ended == a.Ended {
			continue
		}
		if !before(c, b) && !before(b, c) || found && before(c, b) && !before(c, a) {
			return a, false, true
		}
	}
	return a, found, false
}
