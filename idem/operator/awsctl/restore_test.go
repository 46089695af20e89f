package awsctl_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

// restorer stands before the emulator and answers what it does not know: restores, backups, and what a table was restored from.
type restorer struct {
	*testing.T
	behind http.Handler
	// make makes a table.
	make func(name string)

	mu sync.Mutex
	// summaries are what the tables were restored from.
	summaries map[string]map[string]any
	// refuses is a table that can't be restored.
	refuses string
	// lost is up to when data was lost before, as the table of records said it at the instant that is restored; the zero time where it
	// said nothing.
	lost time.Time
}

// copied puts into a table of records that was made what it held.
func (r *restorer) copied(client *dynamodb.Client, name string) error {
	if r.lost.IsZero() || !strings.HasSuffix(name, "-idempotency-r1") {
		return nil
	}
	store, err := dynamo.New(client, dynamo.Config{IdempotencyTable: name, OutboxTable: "none"})
	if err == nil {
		_, err = store.SetRefuseBefore(r.Context(), r.lost)
	}
	return err
}

// restores puts a restorer before the deployment's tables.
func (d *deployment) restores() *restorer {
	d.Helper()
	target, err := url.Parse(*d.aws.BaseEndpoint)
	if err != nil {
		d.Fatal(err)
	}
	client := dynamotest.Client(target.String())
	r := &restorer{T: d.T, behind: httputil.NewSingleHostReverseProxy(target), summaries: map[string]map[string]any{}}
	shapes := map[string]schema.Table{
		d.variables[environment.IdempotencyTable]: schema.Idempotency(), d.variables[environment.OutboxTable]: schema.Outbox(), d.variables["ORDERS_TABLE"]: {Key: "id"},
	}
	r.make = func(name string) {
		shape := shapes[strings.TrimSuffix(name, "-r1")]
		shape.TTL = "" // which a restore leaves out
		if err := errors.Join(dynamotest.CreateTable(d.Context(), client, name, shape), r.copied(client, name)); err != nil {
			d.Error(err)
		}
	}
	front := httptest.NewServer(r)
	d.Cleanup(front.Close)
	d.aws.BaseEndpoint = &front.URL
	return r
}

// begun are the tables that were made, and from what.
func (r *restorer) begun() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]string{}
	for name, summary := range r.summaries {
		all[name] = fmt.Sprint(summary["RestoreDateTime"], summary["SourceBackupArn"])
	}
	return all
}

const arn = "arn:aws:dynamodb:us-east-1:000000000000:table/"

// ServeHTTP implements http.Handler.
func (r *restorer) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	var input struct {
		TableName, SourceTableName, TargetTableName, BackupArn string
		RestoreDateTime                                        float64
	}
	_ = json.Unmarshal(body, &input)
	_, operation, _ := strings.Cut(q.Header.Get("X-Amz-Target"), ".")
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	switch operation {
	case "UpdateContinuousBackups":
		_, _ = io.WriteString(w, "{}")
	case "ListBackups":
		names := []string{"nightly", "weekly"}
		var lines []string
		for _, name := range names {
			lines = append(lines, fmt.Sprintf(`{"BackupName":%q,"BackupArn":%q}`, name, arn+input.TableName+"/backup/"+name))
		}
		fmt.Fprintf(w, `{"BackupSummaries":[%s]}`, strings.Join(lines, ","))
	case "RestoreTableToPointInTime":
		r.restore(w, input.SourceTableName, input.TargetTableName, map[string]any{"RestoreDateTime": input.RestoreDateTime, "SourceTableArn": arn + input.SourceTableName})
	case "RestoreTableFromBackup":
		source, _, _ := strings.Cut(strings.TrimPrefix(input.BackupArn, arn), "/")
		r.restore(w, source, input.TargetTableName, map[string]any{"RestoreDateTime": 1.0, "SourceTableArn": arn + source, "SourceBackupArn": input.BackupArn})
	case "DescribeTable":
		r.describe(w, q, body, input.TableName)
	default:
		q.Body = io.NopCloser(bytes.NewReader(body))
		r.behind.ServeHTTP(w, q)
	}
}

func (r *restorer) restore(w io.Writer, source, target string, summary map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if source == r.refuses {
		w.(http.ResponseWriter).WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"com.amazonaws.dynamodb.v20120810#InvalidRestoreTimeException","message":"not restorable to that time"}`)
		return
	}
	r.make(target)
	summary["RestoreInProgress"] = false
	r.summaries[target] = summary
	_, _ = io.WriteString(w, "{}")
}

// describe adds to the emulator's answer what the table was restored from.
func (r *restorer) describe(w http.ResponseWriter, q *http.Request, body []byte, name string) {
	q.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	r.behind.ServeHTTP(answer, q)
	var described map[string]any
	_ = json.Unmarshal(answer.Body.Bytes(), &described)
	r.mu.Lock()
	if table, ok := described["Table"].(map[string]any); ok && r.summaries[name] != nil {
		table["RestoreSummary"] = r.summaries[name]
	}
	r.mu.Unlock()
	text, _ := json.Marshal(described)
	w.WriteHeader(answer.Code)
	_, _ = w.Write(text)
}

// Tables that are restored together hold one instant: a restore that goes on where another one ended asks for the same source, or
// begins nothing.
func TestARestoreThatIsRepeatedHasOneSource(t *testing.T) {
	d := deploy(t)
	r := d.restores()
	var (
		idempotency, outbox, orders = d.variables[environment.IdempotencyTable] + "-r1", d.variables[environment.OutboxTable] + "-r1", d.variables["ORDERS_TABLE"] + "-r1"
		first, second               = "2026-11-21T11:30:00Z", "2026-11-21T11:25:00Z"
		restore                     = func(source ...string) []string {
			return append([]string{"tables", "restore", "--suffix=-r1", "--reason", "ticket 17", "--actor", "ada"}, source...)
		}
		stamp = func(text string) string {
			at, _ := time.Parse(time.RFC3339, text)
			return fmt.Sprint(float64(at.Unix()), nil)
		}
		refused = func(source ...string) {
			t.Helper()
			before := r.begun()
			for _, write := range [][]string{nil, {"--write"}} {
				_, errs := d.exits(idemctl.ExitRefused, append(restore(source...), write...)...)
				if !strings.Contains(errs, idempotency) || !strings.Contains(errs, "--suffix") {
					t.Errorf("%v: %s", source, errs)
				}
			}
			if now := r.begun(); !maps.Equal(now, before) {
				t.Errorf("%v: begun %v, before %v", source, now, before)
			}
		}
	)
	r.refuses = d.variables[environment.OutboxTable] // one table can't be restored to an instant to which another could
	d.exits(idemctl.ExitTrouble, append(restore("--to", first), "--write")...)
	if got := r.begun(); !maps.Equal(got, map[string]string{idempotency: stamp(first)}) {
		t.Fatalf("begun %v", got)
	}
	r.refuses = ""
	refused("--to", second)
	refused("--backup", "nightly")
	d.exits(idemctl.ExitOK, restore("--to", first)...)
	for range 2 { // the rest is begun, and then waited for
		d.exits(idemctl.ExitOK, append(restore("--to", "2026-11-21T12:30:00.7+01:00"), "--write")...) // to the second, as AWS restores
	}
	if got := r.begun(); !maps.Equal(got, map[string]string{idempotency: stamp(first), outbox: stamp(first), orders: stamp(first)}) {
		t.Errorf("begun %v", got)
	}
	refused("--to", second)
}

// docs/recovery.md "Compare the balances": what is compared after a restore may have expired since the instant that was restored. So native TTL
// removes nothing before a person has the tables prepared.
func TestARestoreLeavesTimeToLiveOff(t *testing.T) {
	d := deploy(t)
	d.restores()
	change := func(args ...string) []string {
		return append(args, "--suffix=-r1", "--reason", "ticket 17", "--actor", "ada", "--write")
	}
	restore := change("tables", "restore", "--backup", "nightly")
	d.exits(idemctl.ExitOK, restore...)
	out, _ := d.exits(idemctl.ExitRefused, "tables", "check", "--suffix=-r1")
	if strings.Count(out, "its time to live is off, must be on") != 2 || strings.Count(out, "as it must be") != 1 {
		t.Errorf("restored: %s", out)
	}
	d.exits(idemctl.ExitOK, restore...)
	d.exits(idemctl.ExitOK, change("tables", "prepare")...)
	d.exits(idemctl.ExitOK, "tables", "check", "--suffix=-r1")
	d.exits(idemctl.ExitOK, restore...) // what is on stays on
	d.exits(idemctl.ExitOK, "tables", "check", "--suffix=-r1")
}

// The row that says up to when data was lost is restored with everything else, and speaks of an earlier loss. Who forgets to date this one
// must not execute everything twice that it has taken.
func TestARestoreForgetsAnEarlierLoss(t *testing.T) { datesItsLossAnew(t, time.Now().Add(-time.Hour)) }

// A restore always loses something, whether the deployment says so or not.
func TestARestoreIsALossOfItsOwn(t *testing.T) { datesItsLossAnew(t, time.Time{}) }

// datesItsLossAnew restores tables that said up to when data was lost before.
func datesItsLossAnew(t *testing.T, before time.Time) {
	t.Helper()
	d := deploy(t)
	r := d.restores()
	r.lost = before
	change := func(args ...string) []string {
		return append(args, "--reason", "ticket 17", "--actor", "ada", "--write")
	}
	restore := change("tables", "restore", "--backup", "nightly", "--suffix=-r1")
	if out, _ := d.exits(idemctl.ExitOK, restore...); !strings.Contains(out, "nothing executes on them before refuse-before is set") {
		t.Error(out)
	}
	there := d.variables[environment.IdempotencyTable]
	d.variables[environment.IdempotencyTable] = there + "-r1"
	if loss := d.loss(); !loss.NotDated {
		t.Fatalf("%+v, want that nobody has said it", loss)
	}
	d.exits(idemctl.ExitRefused, change("sweep")...)
	cut := time.Now().UTC().Truncate(time.Millisecond)
	d.exits(idemctl.ExitOK, change("refuse-before", "set", cut.Format(time.RFC3339Nano))...)
	d.variables[environment.IdempotencyTable] = there
	d.exits(idemctl.ExitOK, restore...) // it may be repeated
	d.exits(idemctl.ExitOK, change("tables", "prepare", "--suffix=-r1")...)
	d.variables[environment.IdempotencyTable] = there + "-r1"
	if loss := d.loss(); !loss.RefuseBefore.Equal(cut) {
		t.Errorf("%+v, want what was set in the restored table, %v", loss, cut)
	}
}

// Copies of AWS Backup, and tables that were restored in the console, meet `tables prepare` alone: without it they have no stream.
func TestARestoreOfAnothersIsUndatedWhenItIsPrepared(t *testing.T) {
	d := deploy(t)
	r := d.restores()
	prepare := func() string {
		out, _ := d.exits(idemctl.ExitOK, "tables", "prepare", "--reason", "ticket 17", "--actor", "ada", "--write")
		return out
	}
	if out := prepare(); strings.Contains(out, "refuse-before") || d.loss() != (operator.Loss{}) {
		t.Errorf("nothing was lost: %s%+v", out, d.loss())
	}
	r.lost = time.Now().Add(-time.Hour)
	for _, variable := range []string{environment.IdempotencyTable, environment.OutboxTable, "ORDERS_TABLE"} {
		r.make(d.variables[variable] + "-r1")
		d.variables[variable] += "-r1"
	}
	for range 2 { // until somebody says it
		if out := prepare(); !strings.Contains(out, "before refuse-before is set") || !d.loss().NotDated {
			t.Errorf("copied from before: %s%+v", out, d.loss())
		}
	}
}

// loss is what `refuse-before` answers.
func (d *deployment) loss() (loss operator.Loss) {
	d.Helper()
	out, _ := d.exits(idemctl.ExitOK, "--output", "json", "refuse-before")
	if err := json.Unmarshal([]byte(out), &loss); err != nil {
		d.Fatal(err)
	}
	return loss
}

// A name of a backup is one of each table, and another one's is another source; so is a table that nobody has restored.
func TestARestoreOfABackupThatIsRepeatedHasOneSource(t *testing.T) {
	d := deploy(t)
	r := d.restores()
	restore := func(want int, source, value string) string {
		t.Helper()
		_, errs := d.exits(want, "tables", "restore", "--suffix=-r1", "--reason", "ticket 17", "--actor", "ada", "--write", source, value)
		return errs
	}
	for range 2 {
		restore(idemctl.ExitOK, "--backup", "nightly")
	}
	before := r.begun()
	if arns := slices.Collect(maps.Values(before)); len(arns) != 3 || strings.Count(strings.Join(arns, " "), "/backup/nightly") != 3 {
		t.Fatalf("begun %v", before)
	}
	restore(idemctl.ExitRefused, "--backup", "weekly")
	restore(idemctl.ExitRefused, "--to", "2026-11-21T11:30:00Z")
	if now := r.begun(); !maps.Equal(now, before) {
		t.Errorf("begun %v, before %v", now, before)
	}
	r.mu.Lock()
	delete(r.summaries, d.variables[environment.OutboxTable]+"-r1")
	r.mu.Unlock()
	if errs := restore(idemctl.ExitRefused, "--backup", "nightly"); !strings.Contains(errs, d.variables[environment.OutboxTable]+"-r1") {
		t.Error(errs)
	}
}

// A table that is gone is restored from its backup: the command needs the audit table alone.
func TestARestoreNeedsNoTableThatIsGone(t *testing.T) {
	d := deploy(t)
	gone := d.variables[environment.IdempotencyTable]
	if _, err := dynamotest.Client(*d.aws.BaseEndpoint).DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &gone}); err != nil {
		t.Fatal(err)
	}
	d.restores()
	d.exits(idemctl.ExitOK, "tables", "restore", "--suffix=-r1", "--reason", "ticket 17", "--actor", "ada", "--write", "--backup", "nightly")
}
