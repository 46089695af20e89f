package delivery_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Whoever deploys after a loss and forgets refuse-before has nothing executed, instead of everything twice.
func TestAfterALossNothingExecutesBeforeTheRowIsSet(t *testing.T) {
	lambdatest.New(t)
	whole, _ := parts(t, "8")
	if at, err := whole.Store.RefuseBefore(t.Context()); err != nil || !at.IsZero() {
		t.Errorf("nothing was lost: %v, %v", at, err)
	}
	t.Setenv("LOST_RECORDS", "true")
	lost, _ := parts(t, "8")
	if at, err := lost.Store.RefuseBefore(t.Context()); err == nil || !strings.Contains(err.Error(), "refuse-before set") {
		t.Errorf("no row: %v, %v", at, err)
	}
	cut := time.Now().UTC().Truncate(time.Millisecond)
	if _, err := whole.Store.SetRefuseBefore(t.Context(), cut); err != nil {
		t.Fatal(err)
	}
	if at, err := lost.Store.RefuseBefore(t.Context()); err != nil || !at.Equal(cut) {
		t.Errorf("the row: %v, %v", at, err)
	}
}

// Restored tables keep no instant of an earlier loss (idemctl tables restore). Without one nothing executes on them, whatever the deployment
// says, before somebody says up to when this loss reaches.
func TestOnRestoredTablesNothingExecutesBeforeTheInstantIsSet(t *testing.T) {
	stage := lambdatest.New(t)
	stage.Put(t, stage.Idempotency, map[string]types.AttributeValue{schema.RecordKey: &types.AttributeValueMemberS{Value: schema.LossKey}})
	for _, records := range []string{"false", "true"} {
		t.Setenv("LOST_RECORDS", records)
		made, _ := parts(t, "8")
		if at, err := made.Store.RefuseBefore(t.Context()); !errors.Is(err, storage.ErrLossNotDated) {
			t.Errorf("LOST_RECORDS=%s: %v, %v", records, at, err)
		}
	}
	made, _ := parts(t, "8")
	cut := time.Now().UTC().Truncate(time.Millisecond)
	if _, err := made.Store.SetRefuseBefore(t.Context(), cut); err != nil {
		t.Fatal(err)
	}
	if at, err := made.Store.RefuseBefore(t.Context()); err != nil || !at.Equal(cut) {
		t.Errorf("%v, %v", at, err)
	}
}

// Imported tables are looked at by nobody before: what was restored comes without time to live and stream.
func TestImportedTablesAreCheckedAtTheStart(t *testing.T) {
	stage := lambdatest.New(t)
	restored := stage.Outbox + "-restored"
	if err := dynamotest.CreateTable(t.Context(), stage.Client, restored, schema.Table{Key: schema.MessageID, Index: schema.Outbox().Index}); err != nil {
		t.Fatal(err)
	}
	check := func() error {
		t.Helper()
		made, _ := parts(t, "8")
		cfg, err := config.Read[config.Worker]()
		if err != nil {
			t.Fatal(err)
		}
		return made.CheckTables(t.Context(), cfg.Tables)
	}
	there := os.Getenv("OUTBOX_TABLE")
	t.Setenv("OUTBOX_TABLE", restored)
	if err := check(); err != nil {
		t.Errorf("tables of the stack's own are looked at: %v", err)
	}
	t.Setenv("IMPORTED_TABLES", "true")
	err := check()
	if !errors.As(err, new(*dynamo.TableError)) || !strings.Contains(err.Error(), "OUTBOX_TABLE") || !strings.Contains(err.Error(), "its stream is off, must be NEW_IMAGE") {
		t.Errorf("a restored table: %v", err)
	}
	t.Setenv("OUTBOX_TABLE", there)
	if err := check(); err != nil {
		t.Errorf("whole tables: %v", err)
	}
	t.Setenv("OUTBOX_TABLE", "not-there") // can't be asked: the functions say so when they work
	if err := check(); err != nil {
		t.Errorf("a table that can't be asked: %v", err)
	}
}
