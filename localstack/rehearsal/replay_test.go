package rehearsal

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/localstack/progress"
	"github.com/idem-go/idem-aws/localstack/stack"
)

// A request that was answered is told the same again, status and body; what passes is asked again, and a release that can't read the row
// may answer 503.
func TestJudgeAReplay(t *testing.T) {
	first := answer{status: 201, body: `{"id":"pay_1"}`}
	for name, c := range map[string]struct {
		told     answer
		readable bool
		want     replayed
	}{
		"the same":                    {first, true, replaySame},
		"another body":                {answer{status: 201, body: `{"id":"pay_2"}`}, true, replayWrong},
		"another status":              {answer{status: 200, body: first.body}, true, replayWrong},
		"declined now":                {answer{status: 402}, true, replayWrong},
		"begun again":                 {answer{status: 202}, true, replayWrong},
		"in progress":                 {answer{status: 409}, true, replayWrong},
		"no answer":                   {answer{}, true, replayLater},
		"throttled":                   {answer{status: 429}, true, replayLater},
		"unavailable":                 {answer{status: 503, code: "idempotency_store_unavailable"}, true, replayLater},
		"refused":                     {answer{status: 503, code: "idempotency_refused_before"}, true, replayWrong},
		"can't be read":               {answer{status: 503, code: "idempotency_store_unavailable"}, false, replayUnreadable},
		"can't be read, and refused":  {answer{status: 503, code: "idempotency_refused_before"}, false, replayWrong},
		"can't be read, and answered": {answer{status: 201, body: `{"id":"pay_2"}`}, false, replayWrong},
		"can't be read, and declined": {answer{status: 402}, false, replayWrong},
	} {
		s := &story{intent: "a"}
		s.take(answer{status: 202}) // not final: it is not what a replay is compared with
		s.take(first)
		if got := judge(s, c.told, c.readable); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// answering is a run of clients of an API, whose stories have their first answers.
func answering(t *testing.T, keys []string, api func(key string, times int) (int, string)) *run {
	t.Helper()
	var (
		lock  sync.Mutex
		times = map[string]int{}
	)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		key := strings.Trim(r.Header.Get(header.NameKey), `"`)
		times[key]++
		status, body := api(key, times[key])
		lock.Unlock()
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	r := &run{Rehearsals: &Rehearsals{Out: progress.New(io.Discard)}, variables: stack.Variables{"API_URL": server.URL}}
	for _, key := range keys {
		r.stories = append(r.stories, r.payment(key, nil))
	}
	r.retry(t.Context(), r.stories)
	return r
}

// What was answered is sent again after a deployment, and counted only where it is told the same.
func TestResendFindsAnotherAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		api      func(key string, times int) (int, string)
		readable bool
		same     int
		want     string
	}{
		"replayed": {func(key string, _ int) (int, string) { return 201, key }, true, 2, ""},
		"replayed after a 503": {func(key string, times int) (int, string) {
			if times == 2 {
				return 503, "later"
			}
			return 201, key
		}, true, 2, ""},
		"executed again": {func(key string, times int) (int, string) {
			if key == "b" {
				return 201, fmt.Sprint(key, times)
			}
			return 201, key
		}, true, 1, `b was answered 201 "b1", and is answered 201 "b2" now`},
		"accepted again": {func(key string, times int) (int, string) {
			if times > 1 {
				return 202, "begun"
			}
			return 201, key
		}, true, 0, `is answered 202 "begun" now`},
		"refused": {func(key string, times int) (int, string) {
			if times > 1 && key == "a" {
				return 503, `{"code":"idempotency_refused_before"}`
			}
			return 201, key
		}, true, 1, "idempotency_refused_before"},
		"of rows that can't be read": {func(key string, times int) (int, string) {
			if times > 1 {
				return 503, `{"code":"idempotency_store_unavailable"}`
			}
			return 402, key
		}, false, 0, ""},
	} {
		r := answering(t, []string{"a", "b"}, c.api)
		err := r.resend(t.Context(), c.readable)
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if r.money.Same != c.same {
			t.Errorf("%s: %d are told the same, want %d", name, r.money.Same, c.same)
		}
		r.tally()
		if refused := name == "refused"; refused != (r.money.Refused == 1) {
			t.Errorf("%s: %+v", name, r.money)
		}
	}
}

// Replaying nothing proves nothing.
func TestResendNeedsAnAnsweredRequest(t *testing.T) {
	r := answering(t, []string{"a"}, func(string, int) (int, string) { return 202, "" })
	if err := r.resend(t.Context(), true); err == nil || !strings.Contains(err.Error(), "no request has an answer") {
		t.Error(err)
	}
}

// Final answers are counted, not assumed; a refusal counts, whatever came after it, unless records are lost.
func TestTallyCountsAnswers(t *testing.T) {
	stories := func() []*story {
		paid, refusedOnce, pending := &story{}, &story{}, &story{}
		paid.take(answer{status: 201})
		refusedOnce.take(answer{status: 503, code: "idempotency_refused_before"})
		refusedOnce.take(answer{status: 402})
		pending.take(answer{status: 202})
		return []*story{paid, refusedOnce, pending}
	}
	for loses, want := range map[bool]Money{false: {Refused: 1, Final: 2}, true: {Refused: 0, Final: 2}} {
		r := &run{loss: loss{loses: loses}, stories: stories()}
		if r.tally(); r.money != want {
			t.Errorf("loses %v: %+v, want %+v", loses, r.money, want)
		}
	}
	if err := (Money{Requests: 3, Final: 2}).allFinal(); err == nil || (Money{Requests: 3, Final: 3}).allFinal() != nil {
		t.Error("a request without a final answer is not found")
	}
}

// A row that was seen after any deployment, and is not there at the end, is lost.
func TestARowThatIsGoneIsLost(t *testing.T) {
	a, b, c := row{Intent: "a"}, row{Intent: "b"}, row{Intent: "c"}
	seen := union(union(nil, []row{a}), []row{a, b})
	if len(seen) != 2 {
		t.Errorf("%+v", seen)
	}
	if n := lost(seen, []row{b, c}); n != 1 {
		t.Errorf("%d rows are lost, want 1", n)
	}
	r := &run{money: Money{LostRows: 1, Objects: 1, Final: 1}}
	if len(r.expected()) != 1 {
		t.Error("a lost row is not told where none may be lost")
	}
}
