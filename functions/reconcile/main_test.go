package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/lambdaapp"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/provider"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// reconciled runs the function as its environment makes it; without shards it looks into all.
func reconciled(t *testing.T, shards ...int) (outbox.Report, error) {
	t.Helper()
	cfg, err := config.Read[config.Worker]()
	if err != nil {
		t.Fatal(err)
	}
	run, err := handler(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return run(t.Context(), lambdaapp.Run{Shards: shards})
}

func want(t *testing.T, want outbox.Counts) {
	t.Helper()
	if did, err := reconciled(t); err != nil || did != (outbox.Report{Messages: want}) {
		t.Errorf("%+v, %v, want %+v", did, err, want)
	}
}

// What the provider has is settled as the worker would have, and only once (docs/design.md "Sweep, reconciler, webhook
// and operator").
func TestReconcileSettlesWhatTheProviderHas(t *testing.T) {
	s := lambdatest.New(t)
	a := s.Accept(t, time.Hour)
	a.Park(t)
	a.Charge(t)
	want(t, outbox.Counts{Settled: 1})
	a.Want(t, storage.MessageDelivered, storage.StateCompleted, payments.StatusSucceeded, 1)
	want(t, outbox.Counts{})
}

// What provably never happened is offered again with the same key; the reconciler itself charges nobody.
func TestReconcileOffersWhatIsProvenAbsent(t *testing.T) {
	s := lambdatest.New(t)
	a := s.Accept(t, time.Hour)
	a.Park(t)
	want(t, outbox.Counts{Offered: 1})
	a.Want(t, storage.MessagePending, storage.StatePending, payments.StatusPending, 0)
	if sent := s.Queues.WakeUps(); len(sent) != 1 || sent[0].Body != `{"message":"`+string(a.Message.ID)+`"}` {
		t.Errorf("queue of wake-ups %+v", sent)
	}
}

// LONGEST_REQUEST, LISTING_DELAY and FREEZE_ALLOWANCE reach the topics: before they are over, absence proves nothing.
func TestReconcileWaitsForProofOfAbsence(t *testing.T) {
	for name, value := range map[string]string{"LONGEST_REQUEST": "59m", "LISTING_DELAY": "59m", "FREEZE_ALLOWANCE": "59m"} {
		t.Run(name, func(t *testing.T) {
			s := lambdatest.New(t)
			t.Setenv(name, value)
			a := s.Accept(t, 58*time.Minute)
			a.Park(t)
			want(t, outbox.Counts{Undecided: 1})
			a.Want(t, storage.MessageUnknown, storage.StatePending, payments.StatusPending, 0)
		})
	}
}

// A provider that can't be asked leaves the message as it is.
func TestReconcileWhileTheProviderIsDown(t *testing.T) {
	s := lambdatest.New(t)
	a := s.Accept(t, time.Hour)
	a.Park(t)
	a.Charge(t)
	if err := s.Provider.Faults(t.Context(), provider.Rule{On: provider.List, Fault: provider.ErrorBefore}); err != nil {
		t.Fatal(err)
	}
	want(t, outbox.Counts{Undecided: 1})
	a.Want(t, storage.MessageUnknown, storage.StatePending, payments.StatusPending, 1)
}

// An invocation that could look at nothing fails, so that its metric shows it.
func TestReconcileWhileTheStoreIsDown(t *testing.T) {
	lambdatest.New(t)
	lambdatest.Unreachable(t)
	if did, err := reconciled(t); err == nil {
		t.Errorf("%+v, want an error", did)
	}
}

// A wrapped operation without a Probe stays unknown, and a person is told.
func TestReconcileLeavesWhatNobodyCanBeAskedAbout(t *testing.T) {
	s := lambdatest.New(t)
	key := s.Unknown(t, time.Hour)
	if did, err := reconciled(t); err != nil || did != (outbox.Report{Records: outbox.Counts{Unasked: 1}}) {
		t.Errorf("%+v, %v, want one unasked", did, err)
	}
	if state := s.RecordState(t, key); state != storage.StateUnknown {
		t.Errorf("the record is %s", state)
	}
}

// docs/operator.md "ReconcileSilent": a run counts itself, and one that could look at nothing does not.
func TestReconcileCountsItsRuns(t *testing.T) {
	lambdatest.New(t)
	log := lambdatest.Log(t)
	if _, err := reconciled(t); err != nil {
		t.Error(err)
	}
	if lines := log(); len(lines) != 1 || lines[0].Metrics["reconcile.run"] != 1 {
		t.Errorf("%+v, want one run counted", lines)
	}
	lambdatest.Unreachable(t)
	if _, err := reconciled(t); err == nil {
		t.Error("no error without a store")
	}
	for _, line := range log() {
		if line.Metrics["reconcile.run"] != 0 {
			t.Errorf("%+v: counted all the same", line)
		}
	}
}

// The runs of a minute have a shard each, and one that does not exist is an error.
func TestReconcileOfEachShard(t *testing.T) {
	s := lambdatest.New(t)
	a := s.Accept(t, time.Hour)
	a.Park(t)
	a.Charge(t)
	settled := 0
	for shard := range 8 {
		did, err := reconciled(t, shard)
		if err != nil || did.Messages != (outbox.Counts{Settled: did.Messages.Settled}) {
			t.Errorf("shard %d: %+v, %v", shard, did, err)
		}
		settled += did.Messages.Settled
	}
	if settled != 1 {
		t.Errorf("%d settled, want one", settled)
	}
	for _, shards := range [][]int{{}, {8}, {-1}, {3, 3}} {
		if did, err := reconciled(t, shards...); err == nil || !strings.Contains(err.Error(), "shards") || did != (outbox.Report{}) {
			t.Errorf("%v: %+v, %v", shards, did, err)
		}
	}
}
