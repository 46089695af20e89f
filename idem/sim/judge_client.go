package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// refuses says that the author of a decision is told that it has changed nothing: the row was not what they had seen, or the contract does
// not admit the decision.
func refuses(err error) bool {
	var record *storage.RecordConflictError
	var message *storage.MessageConflictError
	var transition *idem.TransitionError
	var refusal *outbox.RefusalError
	return errors.As(err, &record) || errors.As(err, &message) || errors.As(err, &transition) || errors.As(err, &refusal)
}

// asked notes that a client asks: what the last answer said of now need not hold any more.
func (w *world) asked(k *key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k.under++
	k.nothing = false
}

// answered judges what a client was told that asked at that time (I4).
func (w *world) answered(k *key, who string, asked time.Time, body int, a answer) {
	w.say("%s is told %s", who, a)
	w.mu.Lock()
	defer w.mu.Unlock()
	if errors.Is(a.err, errNoAnswer) {
		return // the request may still be under way: under stays as it is
	}
	k.under--
	w.identify(k, &a)
	switch {
	case a.err != nil:
	case a.mismatch() && w.mood.bodies == 1:
		w.broken("I4: %s is a mismatch of itself", k.name)
	case a.final() || a.accepted():
		w.judgeAnswer(k, asked, body, &a)
	case a.result.State == storage.StateFailedRetryable && a.result.Response.Status != 0 && k.wrapped:
		k.nothing = k.under == 0 && !k.safe
	}
}

// judgeAnswer: all answers of an incarnation are the same, the last ones and those before, and they are about what was asked for.
// A final answer is not followed by an earlier one, or by that of another incarnation, before its time is over: whoever asks after it was
// told gets it. Who asked before may have been answered by the incarnation before, which had expired and was not free yet.
func (w *world) judgeAnswer(k *key, asked time.Time, body int, a *answer) {
	op := a.result.OperationID
	if owner := w.judge.keys[op]; owner != nil && owner.tenant != k.tenant {
		w.broken("I5: %s is told the answer of %s, whose tenant is another one", k.name, owner.name)
	}
	if founder := w.judge.founders[op]; founder != nil && founder.key == k && founder.body != body {
		w.broken("I4: a client of %s asked for variant %d, and is told the answer of variant %d", k.name, body, founder.body)
	}
	for other, final := range k.finals {
		expires := final.result.ExpiresAt
		if other != op && final.at.Before(asked) && time.Now().Before(expires) {
			w.broken("I4: %s is told %s, and %s answers until %v", k.name, a, final, expires)
		}
	}
	switch order, said := orderOf(a.result.Response.Body); {
	case order != "" && order != k.name:
		w.broken("I5: a client of %s is told the answer of %s", k.name, order)
	case said != nil && *said != body:
		w.broken("I4: a client of %s asked for %d, and is told the answer of another request", k.name, body)
	}
	if stored, ok := w.judge.records[k.id]; ok && stored.OperationID == op && a.final() && stored.State.Final() && !a.same(answer{result: &idem.Result{Response: stored.Response}}) {
		w.broken("I4: %s was told %s, and %d %s is stored", k.name, a, stored.Response.Status, stored.Response.Body)
	}
	told := k.accepted
	if a.final() {
		told = k.finals
	}
	if a.final() && !asked.After(k.busted) {
		return // it was read before it was taken out of use, and has been on its way since
	}
	if earlier := told[op]; earlier != nil {
		if !earlier.same(*a) {
			w.broken("I4: %s was told %s after %s", k.name, a, earlier)
		}
		a.at = earlier.at
	}
	if told[op] = a; a.final() {
		return
	}
	if final := k.finals[op]; final != nil && final.at.Before(asked) {
		w.broken("I4: %s was told %s after %s", k.name, a, final)
	}
}

// orderOf is whose order an answer is about, and which of its payloads, where it says so.
func orderOf(text []byte) (order string, body *int) {
	var said struct {
		Order string
		Body  *int
	}
	if json.Unmarshal(text, &said) != nil {
		return "", nil
	}
	return said.Order, said.Body
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
