package conform

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
)

// executed sends the valid request under a new key, and returns the key with its first and its final answer.
func (s *session) executedOnce() (key string, began, final reply, err error) {
	if key, err = s.key(); err != nil {
		return "", reply{}, reply{}, err
	}
	s.executes(1)
	began, final, err = s.settled(s.with(key))
	if err == nil {
		s.answered(key, final)
	}
	return key, began, final, err
}

func first(s *session) (finding, error) {
	_, began, final, err := s.executedOnce()
	switch {
	case err != nil:
		return finding{}, err
	case !final.success():
		return differs("%v, want a success: is the body valid, and are the credentials?", final), nil
	case began.status == http.StatusAccepted && began.header.Get("Location") == "" && !s.Foreign:
		return differs("202 without Location: %v", began), nil
	case began.says() == "" && s.Foreign:
		return notTold("there is no %s", header.NameStatus), nil
	case began.lost && (began.replayed() || began.says() == "in_progress"): // whoever answered first had passed it on
		return holds(), nil
	case began.says() != "executed" || began.replayed():
		return differs("%s %q, want executed", header.NameStatus, began.says()), nil
	}
	return holds(), nil
}

func replay(s *session) (finding, error) {
	key, _, was, err := s.executedOnce()
	if err != nil {
		return finding{}, err
	}
	for range 3 {
		again, err := s.again(s.with(key), was)
		if err != nil {
			return finding{}, err
		}
		if found := s.replays(again, was); found.verdict != Holds {
			return found, nil
		}
	}
	return holds(), nil
}

// hidden is said where every key gets the same answer.
func hidden() finding {
	return notTold("two keys got the same answer, so a second execution would not show")
}

// replays holds an answer against the one that it must replay.
func (s *session) replays(again, was reply) finding {
	switch difference := again.differsFrom(was); {
	case difference != "":
		return differs("%s", difference)
	case again.header.Get("Set-Cookie") != "":
		return differs("a replay sets a cookie")
	case s.Foreign && !again.replayed() && s.alike:
		return hidden()
	case s.Foreign && !again.replayed():
		return holds() // the same bytes, and other ones for another key
	case !again.replayed() || again.says() != "replayed" && !s.Foreign:
		return differs("%s %q and %s %q, want true and replayed", header.NameReplayed, again.header.Get(header.NameReplayed), header.NameStatus, again.says())
	}
	return holds()
}

func expires(s *session) (finding, error) {
	key, _, was, err := s.executedOnce()
	if err != nil {
		return finding{}, err
	}
	again, err := s.again(s.with(key), was)
	if err != nil {
		return finding{}, err
	}
	said, repeated := was.header.Get(header.NameExpires), again.header.Get(header.NameExpires)
	if said == "" && repeated == "" && (s.Foreign || s.Policy.ResourceBacked) {
		return notTold("there is no %s", header.NameExpires), nil
	}
	until, err := time.Parse(time.RFC3339Nano, said)
	switch {
	case err != nil:
		return differs("%s %q", header.NameExpires, said), nil
	case repeated != said:
		return differs("%s is %q first, and %q later", header.NameExpires, said, repeated), nil
	case until.Before(s.Now()):
		return differs("%s %q is over", header.NameExpires, said), nil
	}
	return holds(), nil
}

func respelled(s *session) (finding, error) {
	var object map[string]any
	body := json.NewDecoder(bytes.NewReader(s.Body))
	body.UseNumber() // a double would change long ones
	if body.Decode(&object) != nil {
		return skipped("the body is no JSON object"), nil
	}
	spelling, err := json.MarshalIndent(object, "  ", "\t") // in the order of the names
	if err != nil {
		return finding{}, err
	}
	key, _, was, err := s.executedOnce()
	if err != nil {
		return finding{}, err
	}
	r := s.with(key)
	r.body = spelling
	again, err := s.again(r, was)
	if err != nil {
		return finding{}, err
	}
	if found := s.replays(again, was); found.verdict != Differs || !s.Foreign {
		return found, nil
	}
	return notTold("the bytes count: %v", again), nil
}

func bareKey(s *session) (finding, error) {
	key, _, was, err := s.executedOnce()
	if err != nil {
		return finding{}, err
	}
	switch s.Policy.Syntax {
	case idem.SyntaxStrict:
		got, err := s.refused(request{keys: []string{key}})
		return s.refusal(got, http.StatusBadRequest, header.CodeKeyInvalid), err
	case idem.SyntaxOpaque:
		s.executes(1)
		_, other, err := s.settled(request{keys: []string{`"` + key + `"`}})
		return s.distinct(was, other), err
	case idem.SyntaxStructured:
	}
	again, err := s.again(request{keys: []string{key}}, was)
	return s.replays(again, was), err
}

func otherPayload(s *session) (finding, error) {
	if s.Other == nil {
		return skipped("there is no other body"), nil
	}
	key, _, was, err := s.executedOnce()
	if err != nil {
		return finding{}, err
	}
	got, err := s.unlike(s.other(key), was)
	if err != nil {
		return finding{}, err
	}
	again, err := s.again(s.with(key), was)
	if err != nil {
		return finding{}, err
	}
	return all(s.mismatch(got, was), s.replays(again, was)), nil
}

// unlike sends another request under a key, which is refused or gets the key's answer.
func (s *session) unlike(r request, was reply) (reply, error) {
	if s.Policy.Mismatch == idem.MismatchReplay {
		return s.again(r, was)
	}
	return s.refused(r)
}

// mismatch holds an answer to another request under a key against the policy.
func (s *session) mismatch(got, was reply) finding {
	said := holds()
	if !s.Foreign && s.Policy.Mismatch != idem.MismatchReplay && got.says() != "mismatch" {
		said = differs("%s %q, want mismatch", header.NameStatus, got.says())
	}
	switch s.Policy.Mismatch {
	case idem.Mismatch400:
		return all(s.refusal(got, http.StatusBadRequest, header.CodeError), said)
	case idem.MismatchReplay:
		return s.replays(got, was)
	case idem.Mismatch422:
	}
	return all(s.refusal(got, http.StatusUnprocessableEntity, header.CodeKeyReused), said)
}

func otherQuery(s *session) (finding, error) {
	key, _, was, err := s.executedOnce()
	if err != nil {
		return finding{}, err
	}
	r := s.with(key)
	r.query = "conform=" + s.run
	got, err := s.unlike(r, was)
	if err != nil {
		return finding{}, err
	}
	if s.Policy.Mismatch != idem.MismatchReplay && s.replays(got, was).verdict != Differs {
		return notTold("it replays: the route may leave the query out"), nil
	}
	return s.mismatch(got, was), nil
}

// inFlight sends duplicates at the same moment.
func inFlight(s *session) (finding, error) {
	key, err := s.key()
	if err != nil {
		return finding{}, err
	}
	s.executes(1)
	begans, finals, failed := make([]reply, s.Duplicates), make([]reply, s.Duplicates), make([]error, s.Duplicates)
	var clients sync.WaitGroup
	start := make(chan struct{})
	for i := range s.Duplicates {
		clients.Go(func() {
			<-start
			begans[i], finals[i], failed[i] = s.settled(s.with(key))
		})
	}
	close(start)
	clients.Wait()
	for _, err := range failed {
		if err != nil {
			return finding{}, err
		}
	}
	s.answered(key, finals[0])
	found := s.together(begans, finals)
	if found.verdict != Holds {
		s.executes(s.Duplicates - 1)
	}
	return found, nil
}

// together holds the answers to duplicates against each other. A duplicate that ran, and whose answer freed the key, says that it executed
// as well as the one that executes afterwards: it is none of those of which there may be one.
func (s *session) together(begans, finals []reply) finding {
	executed, lost := 0, slices.ContainsFunc(begans, func(r reply) bool { return r.lost || r.freed() })
	for i, final := range finals {
		if begans[i].says() == "executed" && !begans[i].freed() {
			executed++
		}
		if difference := final.differsFrom(finals[0]); difference != "" {
			return differs("duplicates have different answers: %s", difference)
		}
		if begans[i].freed() {
			continue // it ran, and was not kept from that by another one
		}
		if found := s.whileItRuns(begans[i]); found.verdict != Holds {
			return found
		}
	}
	switch {
	case executed > 1 || executed == 0 && !s.Foreign && !lost:
		return differs("%d of %d say that they executed, want one", executed, s.Duplicates)
	case !finals[0].success():
		return differs("%v, want a success", finals[0])
	case s.Foreign && s.alike:
		return hidden()
	}
	return s.oneOperation(begans)
}

// oneOperation demands that duplicates which are told to come back are sent to the same operation.
func (s *session) oneOperation(begans []reply) finding {
	var was *reply
	for _, began := range begans {
		switch {
		case began.status != http.StatusAccepted:
			continue
		case was == nil:
			was = &began
		case began.header.Get("Location") != was.header.Get("Location"):
			return differs("202 with Location %q, and with %q", was.header.Get("Location"), began.header.Get("Location"))
		case s.Foreign && began.header.Get("Location") == "" && !bytes.Equal(began.body, was.body):
			return notTold("202 with body %.80q, and with %.80q: they may be of two operations", was.body, began.body)
		}
	}
	return holds()
}

// whileItRuns holds an answer to a duplicate against the policy. One that came late is a replay; one that found the store too busy is a
// 503.
func (s *session) whileItRuns(got reply) finding {
	if got.status != http.StatusConflict {
		return holds()
	}
	switch s.Policy.InFlight {
	case idem.InFlightInUse:
		return s.refusal(got, http.StatusConflict, header.CodeInUse)
	case idem.InFlightAccepted:
		return differs("%v, want 202", got)
	case idem.InFlightWait, idem.InFlightConflict:
	}
	return s.refusal(got, http.StatusConflict, header.CodeInProgress)
}

func otherTenant(s *session) (finding, error) {
	if s.OtherCaller == nil {
		return skipped("there are no credentials of another tenant"), nil
	}
	key, _, was, err := s.executedOnce()
	if err != nil {
		return finding{}, err
	}
	s.executes(1)
	r := s.with(key)
	r.caller = s.OtherCaller
	_, theirs, err := s.settled(r)
	if err != nil {
		return finding{}, err
	}
	again, err := s.again(s.with(key), was)
	return all(s.distinct(was, theirs), s.replays(again, was)), err
}
