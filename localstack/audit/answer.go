package audit

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// pending says that the answer is the 202 of an operation that is under way.
func (e Exchange) pending() bool {
	return e.Status == http.StatusAccepted && (e.said() == "executed" || e.said() == "replayed")
}

// freed are the statuses below 500 that free their key (semantics.md "Policies": 4xx result).
var freed = []int{
	http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly,
	http.StatusTooManyRequests,
}

// final says that the answer is an operation's last one, which was stored.
func (e Exchange) final() bool {
	switch {
	case e.Status == http.StatusAccepted:
		return false
	case e.said() == "replayed":
		return true
	}
	return e.said() == "executed" && e.Status < http.StatusInternalServerError && !slices.Contains(freed, e.Status)
}

// running says that the answer denies that there is a final one yet.
func (e Exchange) running() bool {
	return e.pending() || e.Status == http.StatusConflict && (e.said() == "in_progress" || e.said() == "unknown")
}

// same says that two answers are the same in all that a replay promises.
func (e Exchange) same(other Exchange) bool {
	return e.Status == other.Status && bytes.Equal(e.Body, other.Body) &&
		e.Header.Get("Content-Type") == other.Header.Get("Content-Type") && e.Header.Get("Location") == other.Header.Get("Location")
}

// Scope is what a record is of.
type Scope struct{ Tenant, Operation, Key string }

// Stored is the answer that a record holds when all is over.
type Stored struct {
	// Final says that the record has ended: the answer is the one that replays have.
	Final  bool
	Status int
	Header http.Header
	// Body is nil where it cannot be read from outside, because it is encrypted.
	Body []byte
}

// AnswerCounts are what [Answers] has judged: keys, those of them that somebody was told to be executed, answers of each kind, and keys
// whose final answer was compared with the one in the table.
type AnswerCounts struct{ Keys, Executed, Pending, Final, Running, Stored int }

// Answers holds every answer of a run against I4: of each key all 202s are the same and so are all final answers; the final
// answer is the stored one, byte for byte; no request that began after the final answer was heard is told that the operation
// runs; one answer alone says that it is the execution's; and what was answered for a payload is no mismatch of the same bytes
// later.
//
// It cannot see an answer that nobody heard, because its connection was cut or its client was gone, nor one that came before this
// run. Of two requests that overlap it does not know which was answered first. Bodies that are encrypted in the table are
// compared among the answers only. It judges keys with one incarnation: no test lets a key expire or busts an answer.
func Answers(heard []Exchange, stored map[Scope]Stored) (broken []string, counts AnswerCounts) {
	for scope, all := range byScope(heard) {
		counts.Keys++
		k := judgedKey{all: all}
		k.judge(&counts)
		if s, ok := stored[scope]; ok && s.Final && len(k.finals) > 0 {
			counts.Stored++
			k.stored(s)
		}
		broken = append(broken, k.broken...)
	}
	slices.Sort(broken)
	return broken, counts
}

// byScope has the answers to requests with a key, as they were heard.
func byScope(heard []Exchange) map[Scope][]Exchange {
	scopes := map[Scope][]Exchange{}
	for _, e := range heard {
		if e.Operation != "" && e.Key != "" {
			s := Scope{e.Tenant, e.Operation, e.Key}
			scopes[s] = append(scopes[s], e)
		}
	}
	for _, all := range scopes {
		slices.SortStableFunc(all, func(a, b Exchange) int { return cmp.Compare(a.Ended.UnixNano(), b.Ended.UnixNano()) })
	}
	return scopes
}

// judgedKey is all that was answered for one key.
type judgedKey struct {
	all                       []Exchange
	pendings, finals, execute []Exchange
	broken                    []string
}

func (k *judgedKey) blame(format string, arguments ...any) {
	k.broken = append(k.broken, "I4: "+fmt.Sprintf(format, arguments...))
}

func (k *judgedKey) judge(counts *AnswerCounts) {
	for _, e := range k.all {
		switch {
		case e.pending():
			k.pendings = append(k.pendings, e)
		case e.final():
			k.finals = append(k.finals, e)
		}
		if e.running() && !e.pending() {
			counts.Running++
		}
		if e.said() == "executed" && (e.pending() || e.final()) {
			k.execute = append(k.execute, e)
		}
		k.mismatch(e)
	}
	counts.Pending, counts.Final = counts.Pending+len(k.pendings), counts.Final+len(k.finals)
	for _, answers := range [][]Exchange{k.pendings, k.finals} {
		for _, e := range answers {
			if !e.same(answers[0]) {
				k.blame("two answers to one key: %v, and %v", answers[0], e)
			}
		}
	}
	if len(k.execute) > 0 {
		counts.Executed++
	}
	if len(k.execute) > 1 {
		k.blame("two answers say that theirs is the execution: %v, and %v", k.execute[0], k.execute[1])
	}
	if len(k.finals) == 0 {
		return
	}
	for _, e := range k.all {
		if first := k.finals[0]; e.running() && e.Began.After(first.Ended) {
			k.blame("%v, after %v was heard", e, first)
		}
	}
}

// mismatch: an answer that was stored for some bytes says that the key is theirs.
func (k *judgedKey) mismatch(e Exchange) {
	if e.said() != "mismatch" {
		return
	}
	for _, earlier := range k.all {
		if (earlier.pending() || earlier.final()) && earlier.Path == e.Path && bytes.Equal(earlier.Sent, e.Sent) {
			k.blame("%v, and %v to the same bytes", e, earlier)
			return
		}
	}
}

// stored: the final answer is the one in the table.
func (k *judgedKey) stored(s Stored) {
	e := k.finals[0]
	wrong := e.Status != s.Status || s.Body != nil && !bytes.Equal(e.Body, s.Body)
	for name, values := range s.Header {
		if slices.Contains([]string{"content-type", "location"}, strings.ToLower(name)) && !slices.Equal(e.Header.Values(name), values) {
			wrong = true
		}
	}
	if wrong {
		k.blame("%v, and the record has %d %v %.400s", e, s.Status, s.Header, s.Body)
	}
}
