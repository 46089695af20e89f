package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// deployment is a service with its worker and a provider, behind HTTP servers.
type deployment struct {
	app      http.Handler
	provider *httptest.Server
	queue    *memqueue.Queue
	worker   *outbox.Worker
	// effects says how many charges the worker makes of the n-th message.
	effects func(n int64) int
	// astray has what the worker makes beyond one charge made under another reference.
	astray   bool
	messages atomic.Int64
	requests atomic.Int64
	// settles says that the worker's transaction writes the business row, as the payments application's does.
	settles bool
	// dynamodb is where the service and its worker find DynamoDB; "" is the endpoint itself.
	dynamodb string
	// refuse is a request that is not served, counted from 1; 0 is none.
	refuse int64
}

// ServeHTTP answers a request, and lets the worker deliver what it committed.
func (d *deployment) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d.requests.Add(1) == d.refuse {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"status":503,"code":"planted"}`)
		return
	}
	answer := httptest.NewRecorder()
	d.app.ServeHTTP(answer, r)
	if _, id, ok := strings.Cut(answer.Header().Get("Location"), "/v1/operations/"); ok && answer.Header().Get("Idempotency-Status") == "executed" {
		if err := d.worker.Deliver(r.Context(), idem.OperationID(id).Message(1)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// charge makes the effects of a message.
func (d *deployment) charge(ctx context.Context, m storage.Message) outbox.Outcome {
	for i := range d.effects(d.messages.Add(1)) {
		body := string(m.Payload)
		if d.astray && i > 0 {
			body = strings.Replace(body, `"reference":"`, `"reference":"astray-`, 1)
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.provider.URL+"/charges", strings.NewReader(body))
		if err != nil {
			return outbox.Ambiguous{}
		}
		r.Header.Set("Idempotency-Key", fmt.Sprintf("%s-%d", m.ID, i))
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return outbox.Ambiguous{}
		}
		res.Body.Close()
	}
	return outbox.Delivered{Reference: "charge"}
}

// deploy starts everything and writes its env file.
func deploy(t *testing.T, d *deployment) (envFile string) {
	t.Helper()
	url := dynamotest.Endpoint(t, dynamotest.Dynoxide)
	tables, err := createTables(t.Context(), url, "load-gateway")
	must(t, err)
	client := newClient(cmp.Or(d.dynamodb, url), wirefault.Patiently)
	d.app, err = newApp(t.Context(), client, tables)
	must(t, err)
	store, err := dynamo.New(client, dynamo.Config{IdempotencyTable: tables.Idempotency, OutboxTable: tables.Outbox})
	must(t, err)
	topics, err := outbox.NewTopics(outbox.Config{}, outbox.Topic{Name: topic, Call: d.charge, Settle: func(m storage.Message, _ outbox.Outcome) (outbox.Settlement, error) {
		settled := outbox.Settlement{Response: idem.Response{Status: http.StatusCreated, Body: answer}}
		if d.settles {
			row := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: string(m.OperationID)}}
			settled.Writes = []idem.Write{dynamo.Put(types.Put{TableName: &tables.Rows, Item: row})}
		}
		return settled, nil
	}})
	must(t, err)
	d.queue = memqueue.New(time.Now)
	d.worker, err = outbox.NewWorker(store, topics, d.queue, d.queue)
	must(t, err)
	simulator := provider.New(provider.Config{})
	t.Cleanup(simulator.Close)
	d.provider = httptest.NewServer(simulator)
	t.Cleanup(d.provider.Close)
	api := httptest.NewServer(d)
	t.Cleanup(api.Close)
	envFile = filepath.Join(t.TempDir(), "run.env")
	must(t, os.WriteFile(envFile, fmt.Appendf(nil, "API_URL=%s\nTENANT_A_TOKEN=token\nPROVIDER_URL=%s\n", api.URL, d.provider.URL), 0o600))
	return envFile
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func one(int64) int { return 1 }

// loaded measures a deployment with a few requests, within so much time for what is not final.
func loaded(t *testing.T, d *deployment, settle time.Duration) Report {
	t.Helper()
	g, err := openGateway(deploy(t, d), settle)
	must(t, err)
	part, err := g.measure(t.Context(), 6, []int{4, 1})
	must(t, err)
	return Report{Parts: []Part{part}}
}

func TestARunThatFindsOneEffectOfEachKeySucceeds(t *testing.T) {
	report := loaded(t, &deployment{effects: one}, time.Minute)
	must(t, report.err())
	part := report.Parts[0]
	if len(part.Figures) != 6 || part.Figures[0].Callers != 1 || part.Figures[5].Callers != 4 {
		t.Errorf("%+v, want three paths with 1 caller, then with 4", part.Figures)
	}
	if want := "effects: 13 keys sent, 13 accepted, 13 charges at the provider"; !strings.HasPrefix(part.Notes[0], want) {
		t.Errorf("got %q, want %q", part.Notes[0], want)
	}
}

func TestADoubledEffectFailsTheRun(t *testing.T) {
	err := loaded(t, &deployment{effects: func(n int64) int { return 1 + int(n%13/12) }}, time.Minute).err() // the 12th
	if err == nil || strings.Count(err.Error(), "\n") != 0 || !strings.Contains(err.Error(), "2 effects for the key load-") {
		t.Errorf("got %v, want the one key with 2 effects", err)
	}
}

// A second charge under a reference that nobody sent is an effect too many as well; charges from before the run are not.
func TestAnEffectUnderAnotherReferenceFailsTheRun(t *testing.T) {
	err := loaded(t, &deployment{effects: func(n int64) int { return 1 + int(n%13/12) }, astray: true}, time.Minute).err() // the 12th
	if err == nil || strings.Count(err.Error(), "\n") != 0 || !strings.Contains(err.Error(), `has the reference "astray-load-`) {
		t.Errorf("got %v, want the one charge under another reference", err)
	}
	there := []provider.Object{{ID: "ch_1", Reference: "of another run"}}
	made := since(there, append([]provider.Object{{ID: "ch_2", Reference: "load-1"}}, there...))
	if count, wrong := effects(made, []string{"load-1"}, nil); count != 1 || wrong != nil {
		t.Errorf("%d charges of the run, %q", count, wrong)
	}
}

func TestAMissingEffectFailsTheRun(t *testing.T) {
	err := loaded(t, &deployment{effects: func(n int64) int { return min(1, int(n-1)) }}, time.Minute).err() // none of the first
	if err == nil || !strings.Contains(err.Error(), "no effect for the key load-") {
		t.Errorf("got %v, want the key without an effect", err)
	}
}

func TestAWrongStatusFailsTheRunAndIsCountedByItsCode(t *testing.T) {
	for name, refused := range map[string]struct {
		request int64
		path    string
	}{"a payment": {4, "payment"}, "a replay": {9, "replay"}, "a read": {16, "status read"}} {
		t.Run(name, func(t *testing.T) {
			report := loaded(t, &deployment{effects: one, refuse: refused.request}, time.Minute)
			err := report.err()
			if want := refused.path + ", c 1: unexpected answers: 1 503 planted"; err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			var text, machine strings.Builder
			must(t, report.writeText(&text))
			must(t, report.writeJSON(&machine))
			if !strings.Contains(text.String(), "WRONG") || !strings.Contains(machine.String(), `"503 planted": 1`) {
				t.Errorf("the error is hidden:\n%s\n%s", text.String(), machine.String())
			}
		})
	}
}

func TestAPaymentWithoutAFinalAnswerFailsTheRun(t *testing.T) {
	d := &deployment{effects: one}
	g, err := openGateway(deploy(t, d), time.Nanosecond)
	must(t, err)
	g.traffic.accepted = []payment{{"load-none", "op_none"}}
	part, err := g.measure(t.Context(), 1, []int{1})
	must(t, err)
	if err := (Report{Parts: []Part{part}}).err(); err == nil || !strings.Contains(err.Error(), "payments have no final answer after 1ns") {
		t.Errorf("got %v", err)
	}
}

func TestWithoutAStackTheErrorSaysHowToGetOne(t *testing.T) {
	_, err := openGateway(filepath.Join(t.TempDir(), "run.env"), time.Minute)
	if err == nil || !strings.Contains(err.Error(), "make up") {
		t.Errorf("got %v", err)
	}
}
