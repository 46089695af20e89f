package idemtest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// end is what came of a run.
type end struct {
	// calls are those that a process made until nothing was left to do, by name.
	calls   []string
	answers []answer
	// response is the last answer; nil where two runs without a crash answer differently.
	response *idem.Response
	status   int
	state    storage.State
	applied  int
	// rows counts the business rows. fixed are those that two runs without a crash leave alike.
	rows     int
	fixed    map[string][]byte
	messages []string
	// payloads are those of the messages, by index and topic; of a run to compare with, those that two runs without a crash leave alike.
	payloads map[string][]byte
	// open are the messages of which something can still become.
	open []string
	// parked says that only a person can decide how the operation goes on. doubled are messages whose effect a provider
	// without keys made twice.
	parked  bool
	doubled []idem.MessageID
}

// end reads what came of the run.
func (w *world) end(calls []string) *end {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.answers[len(w.answers)-1]
	rows := w.memory.Rows()
	e := &end{
		calls: calls, answers: w.answers, response: &last.response, status: last.response.Status, state: last.state,
		applied: w.applied, rows: len(rows), fixed: rows, payloads: map[string][]byte{},
	}
	for _, m := range w.memory.Messages() {
		name := fmt.Sprintf("message %d to %s", m.Index, m.Topic)
		e.messages = append(e.messages, fmt.Sprintf("%s %s", name, m.State))
		e.payloads[name] = m.Payload
		if w.open(m) {
			e.open = append(e.open, fmt.Sprintf("%s is %s", name, m.State))
		}
		e.parked = e.parked || w.parked(m)
		if topic, _ := w.topic(m.Topic); !topic.Keys.Honoured && w.effects[m.ID] > 1 {
			e.doubled = append(e.doubled, m.ID)
		}
	}
	slices.Sort(e.messages)
	return e
}

// ends says why a run without a crash can't be compared with.
func (e *end) ends() error {
	last := e.answers[len(e.answers)-1]
	switch {
	case last.err != nil:
		return fmt.Errorf("the request fails: %w", last.err)
	case !last.final() && !last.accepted():
		return fmt.Errorf("the answer %d is not stored, so each retry runs the handler again", last.response.Status)
	case e.parked:
		return errors.New("a message stays unknown")
	case e.calls == nil:
		return fmt.Errorf("after %v of its clock %s: let App.Topics deliver it sooner, because until then there is no crash", roundsMax*round, strings.Join(e.open, ", "))
	}
	return e.consistent()
}

// keep forgets what is different in another run without a crash.
func (e *end) keep(other *end) {
	if !sameResponse(*e.response, *other.response) {
		e.response = nil
	}
	e.fixed, e.payloads = alike(e.fixed, other.fixed), alike(e.payloads, other.payloads)
}

// alike are the values that are the same in both.
func alike(one, other map[string][]byte) map[string][]byte {
	same := maps.Clone(one)
	maps.DeleteFunc(same, func(key string, value []byte) bool {
		twin, ok := other[key]
		return !ok || !bytes.Equal(value, twin)
	})
	return same
}

// differs is the first value that is not as it must be; "" where there is none.
func differs(got, want map[string][]byte) (name string) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !bytes.Equal(got[key], want[key]) {
			return key
		}
	}
	return ""
}

// compare says what is wrong with a run that had a crash.
func (e *end) compare(want *end) error {
	if err := e.consistent(); err != nil {
		return err
	}
	if e.parked {
		return nil
	}
	switch last := e.answers[len(e.answers)-1]; {
	case e.state != want.state || e.status != want.status:
		return fmt.Errorf("the request ends %s with status %d (error: %v), without a crash %s with %d", e.state, e.status, last.err, want.state, want.status)
	case want.response != nil && !sameResponse(*e.response, *want.response):
		return fmt.Errorf("the response is %s, without a crash %s", e.response.Body, want.response.Body)
	case e.applied != want.applied:
		return fmt.Errorf("%d business writes were made, without a crash %d", e.applied, want.applied)
	case !slices.Equal(e.messages, want.messages):
		return fmt.Errorf("there is [%s], without a crash [%s]", strings.Join(e.messages, ", "), strings.Join(want.messages, ", "))
	case e.rows != want.rows:
		return fmt.Errorf("there are %d rows, without a crash %d", e.rows, want.rows)
	}
	if name := differs(e.payloads, want.payloads); name != "" {
		return fmt.Errorf("%s says %s, without a crash %s", name, e.payloads[name], want.payloads[name])
	}
	if key := differs(e.fixed, want.fixed); key != "" {
		return fmt.Errorf("row %q is %s, without a crash %s", key, e.fixed[key], want.fixed[key])
	}
	return nil
}

// consistent says what is wrong with a run by itself: no answer may contradict an earlier one, and no effect be doubled.
func (e *end) consistent() error {
	if len(e.doubled) > 0 {
		return fmt.Errorf("the provider, which honours no keys, made %v twice", e.doubled)
	}
	var accepted, final *answer
	for i, a := range e.answers {
		switch {
		case a.err != nil: // come again
		case final != nil && !a.same(*final):
			return fmt.Errorf("answer %d is %s, after the final %s", i+1, a, final)
		case a.final():
			final = &a
		case accepted != nil && !a.same(*accepted):
			return fmt.Errorf("answer %d is %s, after %s", i+1, a, accepted)
		case a.accepted():
			accepted = &a
		}
	}
	return nil
}

func (a answer) String() string {
	if a.response.Status == 0 {
		return fmt.Sprintf("%q", string(a.state))
	}
	return fmt.Sprintf("%d %s", a.response.Status, a.response.Body)
}
