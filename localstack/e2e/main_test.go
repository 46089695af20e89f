//go:build e2e

package e2e

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/idem-go/idem-aws/idem/sdkhttp"
	"github.com/idem-go/idem-aws/localstack/faultproxy"
	"github.com/idem-go/idem-aws/localstack/provider"
	"github.com/idem-go/idem-aws/localstack/stack"
)

// run names this run: it is part of every key, reference, source and account, so that nothing meets what an earlier run
// left, and none of it may ever be seen in a log.
var run = strings.ToLower(rand.Text()[:10])

// deployment is the stack under test.
type deployment struct {
	variables        stack.Variables
	config           aws.Config // of its clients
	tenantA, tenantB api
	provider         provider.Control
	dynamodb         faultproxy.Control
	tables           *dynamodb.Client // beside the fault proxy
	functions        *lambda.Client
	queues           *sqs.Client
	logs             *cloudwatchlogs.Client
}

var deployed deployment

// testsAtOnce is for tests that mostly wait: for leases, back-offs and workers.
const testsAtOnce = "16"

func TestMain(m *testing.M) {
	flag.Parse()
	err := errors.Join(flag.Set("test.parallel", testsAtOnce), connect())
	if err == nil {
		err = layOutFaults(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	code := m.Run()
	if broken := brokenInvariants(context.Background()); len(broken) > 0 {
		fmt.Printf("--- FAIL: invariants (docs/design.md), %d broken\n    %s\nFAIL\n", len(broken), strings.Join(broken, "\n    "))
		code = 1
	}
	os.Exit(code)
}

// connect reads the env file.
func connect() error {
	path := os.Getenv("IDEM_E2E_ENV")
	if path == "" {
		return errors.New("IDEM_E2E_ENV must name the env file of a stack that was brought up with --fault-proxy")
	}
	variables, err := stack.ReadVariables(path)
	if err != nil {
		return err
	}
	for _, name := range []string{
		"API_URL", "TENANT_A_TOKEN", "TENANT_B_TOKEN", "PROVIDER_URL", "AWS_ENDPOINT_URL", "AWS_REGION", "FAULT_PROXY_URL",
		"IDEMPOTENCY_TABLE", "OUTBOX_TABLE", "PAYMENTS_TABLE", "WAKE_UP_QUEUE_URL", "DEAD_LETTER_QUEUE_URL", "FUNCTION_API", "FUNCTION_WORKER", "FUNCTION_SWEEP", "FUNCTION_WEBHOOK", "WEBHOOK_SECRET", "FUNCTION_RECONCILE", "FUNCTION_DRIFT", "AUDIT_TABLE", "API_KEYS_TABLE",
	} {
		if variables[name] == "" {
			return fmt.Errorf("%s has no %s", path, name)
		}
	}
	config := aws.Config{
		Region: variables["AWS_REGION"], BaseEndpoint: aws.String(variables["AWS_ENDPOINT_URL"]), HTTPClient: sdkhttp.BufferedBody(nil),
		Credentials: credentials.NewStaticCredentialsProvider(variables["AWS_ACCESS_KEY_ID"], variables["AWS_SECRET_ACCESS_KEY"], ""),
	}
	deployed = deployment{
		variables: variables, config: config,
		tenantA:   newAPI(variables["API_URL"], variables["TENANT_A_TOKEN"], "tenant-a"),
		tenantB:   newAPI(variables["API_URL"], variables["TENANT_B_TOKEN"], "tenant-b"),
		provider:  provider.Control{URL: variables["PROVIDER_URL"]},
		dynamodb:  faultproxy.Control{URL: variables["FAULT_PROXY_URL"]},
		tables:    dynamodb.NewFromConfig(config),
		functions: lambda.NewFromConfig(config),
		queues:    sqs.NewFromConfig(config),
		logs:      cloudwatchlogs.NewFromConfig(config),
	}
	return nil
}

// gatewayAuthenticates says that the stack has an authorizer in front of the API; else the API function authenticates.
func (d deployment) gatewayAuthenticates() bool { return d.variables["FUNCTION_AUTHORIZER"] != "" }

// table names a table of the stack: IDEMPOTENCY, OUTBOX, PAYMENTS or API_KEYS.
func (d deployment) table(name string) string { return d.variables[name+"_TABLE"] }

// Bounds of waiting. A wake-up costs about a second, a dead worker a claim's lease (10 s), a dead API function the lease
// of its execution (30 s); the emulators work through a batch one message after the other, slow ones included. A wake-up
// that dies with a worker, as tests kill them, is made good by the sweep, 15 to 75 s after it was due: twice in a row is
// still no loss.
const (
	soon      = time.Minute
	delivered = 3 * time.Minute
	poll      = 250 * time.Millisecond // an emulator spends more on being asked than on the work
)

// eventually polls until done returns "", which is else what is still missing, and fails the test when the time is over.
func eventually(t *testing.T, limit time.Duration, done func() (missing string)) {
	t.Helper()
	if missing := within(limit, done); missing != "" {
		t.Fatalf("after %s: %s", limit, missing)
	}
}

// within polls until nothing is missing, or for as long as the limit says, and returns what is missing then.
func within(limit time.Duration, done func() (missing string)) (missing string) {
	deadline, ticker := time.After(limit), time.NewTicker(poll)
	defer ticker.Stop()
	for {
		if missing = done(); missing == "" {
			return ""
		}
		select {
		case <-deadline:
			return missing
		case <-ticker.C:
		}
	}
}

// must fails the test on an error of the test's own tools.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
