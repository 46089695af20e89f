package delivery_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/delivery"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/storage"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// parts are a function's, by the environment, and what it logs.
func parts(t *testing.T, shards string) (delivery.Parts, *bytes.Buffer) {
	t.Helper()
	t.Setenv("OUTBOX_SHARDS", shards)
	t.Setenv("LOG_LEVEL", "WARN")
	cfg, err := config.Read[config.Worker]()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cfg.Out = &log
	made, err := delivery.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return made, &log
}

// What writes records its number, and what lists looks into as many, also with a lower one: a release that had raised it was gone back
// from. Its runs are called by their own number, as the schedule of their release names them, and together miss nothing.
func TestWhoListsLooksIntoAsManyShardsAsWhoWritesHas(t *testing.T) {
	stage := lambdatest.New(t)
	lister, _ := parts(t, "8")
	runner, err := lister.Runner()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runner.Sweep(t.Context()); err != nil { // it is warm, and has seen eight
		t.Fatal(err)
	}
	writer, log := parts(t, "16")
	writer.RecordShards(t.Context())
	if log.Len() > 0 {
		t.Errorf("logged %s", log)
	}
	stage.AcceptMore(t, 24, time.Minute) // by the environment, with sixteen
	upper := 0
	for shard := 8; shard < 16; shard++ {
		refs, _, err := writer.Store.QueuedMessages(t.Context(), storage.QueueOffer, shard, time.Now(), 100, "")
		if err != nil {
			t.Fatal(err)
		}
		upper += len(refs)
	}
	offered := 0
	for shard := range 8 {
		did, err := runner.Sweep(t.Context(), shard)
		if err != nil {
			t.Fatal(err)
		}
		offered += did.Messages.Offered
	}
	if offered != 24 || upper == 0 {
		t.Errorf("%d of 24 offered, of which %d lie in the upper shards", offered, upper)
	}
}

// An operator's process has the functions' number: it writes none, also where it lists, and ends where it can't know.
func TestAnOperatorHasTheFunctionsShards(t *testing.T) {
	lambdatest.New(t)
	writer, _ := parts(t, "8")
	writer.RecordShards(t.Context())
	for _, shards := range []string{"4", "29"} {
		operator, _ := parts(t, shards)
		err := operator.SameShards(t.Context())
		if refused, ok := errors.AsType[*idem.ConfigError](err); !ok || refused.Rule != "must be 8, the number that rows are written with" || !strings.Contains(err.Error(), "OUTBOX_SHARDS") {
			t.Errorf("%s: %v", shards, err)
		}
	}
	operator, _ := parts(t, "8")
	if err := operator.SameShards(t.Context()); err != nil {
		t.Error(err)
	}
	t.Setenv("IDEMPOTENCY_TABLE", "not-there")
	lost, _ := parts(t, "8")
	if err := lost.SameShards(t.Context()); err == nil || errors.As(err, new(*idem.ConfigError)) {
		t.Errorf("without the table: %v", err)
	}
}

// Without a number that is kept, an operator's list keeps none.
func TestAnOperatorsListKeepsNoNumberOfShards(t *testing.T) {
	lambdatest.New(t)
	operator, _ := parts(t, "29")
	if err := operator.SameShards(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := operator.Store.QueuedMessages(t.Context(), storage.QueueDead, 0, time.Now(), 1, ""); err != nil {
		t.Fatal(err)
	}
	writer, _ := parts(t, "8")
	writer.RecordShards(t.Context())
	if err := writer.SameShards(t.Context()); err != nil {
		t.Errorf("another number than the functions' is kept: %v", err)
	}
}

// While a deployment raises the number, instances of before start still: what they write is listed, and the number stays.
func TestWhoWritesGoesOnUnderFewerShards(t *testing.T) {
	lambdatest.New(t)
	raised, _ := parts(t, "8")
	raised.RecordShards(t.Context())
	writer, log := parts(t, "1")
	writer.RecordShards(t.Context())
	if log.Len() > 0 {
		t.Errorf("logged %q", log)
	}
	if err := raised.SameShards(t.Context()); err != nil {
		t.Error(err)
	}
}

// Without the table nobody knows what rows were written with: a run that can't ask is an error, and looks at nothing.
func TestNothingIsListedBeforeTheNumberOfShardsIsKnown(t *testing.T) {
	stage := lambdatest.New(t)
	stage.AcceptMore(t, 1, time.Minute)
	t.Setenv("IDEMPOTENCY_TABLE", "not-there")
	made, log := parts(t, "8")
	runner, err := made.Runner()
	if err != nil {
		t.Fatal(err)
	}
	if did, err := runner.Sweep(t.Context()); err == nil || did.Messages.Offered > 0 {
		t.Errorf("%+v, %v", did, err)
	}
	made.RecordShards(t.Context())
	if !strings.Contains(log.String(), "outbox.shards_not_recorded") {
		t.Errorf("logged %q", log)
	}
}
