package main

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/lambdaapp"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/auditlog"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// swept runs the function as its environment makes it; without shards it looks into all.
func swept(t *testing.T, shards ...int) (outbox.Report, error) {
	t.Helper()
	cfg, err := config.Read[config.Sweep]()
	if err != nil {
		t.Fatal(err)
	}
	run, err := handler(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return run(t.Context(), lambdaapp.Run{Shards: shards})
}

// docs/operator.md "DueOld": each run tells what waits.
func TestSweepCountsWhatWaits(t *testing.T) {
	s := lambdatest.New(t)
	s.Accept(t, 30*time.Minute)
	log := lambdatest.Log(t)
	if _, err := swept(t); err != nil {
		t.Fatal(err)
	}
	got := log()[0].Metrics
	if age := time.Duration(got["outbox.backlog.due_age"]) * time.Millisecond; age < 28*time.Minute || age > 30*time.Minute || got["outbox.backlog.due"] != 1 ||
		got["outbox.backlog.unknown"] != 0 || got["outbox.backlog.dead"] != 0 || len(got) != 4 {
		t.Errorf("%v, want one that is due since half an hour", got)
	}
}

// A message whose wake-up was lost gets another one; the sweep itself calls nobody.
func TestSweepOffersWhatNobodyWoke(t *testing.T) {
	s := lambdatest.New(t)
	a := s.Accept(t, time.Minute)
	if did, err := swept(t); err != nil || did != (outbox.Report{Messages: outbox.Counts{Offered: 1}}) {
		t.Errorf("%+v, %v, want one offered", did, err)
	}
	if sent := s.Queues.WakeUps(); len(sent) != 1 || sent[0].Body != `{"message":"`+string(a.Message.ID)+`"}` || sent[0].DelaySeconds != 0 {
		t.Errorf("queue of wake-ups %+v", sent)
	}
	a.Want(t, storage.MessagePending, storage.StatePending, payments.StatusPending, 0)
}

func TestSweepLeavesWhatIsNotDue(t *testing.T) {
	s := lambdatest.New(t)
	s.Accept(t, 0)
	if did, err := swept(t); err != nil || did != (outbox.Report{Messages: outbox.Counts{}}) || len(s.Queues.WakeUps()) > 0 {
		t.Errorf("%+v, %v, queue %+v", did, err, s.Queues.WakeUps())
	}
}

// What nobody has claimed in time is cancelled, and its payment with it: answered with 408, and nobody has to look.
func TestSweepCancelsWhatIsAbandoned(t *testing.T) {
	s := lambdatest.New(t)
	a := s.Accept(t, 25*time.Hour)
	if did, err := swept(t); err != nil || did != (outbox.Report{Messages: outbox.Counts{Abandoned: 1}}) || len(s.Queues.Dead()) != 0 {
		t.Errorf("%+v, %v, dead letters %+v", did, err, s.Queues.Dead())
	}
	a.Want(t, storage.MessageCancelled, storage.StateFailed, payments.StatusFailed, 0)
}

// An invocation that could look at nothing fails, so that its metric shows it.
func TestSweepWhileTheStoreIsDown(t *testing.T) {
	lambdatest.New(t)
	lambdatest.Unreachable(t)
	if did, err := swept(t); err == nil {
		t.Errorf("%+v, want an error", did)
	}
}

// docs/operator.md "SweepSilent": a run counts itself, and one that could look at nothing does not.
func TestSweepCountsItsRuns(t *testing.T) {
	lambdatest.New(t)
	log := lambdatest.Log(t)
	if _, err := swept(t); err != nil {
		t.Error(err)
	}
	if lines := log(); len(lines) != 2 || lines[1].Metrics["sweep.run"] != 1 {
		t.Errorf("%+v, want one run counted", lines)
	}
	lambdatest.Unreachable(t)
	if _, err := swept(t); err == nil {
		t.Error("no error without a store")
	}
	for _, line := range log() {
		if line.Metrics["sweep.run"] != 0 {
			t.Errorf("%+v: counted all the same", line)
		}
	}
}

// A wrapped execution that died is unknown to everybody, without a client: another release's, since this one has none.
func TestSweepParksWhatDied(t *testing.T) {
	s := lambdatest.New(t)
	key := s.Die(t, time.Minute)
	if did, err := swept(t); err != nil || did != (outbox.Report{Records: outbox.Counts{Parked: 1}}) {
		t.Errorf("%+v, %v, want one parked", did, err)
	}
	if state := s.RecordState(t, key); state != storage.StateUnknown {
		t.Errorf("the record is %s", state)
	}
	if did, err := swept(t); err != nil || did != (outbox.Report{}) {
		t.Errorf("again: %+v, %v", did, err)
	}
}

// The runs of a minute have a shard each: together they offer what is due, once, and one of them counts what waits.
func TestSweepOfEachShard(t *testing.T) {
	s := lambdatest.New(t)
	s.AcceptMore(t, 12, time.Minute)
	log := lambdatest.Log(t)
	offered, counted := 0, 0
	for shard := range 8 {
		did, err := swept(t, shard)
		if err != nil || did.Messages != (outbox.Counts{Offered: did.Messages.Offered}) {
			t.Errorf("shard %d: %+v, %v", shard, did, err)
		}
		offered += did.Messages.Offered
		for _, line := range log() {
			if waits, told := line.Metrics["outbox.backlog.due"]; told {
				if counted++; shard != 0 || waits != 12 {
					t.Errorf("shard %d counts %v", shard, waits)
				}
			}
		}
	}
	if sent := s.Queues.WakeUps(); offered != 12 || len(sent) != 12 || counted != 1 {
		t.Errorf("%d offered, %d in the queue, counted %d times", offered, len(sent), counted)
	}
}

// docs/operator.md "SweepSilent": an event that names no shard, or one that does not exist, is an error, and no run without work.
func TestSweepRefusesShardsThatDoNotExist(t *testing.T) {
	s := lambdatest.New(t)
	s.Accept(t, time.Minute)
	for _, shards := range [][]int{{}, {8}, {-1}, {3, 3}} {
		did, err := swept(t, shards...)
		if err == nil || !strings.Contains(err.Error(), "shards") || did != (outbox.Report{}) {
			t.Errorf("%v: %+v, %v", shards, did, err)
		}
	}
	if len(s.Queues.WakeUps()) > 0 {
		t.Error("something was offered")
	}
}

// With WAKE_UPS_MAX the sweep fills the queue from the index, in batches, and reads no message.
func TestSweepFillsTheQueue(t *testing.T) {
	s := lambdatest.New(t)
	t.Setenv("WAKE_UPS_MAX", "1000")
	s.AcceptMore(t, 15, time.Minute)
	a := s.Accept(t, 25*time.Hour) // never begun: the worker will cancel it
	if did, err := swept(t, 0, 1, 2, 3, 4, 5, 6, 7); err != nil || did != (outbox.Report{Messages: outbox.Counts{Offered: 16}}) {
		t.Errorf("%+v, %v, want 16 offered", did, err)
	}
	if sent := s.Queues.WakeUps(); len(sent) != 16 {
		t.Errorf("%d wake-ups", len(sent))
	}
	a.Want(t, storage.MessagePending, storage.StatePending, payments.StatusPending, 0)
}

// collecting opens an account that collects, with a transfer to it that was made so long ago.
func collecting(t *testing.T, s *lambdatest.Stage, ago time.Duration) payments.Table {
	t.Helper()
	s.Account(t, lambdatest.Tenant, "acct_c", 7)
	accounts := payments.Table{Client: s.Client, Name: s.Payments}
	if err := accounts.Collect(t.Context(), lambdatest.Tenant, "acct_c", 1, time.Now()); err != nil {
		t.Fatal(err)
	}
	written, err := payments.Items(s.Payments, 1)(payments.InsertTransfer{Transfer: payments.Transfer{
		Tenant: lambdatest.Tenant, ID: "tr_1", From: "acct_1", To: "acct_c", Amount: 500, Currency: "EUR", CreatedAt: time.Now().Add(-ago), Partition: 1,
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.Put(t, s.Payments, written.Put.Item)
	return accounts
}

// ADR 0047: the run of shard 0 folds, once; the others don't.
func TestSweepFoldsCollectingAccounts(t *testing.T) {
	s := lambdatest.New(t)
	accounts := collecting(t, s, 0)
	for _, run := range []struct {
		shard   int
		balance int64
	}{{1, 7}, {0, 507}, {0, 507}} {
		if _, err := swept(t, run.shard); err != nil {
			t.Error(err)
		}
		if a, err := accounts.Account(t.Context(), lambdatest.Tenant, "acct_c"); err != nil || a.Balance != run.balance {
			t.Errorf("shard %d leaves %+v, %v, want a balance of %d", run.shard, a, err, run.balance)
		}
	}
}

// An account that can't be folded fails the invocation, whose errors have an alarm, and keeps nothing from being swept.
func TestSweepFailsWhereFoldingFails(t *testing.T) {
	s := lambdatest.New(t)
	collecting(t, s, time.Hour)
	s.Put(t, s.Payments, map[string]types.AttributeValue{ // another currency than the transfer's
		"pk": &types.AttributeValueMemberS{Value: "account#" + lambdatest.Tenant + "/acct_c"}, "lh": &types.AttributeValueMemberS{Value: table.Collecting},
		"ca": &types.AttributeValueMemberN{Value: "1"}, "col": &types.AttributeValueMemberN{Value: "1"},
		"tn": &types.AttributeValueMemberS{Value: lambdatest.Tenant}, "id": &types.AttributeValueMemberS{Value: "acct_c"},
		"cur": &types.AttributeValueMemberS{Value: "USD"}, "bal": &types.AttributeValueMemberN{Value: "7"},
	})
	s.Accept(t, time.Minute)
	did, err := swept(t)
	if err == nil || did != (outbox.Report{Messages: outbox.Counts{Offered: 1}}) {
		t.Errorf("%+v, %v, want one offered and an error", did, err)
	}
}

// docs/recovery.md "Collecting accounts": once a loss of data was declared nothing is folded before the account was compared, and the
// invocation fails, whose errors have an alarm.
func TestSweepHoldsFoldingAfterALoss(t *testing.T) {
	s := lambdatest.New(t)
	accounts := collecting(t, s, 0)
	store, err := dynamo.New(s.Client, dynamo.Config{IdempotencyTable: s.Idempotency, OutboxTable: s.Outbox})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.SetRefuseBefore(t.Context(), time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := swept(t, 0); !errors.Is(err, payments.ErrFoldHeld) {
		t.Errorf("%v, want folding to be held", err)
	}
	if a, err := accounts.Account(t.Context(), lambdatest.Tenant, "acct_c"); err != nil || a.Balance != 7 {
		t.Errorf("%+v, %v", a, err)
	}
}

// docs/operator.md "OutboxRedriven, OutboxClosed": the run of the first shard has the metrics of what operators have changed. Where the
// audit log can't be read the invocation fails, and sweeps all the same.
func TestSweepTellsOfChangesByHand(t *testing.T) {
	s := lambdatest.New(t)
	name := s.Outbox + "-audit"
	if err := dynamotest.CreateTable(t.Context(), s.Client, name, schema.Audit()); err != nil {
		t.Fatal(err)
	}
	audit, err := auditlog.New(s.Client, name)
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range []string{"redrive", "close", "resolve"} {
		e := operator.Entry{ID: "au_" + action, At: time.Now(), Actor: "eve", Action: action, Subject: "op_a.1", Reason: "none", State: operator.EntryIntended}
		if err := audit.Begin(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		e.State, e.DoneAt = operator.EntryDone, time.Now()
		if err := audit.End(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	counted := func(shard int) map[string]float64 {
		log, sums := lambdatest.Log(t), map[string]float64{}
		if _, err := swept(t, shard); err != nil {
			t.Error(err)
		}
		for _, line := range log() {
			for name, value := range line.Metrics {
				sums[name] += value
			}
		}
		return sums
	}
	if got := counted(0); got["outbox.redriven"] != 0 || got["outbox.closed"] != 0 {
		t.Errorf("without an audit table: %v", got)
	}
	t.Setenv("AUDIT_TABLE", name)
	if got := counted(1); got["outbox.redriven"] != 0 || got["outbox.closed"] != 0 {
		t.Errorf("another shard: %v", got)
	}
	if got := counted(0); got["outbox.redriven"] != 1 || got["outbox.closed"] != 1 {
		t.Errorf("%v, want one redriven and one closed", got)
	}
	t.Setenv("AUDIT_TABLE", "nowhere")
	s.Accept(t, time.Minute)
	if did, err := swept(t, 0, 1, 2, 3, 4, 5, 6, 7); err == nil || did.Messages.Offered != 1 {
		t.Errorf("%+v, %v, want one offered and an error", did, err)
	}
}
