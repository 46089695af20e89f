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

// What writes records its number, and what lists refuses a lower one: here the variable was lowered, or is another function's.
func TestWhoListsRefusesFewerShardsThanWhoWritesHas(t *testing.T) {
	lambdatest.New(t)
	writer, log := parts(t, "8")
	writer.RecordShards(t.Context())
	if log.Len() > 0 {
		t.Errorf("logged %s", log)
	}
	lister, _ := parts(t, "4")
	err := lister.CheckShards(t.Context())
	if refused, ok := errors.AsType[*idem.ConfigError](err); !ok || refused.Field != "Config.Shards" || refused.Value != 4 || !strings.Contains(err.Error(), "OUTBOX_SHARDS") {
		t.Errorf("4 after 8: %v", err)
	}
	for _, shards := range []string{"8", "29"} {
		lister, _ := parts(t, shards)
		if err := lister.CheckShards(t.Context()); err != nil {
			t.Errorf("%s after 8: %v", shards, err)
		}
	}
}

// An operator's process has the functions' number: it writes none, also where it lists, and ends where it can't know.
func TestAnOperatorHasTheFunctionsShards(t *testing.T) {
	stage := lambdatest.New(t)
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
	t.Setenv("IDEMPOTENCY_TABLE", stage.Idempotency)
	lister, _ := parts(t, "8")
	if err := lister.CheckShards(t.Context()); err != nil {
		t.Errorf("a function starts no more: %v", err)
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
	if err := writer.CheckShards(t.Context()); err != nil {
		t.Errorf("a function starts no more: %v", err)
	}
}

// While a deployment raises the number, instances of before start still: what they write is listed.
func TestWhoWritesGoesOnUnderFewerShardsAndSaysSo(t *testing.T) {
	lambdatest.New(t)
	raised, _ := parts(t, "8")
	raised.RecordShards(t.Context())
	writer, log := parts(t, "1")
	writer.RecordShards(t.Context())
	if !strings.Contains(log.String(), "outbox.shards_not_recorded") || !strings.Contains(log.String(), "must be at least 8") {
		t.Errorf("logged %q", log)
	}
}

// Without the table nobody knows what rows were written with. What lists starts, and lists nothing before it does know.
func TestNothingIsListedBeforeTheNumberOfShardsIsKnown(t *testing.T) {
	stage := lambdatest.New(t)
	there := os.Getenv("IDEMPOTENCY_TABLE")
	t.Setenv("IDEMPOTENCY_TABLE", "not-there")
	made, log := parts(t, "8")
	if err := made.CheckShards(t.Context()); err != nil {
		t.Errorf("start: %v", err)
	}
	list := func(p delivery.Parts) (error, error) {
		_, _, messages := p.Store.QueuedMessages(t.Context(), storage.QueueOffer, 0, time.Now(), 1, "")
		_, _, records := p.Store.QueuedRecords(t.Context(), storage.QueueUnknown, 0, time.Now(), 1, "")
		return messages, records
	}
	if messages, records := list(made); messages == nil || records == nil {
		t.Errorf("listed: %v, %v", messages, records)
	}
	made.RecordShards(t.Context())
	if !strings.Contains(log.String(), "outbox.shards_not_recorded") {
		t.Errorf("logged %q", log)
	}
	t.Setenv("IDEMPOTENCY_TABLE", there)
	late, _ := parts(t, "4") // it did not ask at its start
	higher, _ := parts(t, "8")
	if messages, records := list(higher); messages != nil || records != nil {
		t.Errorf("8 shards: %v, %v", messages, records)
	}
	if messages, records := list(late); !errors.As(messages, new(*idem.ConfigError)) || !errors.As(records, new(*idem.ConfigError)) {
		t.Errorf("4 shards after 8: %v, %v", messages, records)
	}
	if items := stage.Items(t, stage.Idempotency); len(items) != 0 {
		t.Errorf("%v", items)
	}
}
