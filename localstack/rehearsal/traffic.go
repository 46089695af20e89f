package rehearsal

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// story is one request of a client: a payment of its own source, or a payout to its own destination, under its own key.
type story struct {
	key, path, body, intent string
	amount                  int64
	// fault is the provider's for its first call.
	fault *provider.Rule
	// firstSent is when the client sent it first; it says so each time.
	firstSent time.Time
	// first is the first final answer, and answer the last one of any kind.
	first *answer
	answer
	// wasRefused says that an answer was refused, whatever the last one is.
	wasRefused bool
}

// answer is what a client is told. Status 0 is no answer.
type answer struct {
	status     int
	code, body string
}

// take keeps an answer.
func (s *story) take(a answer) {
	s.answer = a
	s.wasRefused = s.wasRefused || a.refused()
	if s.first == nil && a.final() {
		s.first = &a
	}
}

// differs says how a later answer differs from the first final one. It is empty where they are the same, and where there was none.
func (s *story) differs(a answer) string {
	if s.first == nil || a.status == s.first.status && a.body == s.first.body {
		return ""
	}
	return fmt.Sprintf("%s was answered %d %q, and is answered %d %q now", s.intent, s.first.status, s.first.body, a.status, a.body)
}

// amountLeast is the least amount that a client asks for.
const amountLeast = 1000

// amount is another one for each request, so that what is moved or booked for another request is seen.
func (r *run) amount() int64 { return amountLeast + r.amounts.Add(1) }

func (r *run) payment(intent string, fault *provider.Rule) *story {
	amount := r.amount()
	return &story{
		key: intent, path: "/v1/payments", intent: intent, amount: amount, fault: fault,
		body: fmt.Sprintf(`{"amount":%d,"currency":"EUR","source":%q,"reference":%q}`, amount, intent, intent),
	}
}

func (r *run) payout(intent string) *story {
	amount := r.amount()
	return &story{
		key: intent, path: "/v1/payouts", intent: intent, amount: amount,
		body: fmt.Sprintf(`{"from":"acct_1","amount":%d,"currency":"EUR","destination":%q}`, amount, intent),
	}
}

// asked are the amounts that clients asked for, by intent.
func (r *run) asked() map[string]int64 {
	asked := map[string]int64{}
	for _, s := range r.stories {
		asked[s.intent] = s.amount
	}
	if r.younger != nil {
		asked[r.younger.intent] = r.younger.amount
	}
	return asked
}

// wave is what clients ask for at one time: payments and payouts, each where keys are honoured and where they are not.
func (r *run) wave(name string) []*story {
	var all []*story
	for n := range 2 {
		all = append(all, r.payment(fmt.Sprintf("card_%s_%s%d", r.id, name, n), nil), r.payout(fmt.Sprintf("iban_%s_%s%d", r.id, name, n)))
	}
	return append(all, r.payment(fmt.Sprintf("legacy_%s_%s", r.id, name), nil), r.payout(fmt.Sprintf("legacy_%s_%s_out", r.id, name)))
}

// underWay is what the provider answers late or never, though it makes what it is asked for.
func (r *run) underWay(name string) []*story {
	card, drop, legacy := fmt.Sprintf("card_%s_%s_hang", r.id, name), fmt.Sprintf("card_%s_%s_drop", r.id, name), fmt.Sprintf("legacy_%s_%s_hang", r.id, name)
	late, out := fmt.Sprintf("iban_%s_%s_late", r.id, name), fmt.Sprintf("legacy_%s_%s_late_out", r.id, name)
	all := []*story{
		r.payment(card, &provider.Rule{On: provider.Charge, Source: card, Fault: provider.HangAfter, Times: 1, DelayMillis: 8000}),
		r.payment(drop, &provider.Rule{On: provider.Charge, Source: drop, Fault: provider.DropAfter, Times: 1}),
		r.payment(legacy, &provider.Rule{On: provider.LegacyCharge, Source: legacy, Fault: provider.HangAfter, Times: 1, DelayMillis: 8000}),
		r.payout(late), r.payout(out),
	}
	all[3].fault = &provider.Rule{On: provider.Screening, Destination: late, Fault: provider.Delay, Times: 1, DelayMillis: 3000}
	all[4].fault = &provider.Rule{On: provider.Screening, Destination: out, Fault: provider.Delay, Times: 1, DelayMillis: 3000}
	return all
}

// begin lets clients send their requests, each once. A client that gets no answer has none.
func (r *run) begin(ctx context.Context, stories []*story) (*sync.WaitGroup, error) {
	for _, s := range stories {
		if s.fault != nil {
			r.rules = append(r.rules, *s.fault)
		}
	}
	if err := r.provider.Faults(ctx, r.rules...); err != nil {
		return nil, err
	}
	r.stories = append(r.stories, stories...)
	clients := &sync.WaitGroup{}
	for _, s := range stories {
		s.firstSent = r.now()
		clients.Go(func() { s.take(r.send(ctx, s)) })
	}
	return clients, nil
}

// answerWithin is how long a client waits for an answer.
const answerWithin = 15 * time.Second

// send sends a story's request under its key, and says when it was first sent.
func (r *run) send(ctx context.Context, s *story) answer {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.variables["API_URL"]+s.path, strings.NewReader(s.body))
	if err != nil {
		return answer{}
	}
	req.Header.Set("Authorization", "Bearer "+r.variables["TENANT_A_TOKEN"])
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(header.NameKey, `"`+s.key+`"`)
	req.Header.Set(header.NameFirstSent, s.firstSent.UTC().Format(time.RFC3339))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil { // half an answer is none
		return answer{}
	}
	var problem struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(raw, &problem) // what is no JSON has no code
	return answer{status: res.StatusCode, code: problem.Code, body: string(raw)}
}

// final says that the client has its last answer.
func (a answer) final() bool {
	return a.status == http.StatusCreated || a.status == http.StatusPaymentRequired
}

// refused says that nothing is executed because records may be lost.
func (a answer) refused() bool {
	return a.status == http.StatusServiceUnavailable && a.code == "idempotency_refused_before"
}

// passing says that the answer is not about the request: there was none, or the service says that it can't answer now.
func (a answer) passing() bool {
	return a.status == 0 || a.status == http.StatusTooManyRequests || a.status >= 500
}

// retriesMax is how many clients send again at once: each request is a process of an emulator's, and hundreds would time out together.
const retriesMax = 16

// retry lets each client that has no last answer send its request again.
func (r *run) retry(ctx context.Context, stories []*story) {
	var clients errgroup.Group
	clients.SetLimit(retriesMax)
	for _, s := range stories {
		if !s.final() {
			clients.Go(func() error {
				s.take(r.send(ctx, s))
				return nil
			})
		}
	}
	_ = clients.Wait() // a request without an answer is no error
}

// settle lets clients send again until each has its last answer, while the schedules run hurried.
func (r *run) settle(ctx context.Context, stories []*story, within time.Duration) error {
	deadline := time.Now().Add(within)
	for {
		r.retry(ctx, stories)
		open := 0
		for _, s := range stories {
			if !s.final() {
				open++
			}
		}
		if open == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d requests have no final answer after %s", open, len(stories), within)
		}
		if err := r.hasten(ctx); err != nil {
			return err
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
