package awsctl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/lambdaapp"
	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/awsctl"
	"github.com/idem-go/idem-aws/idem/operator/console"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// deployment is an application of package lambdaapp, and its operator before it.
type deployment struct {
	*testing.T
	aws       aws.Config
	variables map[string]string
	app       idemctl.App
}

func deploy(t *testing.T) *deployment {
	t.Helper()
	url := dynamotest.Endpoint(t, dynamotest.Dynoxide)
	client, prefix := dynamotest.Client(url), strings.ToLower(t.Name())
	tables, err := dynamotest.CreateTables(t.Context(), client, prefix)
	err = errors.Join(err, dynamotest.CreateTable(t.Context(), client, prefix+"-audit", schema.Audit()), dynamotest.CreateTable(t.Context(), client, prefix+"-orders", schema.Table{Key: "id"}))
	if err != nil {
		t.Fatal(err)
	}
	return &deployment{
		T:   t,
		aws: aws.Config{Region: "us-east-1", BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")},
		variables: map[string]string{
			environment.IdempotencyTable: tables.Idempotency, environment.OutboxTable: tables.Outbox, environment.OutboxShards: "4",
			environment.AuditTable: prefix + "-audit", "ORDERS_TABLE": prefix + "-orders",
			environment.WakeUpQueueURL: "http://127.0.0.1:9/wake-ups", environment.DeadLetterQueueURL: "http://127.0.0.1:9/dead-letters",
		},
	}
}

// command is the deployment's idemctl.
func (d *deployment) command() idemctl.App {
	return awsctl.NewLambda(awsctl.Lambda{
		Application: func(context.Context) (lambdaapp.Config, error) {
			return lambdaapp.Config{AWS: d.aws, Getenv: func(name string) string { return d.variables[name] }}, nil
		},
		Tables: []awsctl.OwnTable{{Role: "orders", Variable: "ORDERS_TABLE", Shape: schema.Table{Key: "id"}}},
		App:    d.app,
	})
}

// exits runs the command as a shell does.
func (d *deployment) exits(want int, args ...string) (stdout, stderr string) {
	d.Helper()
	got, stdout, stderr := d.run(args...)
	if got != want {
		d.Fatalf("idemctl %q exits with %d, want %d\n%s%s", args, got, want, stdout, stderr)
	}
	return stdout, stderr
}

func (d *deployment) run(args ...string) (code int, stdout, stderr string) {
	var out, errs strings.Builder
	code = idemctl.Run(d.Context(), d.command(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// The variables of the functions are enough, with the audit table's: an operator's machine is no function, and has no time-out.
func TestTheFunctionsVariablesAreEnough(t *testing.T) {
	d := deploy(t)
	for _, args := range [][]string{{"list", "dead"}, {"audit"}, {"refuse-before"}} {
		d.exits(idemctl.ExitOK, args...)
	}
	d.exits(idemctl.ExitOK, "refuse-before", "set", time.Now().Add(-time.Hour).Format(time.RFC3339), "--reason", "ticket 17", "--actor", "ada", "--write")
	if out, _ := d.exits(idemctl.ExitOK, "audit"); !strings.Contains(out, "ada") || !strings.Contains(out, "ticket 17") {
		t.Errorf("the audit log: %s", out)
	}
	out, _ := d.exits(idemctl.ExitOK, "tables", "check")
	if strings.Count(out, "as it must be") != 3 || !strings.Contains(out, `"audit":"`+d.variables[environment.AuditTable]+`"`) {
		t.Errorf("the tables: %s", out)
	}
	d.exits(idemctl.ExitUsage, "keys", "check") // nothing is encrypted: there is no such command
}

// An application that can't read its secret has trouble: no variable mends that, and the advice is by what AWS answered.
func TestASecretThatCannotBeReadIsTrouble(t *testing.T) {
	answered := func(code string) error {
		return &smithy.OperationError{ServiceID: "Secrets Manager", OperationName: "GetSecretValue", Err: &smithy.GenericAPIError{Code: code, Message: "no"}}
	}
	for name, c := range map[string]struct {
		err  error
		exit int
		do   string
	}{
		"signed out":     {answered("ExpiredTokenException"), idemctl.ExitTrouble, "Sign in again"},
		"not allowed":    {answered("AccessDeniedException"), idemctl.ExitTrouble, "may not do this"},
		"not there":      {answered("ResourceNotFoundException"), idemctl.ExitTrouble, "no such table, queue or secret"},
		"out of reach":   {&smithy.OperationError{ServiceID: "Secrets Manager", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}, idemctl.ExitTrouble, "Check the network"},
		"a bad variable": {errors.New("ORDERS_TABLE must be set"), idemctl.ExitUsage, "Set the variables"},
	} {
		app := awsctl.NewLambda(awsctl.Lambda{Application: func(context.Context) (lambdaapp.Config, error) {
			return lambdaapp.Config{}, fmt.Errorf("configuration: SCOPE_SECRET_ID = %q: %w", "shop/scope", c.err)
		}})
		for _, args := range [][]string{{"list", "dead"}, {"tables", "check"}, {"console"}} {
			var errs strings.Builder
			if code := idemctl.Run(t.Context(), app, args, io.Discard, &errs); code != c.exit || !strings.Contains(errs.String(), c.do) {
				t.Errorf("%s: idemctl %q exits with %d: %s\nwant %d and %q", name, args, code, errs.String(), c.exit, c.do)
			}
		}
	}
}

// A command that needs the desk asks the application once what it is made of: it may read its secrets each time.
func TestADeskAsksItsApplicationOnce(t *testing.T) {
	d, asked := deploy(t), 0
	app := awsctl.NewLambda(awsctl.Lambda{Application: func(context.Context) (lambdaapp.Config, error) {
		asked++
		return lambdaapp.Config{AWS: d.aws, Getenv: func(name string) string { return d.variables[name] }}, nil
	}})
	if code := idemctl.Run(t.Context(), app, []string{"list", "dead"}, io.Discard, io.Discard); code != idemctl.ExitOK || asked != 1 {
		t.Errorf("exit code %d, and it was asked %d times", code, asked)
	}
}

// dated answers as from another time.
type dated struct{ by time.Duration }

func (d dated) Do(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultClient.Do(r)
	if err == nil {
		answer.Header.Set("Date", time.Now().Add(d.by).UTC().Format(http.TimeFormat))
	}
	return answer, err
}

// A laptop whose clock is off is told so, and changes nothing: the SDK corrects its signatures' time without a word.
func TestALaptopWhoseClockIsOffChangesNothing(t *testing.T) {
	d := deploy(t)
	at := time.Now().Add(-time.Hour).Format(time.RFC3339)
	set := []string{"refuse-before", "set", at, "--reason", "ticket 17", "--actor", "ada", "--write"}
	for by, way := range map[time.Duration]string{-4 * time.Minute: "ahead of", 4 * time.Minute: "behind"} {
		d.aws.HTTPClient = dated{by}
		if _, errs := d.exits(idemctl.ExitRefused, set...); !strings.Contains(errs, way+" the store's") || !strings.Contains(errs, "Set this machine's clock") {
			t.Errorf("by %v: %s", by, errs)
		}
		d.exits(idemctl.ExitOK, "list", "dead")
	}
	d.aws.HTTPClient = dated{}
	d.exits(idemctl.ExitOK, set...)
}

// lagging answers as from another time. The first answers to who asks for the time were written by `lag` before they come.
type lagging struct {
	by, lag time.Duration
	late    int
	// came is when the last of these answers did.
	came time.Time
}

func (l *lagging) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if l.late == 0 || !bytes.Contains(body, []byte(`"clock"`)) {
		return dated{l.by}.Do(r)
	}
	l.late--
	time.Sleep(600 * time.Millisecond) // which stands for the whole of lag
	defer func() { l.came = time.Now() }()
	return dated{l.by - l.lag}.Do(r)
}

// An answer that comes late makes a clock look ahead by as much: one that is right is not refused for that, and one that is behind does
// not pass for right. A command that stood after the last late answer, so that the next one may have come late as well, is run again.
func TestAnAnswerThatComesLateDoesNotTellTheTime(t *testing.T) {
	d := deploy(t)
	for name, c := range map[string]struct {
		transport lagging
		want      int
	}{
		"the clock is right":                       {lagging{late: 2}, idemctl.ExitOK},
		"the clock is behind by as much":           {lagging{by: 10 * time.Second, late: 1}, idemctl.ExitRefused},
		"the clock is ahead, and all answers late": {lagging{by: -10 * time.Second, late: 9}, idemctl.ExitRefused},
	} {
		c.transport.lag = 10 * time.Second
		for tries := 1; ; tries++ {
			wire := c.transport
			d.aws.HTTPClient = &wire
			got, _, errs := d.run("refuse-before", "set", time.Now().Add(-time.Hour).Format(time.RFC3339), "--reason", "ticket 17", "--actor", "ada", "--write")
			if got == c.want {
				break
			}
			if stood := time.Since(wire.came); stood < 500*time.Millisecond || tries == 20 {
				t.Errorf("%s: exits with %d, want %d, %v after the last late answer: %s", name, got, c.want, stood, errs)
				break
			}
		}
	}
}

// Each variable that is wrong is named, and exits as a mistake of the command line.
func TestWrongVariablesAreNamed(t *testing.T) {
	whole := deploy(t)
	for variable, values := range map[string][]string{
		environment.IdempotencyTable: {""}, environment.OutboxTable: {""}, environment.AuditTable: {""}, "ORDERS_TABLE": {""},
		environment.WakeUpQueueURL: {""}, environment.DeadLetterQueueURL: {""}, environment.OutboxShards: {"", "many", "257"},
	} {
		for _, value := range values {
			d := *whole
			d.variables = maps.Clone(whole.variables)
			d.variables[variable] = value
			if _, errs := d.exits(idemctl.ExitUsage, "list", "dead"); !strings.Contains(errs, variable) && !strings.Contains(errs, "Config.Shards") {
				t.Errorf("%s = %q: %s", variable, value, errs)
			}
		}
	}
}

// An operator with fewer shards than rows were written with would see some of them only, and what one with more writes the functions would
// not see. Neither changes the number, by which sweep and reconciler look.
func TestAnOperatorHasTheFunctionsShards(t *testing.T) {
	d := deploy(t)
	store := d.raised(8)
	for _, shards := range []string{"4", "16"} {
		d.variables[environment.OutboxShards] = shards
		if _, errs := d.exits(idemctl.ExitUsage, "list", "unknown"); !strings.Contains(errs, environment.OutboxShards) || !strings.Contains(errs, "must be 8") {
			t.Errorf("%s: %s", shards, errs)
		}
	}
	if err := store.SameShards(t.Context()); err != nil {
		t.Errorf("another number than the functions' is kept: %v", err)
	}
	d.variables[environment.OutboxShards] = "8"
	d.exits(idemctl.ExitOK, "list", "unknown")
}

// raised is the store of a deployment that has raised the number of shards.
func (d *deployment) raised(shards int) *dynamo.Store {
	d.Helper()
	store, err := dynamo.New(dynamotest.Client(*d.aws.BaseEndpoint), dynamo.Config{
		IdempotencyTable: d.variables[environment.IdempotencyTable], OutboxTable: d.variables[environment.OutboxTable], Shards: shards,
	})
	if err == nil {
		_, err = store.CheckShards(d.Context())
	}
	if err != nil {
		d.Fatal(err)
	}
	return store
}

// docs/operator.md "Environment": a console that was open when the number was raised would show none of what lies in the new shards, and
// that nothing is dead. It shows no queue instead.
func TestADeskThatIsKeptListsNothingOnceTheShardsAreRaised(t *testing.T) {
	d := deploy(t)
	d.raised(4)
	desk, err := d.command().Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	change := operator.Change{Actor: "ada", Reason: "ticket 17"}
	uses := map[string]func() error{
		"count":  func() error { _, err := desk.Count(t.Context(), operator.QueueDead, ""); return err },
		"list":   func() error { _, err := desk.List(t.Context(), operator.QueueDead, "", 1, ""); return err },
		"search": func() error { _, err := desk.Beginning(t.Context(), "op_0123456789"); return err },
		"sweep":  func() error { _, err := desk.Sweep(t.Context(), change); return err },
	}
	for name, use := range uses {
		if err := use(); err != nil {
			t.Errorf("%s before: %v", name, err)
		}
	}
	d.raised(8)
	for name, use := range uses {
		if err := use(); !errors.Is(err, operator.ErrRefused) || !errors.As(err, new(*idem.ConfigError)) || !strings.Contains(err.Error(), environment.OutboxShards) || !strings.Contains(err.Error(), "must be 8") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The console says which deployment it is about, and what the application says of it counts.
func TestConsoleSaysWhatItIsAbout(t *testing.T) {
	d := deploy(t)
	var about string
	d.app.Console = func(c *console.Config) error {
		about = c.About
		return errors.New("enough")
	}
	d.exits(idemctl.ExitUsage, "console")
	if want := "us-east-1, " + d.variables[environment.IdempotencyTable]; about != want {
		t.Errorf("about %q, want %q", about, want)
	}
}
