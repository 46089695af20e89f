package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/delivery"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/provider"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// desk is a stage with the application on it, and an operator before it.
type desk struct {
	*testing.T
	*lambdatest.Stage
	api    http.Handler
	worker *outbox.Worker
	store  *delivery.Store
}

func newDesk(t *testing.T, with ...func(*lambdatest.Stage)) *desk {
	t.Helper()
	return newDeskOf(t, rand.Reader, with...)
}

// newDeskOf makes a desk whose application takes its ids from a source of randomness.
func newDeskOf(t *testing.T, random io.Reader, with ...func(*lambdatest.Stage)) *desk {
	t.Helper()
	d := &desk{T: t, Stage: lambdatest.New(t)}
	for _, f := range with {
		f(d.Stage)
	}
	audit := d.Idempotency + "-audit"
	d.ok(dynamotest.CreateTable(t.Context(), d.Client, audit, schema.Audit()))
	t.Setenv("AUDIT_TABLE", audit)
	t.Setenv("IDEMCTL_ACTOR", "ada")
	cfg, err := config.Read[config.Operator]()
	d.ok(err)
	cfg.Out = io.Discard
	parts, err := delivery.New(t.Context(), cfg.Worker)
	d.ok(err)
	d.store = parts.Store
	d.worker, err = outbox.NewWorker(parts.Store, parts.Topics, parts.Queue, parts.Queue)
	d.ok(err)
	inline, err := outbox.NewInline(d.worker)
	d.ok(err)
	engine, err := idem.New(parts.Store, idem.Config{ScopeSecret: cfg.ScopeSecret, Random: random})
	d.ok(err)
	d.api, err = payments.New(payments.Config{
		Engine: engine, Ledger: payments.Table{Client: parts.Client, Name: d.Payments}, Messages: parts.Store, Inline: inline,
		Identify: func(*http.Request) (middleware.Identity, error) {
			return middleware.Identity{Tenant: lambdatest.Tenant}, nil
		},
		Retention: time.Hour, BodyBytesMax: 1 << 10, Logger: slog.New(slog.DiscardHandler),
	})
	d.ok(err)
	return d
}

func (d *desk) ok(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// post sends the client's request under its key, and returns the operation that it began.
func (d *desk) post(path, key, body string) idem.OperationID {
	d.Helper()
	r := httptest.NewRequestWithContext(d.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Idempotency-Key", `"`+key+`"`)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	d.api.ServeHTTP(w, r)
	var accepted struct{ Operation idem.OperationID }
	if err := json.Unmarshal(w.Body.Bytes(), &accepted); err != nil || w.Code != http.StatusAccepted {
		d.Fatalf("%d %s", w.Code, w.Body)
	}
	return accepted.Operation
}

func (d *desk) pay(key, source string) idem.OperationID {
	d.Helper()
	return d.post("/v1/payments", key, `{"amount":1999,"currency":"EUR","source":"`+source+`"}`)
}

func (d *desk) deliver(id idem.MessageID) {
	d.Helper()
	d.ok(d.worker.Deliver(d.Context(), id))
}

func (d *desk) faults(rules ...provider.Rule) {
	d.Helper()
	d.ok(d.Provider.Faults(d.Context(), rules...))
}

// exits runs the command as a shell does.
func (d *desk) exits(want int, args ...string) (stdout, stderr string) {
	d.Helper()
	var out, errs strings.Builder
	if got := idemctl.Run(d.Context(), app(), args, &out, &errs); got != want {
		d.Fatalf("idemctl %q exits with %d, want %d\n%s%s", args, got, want, &out, &errs)
	}
	return out.String(), errs.String()
}

// told is a story as a program reads it.
type told struct {
	Record      *operator.RecordView
	Messages    []operator.MessageView
	Application struct {
		Row      *row
		Provider map[idem.MessageID][]provider.Object
	}
	Audit []operator.Entry
	Next  []string
}

func (d *desk) inspect(args ...string) (s told) {
	d.Helper()
	out, _ := d.exits(idemctl.ExitOK, append([]string{"inspect", "--output", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		d.Fatalf("%v: %s", err, out)
	}
	return s
}

// change is the command line of a change that is made.
func change(command, id string, seen operator.Seen, more ...string) []string {
	return slices.Concat([]string{command, id, "--seen", string(seen), "--reason", "ticket 17"}, more, []string{"--write"})
}

func (s told) states() string {
	states := []string{string(s.Record.State)}
	for _, m := range s.Messages {
		states = append(states, string(m.State))
	}
	if s.Application.Row != nil {
		states = append(states, string(s.Application.Row.Status))
	}
	return strings.Join(states, " ")
}

func (d *desk) demands(s told, states string, next string) {
	d.Helper()
	if s.states() != states || !strings.Contains(strings.Join(s.Next, "\n"), next) {
		d.Errorf("%s, next %q; want %s, %q", s.states(), s.Next, states, next)
	}
}

// A row that can't be read, or a table of rows that can't, hides neither record nor messages, nor what the provider has.
func TestStoryOfARowThatCannotBeRead(t *testing.T) {
	d := newDesk(t)
	_, _, all := jsonPage(t)
	id := d.pay("order-17", "card_ok")
	d.deliver(id.Message(1))
	row := d.Items(t, d.Payments)[0]
	row["amt"] = &types.AttributeValueMemberS{Value: "1999"}
	d.Put(t, d.Payments, row)
	for _, why := range []string{"malformed attribute", "ResourceNotFoundException"} {
		out, _ := d.exits(idemctl.ExitOK, "inspect", string(id.Message(1)), "--output", "json")
		var s struct {
			told
			Error string `json:"application_error"`
		}
		var answer any
		d.ok(errors.Join(json.Unmarshal([]byte(out), &s), json.Unmarshal([]byte(out), &answer)))
		if s.states() != "completed delivered" || len(s.Application.Provider[id.Message(1)]) != 1 || s.Messages[0].Seen == "" || !strings.Contains(s.Error, why) {
			t.Errorf("%q: %s", why, out)
		}
		for _, wrong := range all.Mismatches("story", answer) {
			t.Errorf("%s\n%s", wrong, out)
		}
		table, _ := d.exits(idemctl.ExitOK, "inspect", string(id.Message(1)), "--wide")
		if !strings.Contains(table, "\napplication: not all that it knows could be read: ") || !strings.Contains(table, why) || !strings.Contains(table, "delivered.1.") {
			t.Errorf("%q:\n%s", why, table)
		}
		t.Setenv("PAYMENTS_TABLE", "no-such-table")
	}
}

// A key is looked up under the functions' secret. Without it the operator is told so, and not that there is no such operation.
func TestAKeyIsLookedUpUnderTheFunctionsSecret(t *testing.T) {
	d := newDesk(t, func(*lambdatest.Stage) { t.Setenv("SCOPE_SECRET", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=") })
	id := d.pay("order-17", "card_ok")
	by := []string{"inspect", "--tenant", lambdatest.Tenant, "--operation", "payments.create", "--key", "order-17"}
	if out, _ := d.exits(idemctl.ExitOK, by...); !strings.Contains(out, string(id)) {
		t.Errorf("found\n%s\nwant the story of %s", out, id)
	}
	t.Setenv("SCOPE_SECRET", "")
	if _, errs := d.exits(idemctl.ExitTrouble, by...); !strings.Contains(errs, "Config.ScopeSecret") {
		t.Errorf("told %q", errs)
	}
	d.exits(idemctl.ExitOK, "inspect", string(id))
}

// A payment that went well is one story, by its operation, its message, its key and its own id: record, message, row and the provider's
// object; and nothing of what the client said that is not the row's.
func TestStoryOfACompletedPayment(t *testing.T) {
	d := newDesk(t)
	id := d.pay("order-17", "card_ok")
	d.deliver(id.Message(1))
	payment := d.inspect(string(id)).Application.Row.ID
	for _, by := range [][]string{
		{string(id)}, {string(id.Message(1))}, {payment, "--tenant", lambdatest.Tenant}, {"--tenant", lambdatest.Tenant, "--operation", "payments.create", "--key", "order-17"},
	} {
		s := d.inspect(by...)
		d.demands(s, "completed delivered succeeded", "nothing: it has ended")
		made := s.Application.Provider[id.Message(1)]
		if len(made) != 1 || made[0].Amount != 1999 || made[0].ID != s.Application.Row.ProviderReference || s.Record.ResponseStatus != http.StatusCreated {
			t.Errorf("%+v", s)
		}
	}
	out, _ := d.exits(idemctl.ExitOK, "inspect", string(id))
	if strings.Contains(out, "order-17") || !strings.Contains(out, "payments.charge") {
		t.Errorf("the table tells the key, or not the topic:\n%s", out)
	}
	d.exits(idemctl.ExitRefused, "inspect", "--tenant", "tenant-b", "--operation", "payments.create", "--key", "order-17")
	d.exits(idemctl.ExitRefused, "inspect", "--tenant", "tenant-b", payment)
}

// A charge without keys whose answer was lost: it stands in the operator's list, is resolved once by evidence that names the
// provider's object, and a decision about what was seen before is refused and logged.
func TestUnknownKeylessChargeIsResolvedByEvidence(t *testing.T) {
	d := newDesk(t)
	d.faults(provider.Rule{On: provider.LegacyCharge, Fault: provider.DropAfter, Times: 1})
	id := d.pay("order-18", "legacy_ok")
	d.deliver(id.Message(1))

	out, _ := d.exits(idemctl.ExitOK, "list", "unknown", "--tenant", lambdatest.Tenant)
	if short := shortOf(id.Message(1)); !strings.Contains(out, short) {
		t.Errorf("not listed:\n%s", out)
	} else if told, _ := d.exits(idemctl.ExitOK, "inspect", short); !strings.HasPrefix(told, "operation "+string(id)+"\n") {
		t.Errorf("the short id does not lead to it:\n%s", told)
	}
	if out, _ = d.exits(idemctl.ExitOK, "list", "unknown", "--tenant", "tenant-b"); out != "nothing\n" {
		t.Errorf("another tenant's list:\n%s", out)
	}
	s := d.inspect(string(id))
	d.demands(s, "pending unknown pending", "resolve: with evidence")
	charge := s.Application.Provider[id.Message(1)][0]
	seen := s.Messages[0].Seen
	resolve := change("resolve", string(id.Message(1)), seen, "--delivered", charge.ID)

	out, _ = d.exits(idemctl.ExitOK, resolve[:len(resolve)-1]...) // without --write
	if !strings.Contains(out, "dry run") {
		t.Errorf("dry run: %s", out)
	}
	d.demands(d.inspect(string(id)), "pending unknown pending", "resolve")

	d.exits(idemctl.ExitOK, resolve...)
	s = d.inspect(string(id))
	d.demands(s, "completed delivered succeeded", "nothing")
	if s.Application.Row.ProviderReference != charge.ID || len(d.Charges(t)) != 1 {
		t.Errorf("%+v, %d charges", s.Application.Row, len(d.Charges(t)))
	}
	if _, errs := d.exits(idemctl.ExitRefused, resolve...); !strings.Contains(errs, "is delivered.1.") || !strings.Contains(errs, string(seen)) {
		t.Errorf("the refusal says: %s", errs)
	}
	d.logged(id, "refused", "done")
}

// logged demands the states of the entries about an operation, newest first.
func (d *desk) logged(id idem.OperationID, states ...operator.EntryState) {
	d.Helper()
	out, _ := d.exits(idemctl.ExitOK, "audit", "--subject", string(id), "--output", "json")
	var entries []operator.Entry
	d.ok(json.Unmarshal([]byte(out), &entries))
	got := map[operator.EntryState]int{}
	for _, e := range entries {
		got[e.State]++
		if e.Actor != "ada" || e.Reason != "ticket 17" || e.DoneAt.IsZero() {
			d.Errorf("entry %+v", e)
		}
	}
	for _, state := range states {
		got[state]--
	}
	for state, n := range got {
		if n != 0 {
			d.Errorf("log %+v, want %v (%s is off by %d)", entries, states, state, n)
		}
	}
}

// Evidence that contradicts what was asked for settles nothing, and is kept; nor does a redrive settle it.
func TestContradictingEvidenceSettlesNothing(t *testing.T) {
	d := newDesk(t)
	d.faults(provider.Rule{On: provider.LegacyCharge, Fault: provider.DropAfter, Times: 1})
	id := d.pay("order-21", "legacy_ok")
	d.deliver(id.Message(1))
	file := t.TempDir() + "/evidence"
	d.ok(os.WriteFile(file, []byte(`{"amount":1,"currency":"EUR"}`), 0o600))
	seen := d.inspect(string(id)).Messages[0].Seen
	d.exits(idemctl.ExitTrouble, change("resolve", string(id.Message(1)), seen, "--delivered", "ch_1", "--evidence", file)...)
	s := d.inspect(string(id))
	d.demands(s, "pending dead pending", "redrive: settles the evidence")
	if len(s.Messages[0].Kept) == 0 {
		t.Errorf("the evidence is gone: %+v", s.Messages[0])
	}
	d.exits(idemctl.ExitTrouble, change("redrive", string(id.Message(1)), s.Messages[0].Seen)...)
	d.exits(idemctl.ExitRefused, change("close", string(id.Message(1)), s.Messages[0].Seen)...)
	d.logged(id, "failed", "failed", "refused")
}

// One that was given up has its final answer: there is nothing to redrive, and closing takes it out of the list.
func TestDeadPayment(t *testing.T) {
	t.Setenv("ATTEMPTS_MAX", "1")
	d := newDesk(t)
	d.faults(provider.Rule{On: provider.Charge, Fault: provider.RateLimit})
	id := d.pay("order-19", "card_ok")
	d.deliver(id.Message(1))
	if out, _ := d.exits(idemctl.ExitOK, "list", "dead"); !strings.Contains(out, shortOf(id.Message(1))) {
		t.Errorf("not listed:\n%s", out)
	}
	s := d.inspect(string(id))
	d.demands(s, "failed dead failed", "close: its operation has its final answer")
	if _, errs := d.exits(idemctl.ExitRefused, change("redrive", string(id.Message(1)), s.Messages[0].Seen)...); !strings.Contains(errs, "final answer") {
		t.Errorf("the refusal says: %s", errs)
	}
	if _, errs := d.exits(idemctl.ExitRefused, change("close", string(id.Message(1)), s.Messages[0].Seen)...); !strings.Contains(errs, "may be under way until") {
		t.Errorf("the refusal says: %s", errs)
	}
	d.logged(id, "refused", "refused")
}

// due makes a message due that waits for its next attempt, as the time that passes would.
func (d *desk) due(id idem.MessageID) {
	d.Helper()
	m, err := d.store.Message(d.Context(), id)
	d.ok(err)
	fence := storage.FenceOfMessage(*m)
	if m.State != storage.MessagePending || !m.NextAttemptAt.After(m.CreatedAt) {
		d.Fatalf("%s is %s, and waits for nothing", id, m.State)
	}
	m.NextAttemptAt = m.CreatedAt
	m.Revision, err = storage.IDGenerator{Random: rand.Reader}.Revision()
	d.ok(err)
	d.ok(d.store.UpdateMessage(d.Context(), *m, fence))
}

// A payout between its phases: what was screened is told beside what is still to be paid out, and the reserved funds' row.
func TestStoryOfAPayoutBetweenPhases(t *testing.T) {
	d := newDesk(t)
	d.Account(t, lambdatest.Tenant, "acct_1", 1000)
	d.faults(provider.Rule{On: provider.Payout, Fault: provider.RateLimit, Times: 1})
	id := d.post("/v1/payouts", "payout-1", `{"from":"acct_1","amount":500,"currency":"EUR","destination":"iban_ok"}`)
	s := d.inspect(string(id))
	d.demands(s, "pending delivered pending pending", "wait: a worker takes it from")
	if len(s.Application.Provider[id.Message(1)]) != 1 || len(s.Application.Provider[id.Message(2)]) != 0 || s.Application.Row.Kind != payments.EntryPayout {
		t.Errorf("%+v", s.Application)
	}
	d.due(id.Message(2))
	d.deliver(id.Message(2))
	d.demands(d.inspect(string(id)), "completed delivered delivered succeeded", "nothing")
}

// A wrapped operation whose outcome is unknown: completed with the answer that its handler would have given, or released
// where nothing happened.
func TestUnknownRecord(t *testing.T) {
	body := t.TempDir() + "/body"
	if err := os.WriteFile(body, []byte(`{"imported":17}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for command, c := range map[string]struct {
		more  []string
		state storage.State
	}{
		"resolve": {[]string{"--status", "201", "--body", body}, storage.StateCompleted},
		"release": {nil, storage.StateFailedRetryable},
	} {
		t.Run(command, func(t *testing.T) {
			d := newDesk(t)
			key := d.Unknown(t, time.Hour)
			out, _ := d.exits(idemctl.ExitOK, "list", "unknown", "--output", "json")
			var l operator.List
			d.ok(json.Unmarshal([]byte(out), &l))
			if len(l.Rows) != 1 || l.Rows[0].Record == nil {
				t.Fatalf("%s", out)
			}
			id := l.Rows[0].Operation
			d.demands(d.inspect(string(id)), "unknown", "release: where nothing happened")
			d.exits(idemctl.ExitRefused, change(command, string(id), "unknown.9.00000000", c.more...)...)
			d.exits(idemctl.ExitOK, change(command, string(id), l.Rows[0].Record.Seen, c.more...)...)
			if got := d.RecordState(t, key); got != c.state {
				t.Errorf("the record is %s, want %s", got, c.state)
			}
			d.logged(id, "refused", "done")
		})
	}
}

// What nobody woke is stuck: it is listed, and a sweep on demand offers it.
func TestSweepNow(t *testing.T) {
	d := newDesk(t)
	a := d.Accept(t, time.Minute)
	if out, _ := d.exits(idemctl.ExitOK, "list", "stuck"); !strings.Contains(out, shortOf(a.Message.ID)) {
		t.Errorf("not listed:\n%s", out)
	}
	d.exits(idemctl.ExitOK, "sweep", "--reason", "ticket 17")
	if sent := d.Queues.WakeUps(); len(sent) != 0 {
		t.Errorf("a dry run sent %+v", sent)
	}
	out, _ := d.exits(idemctl.ExitOK, "sweep", "--reason", "ticket 17", "--write")
	if sent := d.Queues.WakeUps(); len(sent) != 1 || !strings.Contains(out, "messages offered: 1") {
		t.Errorf("sent %+v: %s", sent, out)
	}
}

// Reconcile asks the provider now, and settles what it finds.
func TestReconcileNow(t *testing.T) {
	d := newDesk(t)
	a := d.Accept(t, time.Minute)
	a.Park(t)
	a.Charge(t)
	d.exits(idemctl.ExitOK, "reconcile", string(a.Message.ID), "--reason", "ticket 17", "--write")
	a.Want(t, storage.MessageDelivered, storage.StateCompleted, payments.StatusSucceeded, 1)
}

// With encryption the story is the same, and a settlement is sealed. Who has no keys sees that there is something, and
// settles nothing.
func TestEncrypted(t *testing.T) {
	d := newDesk(t, func(s *lambdatest.Stage) { s.Seal(t) })
	d.faults(provider.Rule{On: provider.LegacyCharge, Fault: provider.DropAfter, Times: 1})
	id := d.pay("order-22", "legacy_ok")
	d.deliver(id.Message(1))
	keys, kms := os.Getenv("KEYS_TABLE"), os.Getenv("KMS_KEY_ID")

	t.Setenv("KEYS_TABLE", "")
	t.Setenv("KMS_KEY_ID", "")
	s := d.inspect(string(id))
	d.demands(s, "pending unknown pending", "resolve")
	if !s.Messages[0].Sealed {
		t.Errorf("read without keys: %+v", s.Messages[0])
	}
	resolve := change("resolve", string(id.Message(1)), s.Messages[0].Seen, "--delivered", s.Application.Provider[id.Message(1)][0].ID)
	d.exits(idemctl.ExitRefused, resolve...)
	d.exits(idemctl.ExitRefused, "reconcile", string(id.Message(1)), "--reason", "ticket 17", "--write")
	d.demands(d.inspect(string(id)), "pending unknown pending", "resolve")

	t.Setenv("KEYS_TABLE", keys)
	t.Setenv("KMS_KEY_ID", kms)
	if s = d.inspect(string(id)); s.Messages[0].Sealed {
		t.Errorf("read with keys: %+v", s.Messages[0])
	}
	d.exits(idemctl.ExitOK, resolve...)
	d.demands(d.inspect(string(id)), "completed delivered succeeded", "nothing")
}

// Where the tables can't be asked nothing is said of what is there; where they are not named it is the command line's fault.
func TestTrouble(t *testing.T) {
	d := newDesk(t)
	a := d.Accept(t, 0)
	t.Setenv("AUDIT_TABLE", "")
	if _, errs := d.exits(idemctl.ExitUsage, "inspect", string(a.Message.ID)); !strings.Contains(errs, "AUDIT_TABLE") {
		t.Errorf("%s", errs)
	}
	file := t.TempDir() + "/run.env"
	d.ok(os.WriteFile(file, []byte("# names\nAUDIT_TABLE="+d.Idempotency+"-audit\nIDEMPOTENCY_TABLE=other\n"), 0o600))
	d.ok(os.Unsetenv("AUDIT_TABLE"))
	d.exits(idemctl.ExitOK, "--env-file", file, "inspect", string(a.Message.ID)) // what is set already stays
	lambdatest.Unreachable(t)
	d.exits(idemctl.ExitTrouble, "inspect", string(a.Message.ID))
	d.exits(idemctl.ExitTrouble, "list", "dead")
}

// shortOf is a message's id as lists print it, where no other begins alike.
func shortOf(id idem.MessageID) string {
	operation, number, _ := strings.Cut(string(id), ".")
	return operation[:12] + "." + number
}

// A variable that is missing is told from trouble with a table, whichever command needs it.
func TestMissingVariablesAreUsage(t *testing.T) {
	for _, name := range []string{"IDEMPOTENCY_TABLE", "OUTBOX_TABLE", "PAYMENTS_TABLE", "AUDIT_TABLE", "API_KEYS_TABLE", "PROVIDER_URL"} {
		t.Setenv(name, "")
	}
	for _, args := range [][]string{
		{"list", "dead"}, {"apikey", "list"}, {"drift"}, {"tables", "check"}, {"inspect", "pay_1", "--tenant", "a"},
		{"redrive", "--dead-letters", "--reason", "r", "--actor", "a"},
		{"account", "collect", "acct_1", "--tenant", "a", "--partitions", "1", "--reason", "r", "--actor", "a"},
		{"missing", "restore", "--from", "2026-11-21T09:00:00Z", "--to", "2026-11-21T10:00:00Z", "--reason", "r", "--actor", "a"},
	} {
		var out, errs bytes.Buffer
		if code := idemctl.Run(t.Context(), app(), args, &out, &errs); code != idemctl.ExitUsage || !strings.Contains(errs.String(), "next: Set the variables in the environment") ||
			strings.Count(errs.String(), "missing or empty: ") != 1 || strings.Count(errs.String(), "\n") != 2 {
			t.Errorf("%q exits with %d, and does not list the variables in one line: %s", args, code, &errs)
		}
	}
}

// An operator has the functions' number of shards: no command changes it, because sweep and reconciler look by it.
func TestNoCommandChangesTheNumberOfShards(t *testing.T) {
	d := newDesk(t)
	store, err := dynamo.New(d.Client, dynamo.Config{IdempotencyTable: d.Idempotency, OutboxTable: d.Outbox, Shards: 8})
	d.ok(err)
	_, err = store.CheckShards(t.Context()) // as the functions do
	d.ok(err)
	for _, shards := range []string{"16", "4"} {
		t.Setenv("OUTBOX_SHARDS", shards)
		for _, args := range [][]string{{"list", "unknown"}, {"sweep", "--reason", "ticket 17", "--write"}} {
			if _, errs := d.exits(idemctl.ExitUsage, args...); !strings.Contains(errs, "OUTBOX_SHARDS") || !strings.Contains(errs, "must be 8") {
				t.Errorf("%q: %s", args, errs)
			}
		}
		if err := store.SameShards(t.Context()); err != nil {
			t.Errorf("%s: another number than the functions' is kept: %v", shards, err)
		}
	}
	t.Setenv("OUTBOX_SHARDS", "8")
	d.exits(idemctl.ExitOK, "list", "unknown")
}
