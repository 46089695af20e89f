//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/chaos"
	"github.com/idem-go/idem-aws/localstack/provider"
	"golang.org/x/sync/errgroup"
)

// check holds what the loop has left against what its clients were told, and against the invariants.
func (l *loop) check(t *testing.T, left leftovers) {
	t.Helper()
	l.deaths(left)
	stories := l.told()
	records, referred := by(left.records, schema.RecordKey), references(left.objects)
	l.ask(t, stories, records)
	for _, s := range stories {
		r := records[string(s.key())]
		s.notLost(r)
		if r != nil && storage.State(text(r, schema.State)).Final() {
			l.figures.add(tableOperations, fmt.Sprintf("%s %s", s.operation, text(r, schema.ResponseStatus)), 1)
		} else {
			l.figures.add(tableOperations, fmt.Sprintf("%s that never began, or was not committed", s.operation), 1)
		}
		if s.operation == operationPayments {
			s.chargedAsTold(r, referred[s.name])
		}
	}
	l.transfers(left, stories, records)
	l.operatorsQueue(left)
	l.drift(t)
	must(t, l.figures.readLogs(t.Context(), l.began))
	wrong := slices.Concat(l.wrong, left.broken())
	for _, never := range []string{"outbox.evidence_differs", "outbox.panic"} {
		if n := l.figures.sum(tableLogs, never); n > 0 {
			wrong = append(wrong, fmt.Sprintf("%s was logged %d times", never, n))
		}
	}
	for _, what := range wrong {
		t.Error(what)
	}
	for _, missing := range l.plan.Missing(l.done()) {
		t.Errorf("the loop proves nothing: %s", missing)
	}
	l.verdict(wrong)
}

// done is what came of the plan's events and faults.
func (l *loop) done() chaos.Done {
	done := chaos.Done{
		Killed: map[chaos.Victim]int{}, Outages: l.figures.sum(tableKills, outages), Switched: l.figures.sum(tableKills, switches),
		Provider: l.met, DynamoDB: l.figures.sum(tableDynamoDB, ""),
	}
	for _, victim := range chaos.Victims() {
		done.Killed[victim] = l.figures.sum(tableKills, killed(victim))
	}
	return done
}

// verdict counts what is wrong by invariant, so that a table without anything wrong says that, too.
func (l *loop) verdict(wrong []string) {
	for invariant, what := range map[string]string{
		"I1": "parts of operations that are there alone", "I2": "charges, refunds and payouts beyond what was told", "I3": "answered and lost",
		"I4": "answers that contradict another", "I5": "answers about another tenant's", "I6": "accounts and payments whose money does not add up",
	} {
		n := 0
		for _, w := range wrong {
			if strings.Contains(w, invariant+": ") {
				n++
			}
		}
		l.figures.add(tableChecks, fmt.Sprintf("wrong, %s: %s", invariant, what), n)
	}
	l.figures.add(tableChecks, "wrong, all", len(wrong))
}

// told are all stories, those of refunds included.
func (l *loop) told() []*story {
	all := slices.Clone(l.stories)
	for _, s := range l.stories {
		if s.refund != nil {
			all = append(all, s.refund)
		}
	}
	return all
}

// references indexes the provider's objects by what they are for.
func references(objects []provider.Object) map[string][]provider.Object {
	index := map[string][]provider.Object{}
	for _, o := range objects {
		index[o.Reference] = append(index[o.Reference], o)
	}
	return index
}

// ask sends every request whose operation has ended once more, and asks for some of the operations as the other tenant. The
// judges hear the answers: what was told before is told again, byte for byte (I4), and to nobody else (I5).
func (l *loop) ask(t *testing.T, stories []*story, records map[string]item) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(clientsAtOnce / 2)
	for i, s := range stories {
		r := records[string(s.key())]
		if !storage.State(text(r, schema.State)).Final() {
			continue
		}
		group.Go(func() error {
			if !s.insist(t.Context(), finally) {
				s.blame("I4: no replay of what has ended")
			}
			if i%10 == 0 {
				l.peep(t.Context(), s, string(operationOf(r)))
			}
			return nil
		})
	}
	must(t, group.Wait())
}

// peep asks for a story's operation as the other tenant.
func (l *loop) peep(ctx context.Context, s *story, operation string) {
	stranger := deployed.tenantB
	if s.plan.Tenant == chaos.TenantB {
		stranger = deployed.tenantA
	}
	got, err := stranger.send(ctx, request{path: "/v1/operations/" + operation})
	for attempt := 1; err == nil && got.starved() && attempt < attemptsMax; attempt++ { // it has told nothing of the operation
		time.Sleep(time.Second)
		got, err = stranger.send(ctx, request{path: "/v1/operations/" + operation})
	}
	if err != nil || got.status != http.StatusNotFound {
		s.blame("I5: another tenant is told %v, %v", got, err)
	}
	l.figures.add(tableChecks, "operations that the other tenant asked for", 1)
}

// notLost: whoever was told 202 or a final answer has a record, and the record that answer.
func (s *story) notLost(record item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case record == nil && (s.accepted != nil || s.final != nil):
		s.blame("I3: lost: there is no record")
	case s.accepted != nil && !strings.Contains(string(s.accepted.body), string(operationOf(record))):
		s.blame("I3: accepted as another operation than %s: %v", operationOf(record), s.accepted)
	case s.final != nil && number(record, schema.ResponseStatus) != int64(s.final.status):
		s.blame("I4: the record says %s, its client was told %v", text(record, schema.ResponseStatus), s.final)
	}
}

// chargedAsTold: a payment that succeeded has one charge; one that was declined or has failed has none that did (I2). The
// provider's objects are found by the payment's reference, so that a second charge under whatever key shows.
func (s *story) chargedAsTold(record item, objects []provider.Object) {
	succeeded := 0
	for _, o := range objects {
		if o.Status == provider.Succeeded {
			succeeded++
		}
	}
	want := 0
	if number(record, schema.ResponseStatus) == http.StatusCreated {
		want = 1
	}
	final := storage.State(text(record, schema.State)).Final()
	if len(objects) > 1 || final && succeeded != want || record == nil && len(objects) > 0 {
		s.blame("I2: answered %q, the provider has %+v", text(record, schema.ResponseStatus), objects)
	}
}

// transfers: as many as were answered with 201, and no others.
func (l *loop) transfers(left leftovers, stories []*story, records map[string]item) {
	moved := 0
	for _, it := range left.rows {
		if strings.HasPrefix(text(it, attributeKey), transferKeys) && strings.HasPrefix(text(it, attributeFrom), accountName("loop-")) {
			moved++
		}
	}
	told := 0
	for _, s := range stories {
		r := records[string(s.key())]
		if s.operation == operationTransfers && text(r, schema.State) == string(storage.StateCompleted) && number(r, schema.ResponseStatus) == http.StatusCreated {
			told++
		}
	}
	if moved != told {
		l.mu.Lock()
		l.wrong = append(l.wrong, fmt.Sprintf("I6: %d transfers, %d are answered with 201", moved, told))
		l.mu.Unlock()
	}
}

// operatorsQueue explains each message that stands before an operator.
func (l *loop) operatorsQueue(left leftovers) {
	for _, m := range left.messages {
		if parked(m) {
			l.figures.add(tableQueue, fmt.Sprintf("%s of %s, last %q, open: %t", text(m, schema.State), text(m, schema.Topic),
				text(m, schema.LastOutcome), number(m, schema.OpenSince) > 0), 1)
		}
	}
}

// drift has the stack compare keys, messages, payments and the provider's objects of the loop's time.
func (l *loop) drift(t *testing.T) {
	t.Helper()
	function := deployed.variables["FUNCTION_DRIFT"]
	if function == "" {
		return
	}
	asked, err := json.Marshal(map[string]time.Time{"from": l.began.UTC(), "to": time.Now().UTC()})
	must(t, err)
	out, err := deployed.functions.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String(function), Payload: asked})
	must(t, err)
	var report struct {
		Unfinished bool           `json:"unfinished"`
		Compared   map[string]int `json:"compared"`
		Open       int            `json:"open"`
		Drift      map[string]int `json:"drift"`
		Drifts     []any          `json:"drifts"`
	}
	must(t, json.Unmarshal(out.Payload, &report))
	for what, n := range report.Compared {
		l.figures.add(tableChecks, "compared by the drift job: "+what, n)
	}
	if out.FunctionError != nil || report.Unfinished || report.Open > 0 || len(report.Drifts) > 0 || report.Compared["messages"] == 0 {
		t.Errorf("the drift job is not clean: %.4000s", out.Payload)
	}
}
