// Package dynamotest gives tests a real DynamoDB endpoint, with the store's tables on it. It is for tests only. Use
// it where a test must see DynamoDB's own conditions, transactions and errors; tests of a handler's logic are faster
// with packages memstore and idemtest. Package wirefault adds lost replies and throttles.
//
// Each process of tests starts an emulator of its own, dynoxide, which takes milliseconds. docs/guides/testing.md says
// how npm installs it. It needs the program on PATH, or its path in the environment variable IDEM_DYNOXIDE.
// IDEM_STORE_ENDPOINTS chooses other endpoints, such as a DynamoDB Local that runs already:
// IDEM_STORE_ENDPOINTS=http://127.0.0.1:8000.
//
//	func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }
//
//	func TestPayment(t *testing.T) {
//		dynamotest.Each(t, func(t *testing.T, url string) {
//			client := dynamotest.Client(url)
//			tables, err := dynamotest.CreateTables(t.Context(), client, "payment")
//			// dynamo.New(client, dynamo.Config{IdempotencyTable: tables.Idempotency, OutboxTable: tables.Outbox})
//		})
//	}
package dynamotest

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem/sdkhttp"
	"github.com/idem-go/idem-aws/internal/localtool"
)

// Names of the emulators that a test can have started. All but Dynoxide are only found in a checkout of idem-aws.
const (
	// Dynoxide starts in milliseconds.
	Dynoxide = localtool.Dynoxide
	// DynamoDBLocal is AWS's own, and takes seconds.
	DynamoDBLocal = localtool.DynamoDBLocal
	// Ministack has KMS, SQS and much else besides DynamoDB, and takes seconds.
	Ministack = localtool.Ministack
)

// EndpointsVariable names the environment variable that lists the endpoints to test on, separated by commas: an emulator's
// name, which is started, or the URL of one that runs. Unset means [Dynoxide] alone. An emulator that is listed and not
// installed fails the test.
const EndpointsVariable = "IDEM_STORE_ENDPOINTS"

// Names lists the endpoints to test on, as [Endpoint] takes them.
func Names() []string {
	listed := os.Getenv(EndpointsVariable)
	if listed == "" {
		return []string{Dynoxide}
	}
	return strings.Split(listed, ",")
}

// running are the emulators of this process: one of each, shared by its tests, because Java takes seconds to start.
var running struct {
	sync.Mutex
	endpoints map[string]*localtool.Endpoint
}

// Main runs a package's tests and stops the emulators that they started. It is what TestMain passes to os.Exit.
func Main(m *testing.M) int {
	defer func() {
		running.Lock()
		defer running.Unlock()
		for _, endpoint := range running.endpoints {
			endpoint.Stop()
		}
	}()
	return m.Run()
}

// Endpoint returns the address of the named emulator, which it starts where it is not running yet, without a trailing
// slash. A name that is a URL is the address itself, and nothing is started. The package needs a TestMain with [Main].
//
// Where the emulator can't be started the test fails. In a checkout of idem-aws without its tools it is skipped, unless
// IDEM_STORE_ENDPOINTS or CI=true asks for it.
func Endpoint(t testing.TB, name string) string {
	t.Helper()
	if strings.Contains(name, "://") {
		return strings.TrimSuffix(name, "/")
	}
	running.Lock()
	defer running.Unlock()
	if endpoint, ok := running.endpoints[name]; ok {
		return endpoint.URL
	}
	endpoint, err := localtool.Open(context.WithoutCancel(t.Context()), name)
	if os.Getenv(EndpointsVariable) == "" && localtool.Excuses(err) {
		t.Skipf("not run: %v", err)
	}
	if err != nil {
		t.Fatalf("%v; %s may have the URL of an endpoint that runs", err, EndpointsVariable)
	}
	if running.endpoints == nil {
		running.endpoints = map[string]*localtool.Endpoint{}
	}
	running.endpoints[name] = endpoint
	return endpoint.URL
}

// Each runs the test on every endpoint of [Names], as a subtest named after it: a URL by its host and port, so that the
// name of the test can be a part of a table's.
func Each(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	for _, name := range Names() {
		subtest := name
		if _, host, isURL := strings.Cut(strings.TrimSuffix(name, "/"), "://"); isURL {
			subtest = strings.NewReplacer(":", "-", "/", "-").Replace(host)
		}
		t.Run(subtest, func(t *testing.T) { test(t, Endpoint(t, name)) })
	}
}

// Client makes a client of the endpoint with the credentials and Region of local tests, which AWS itself refuses.
func Client(url string, options ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: &url, Region: "us-east-1", HTTPClient: sdkhttp.BufferedBody(nil),
		Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("test", "test", "")),
	}, options...)
}
