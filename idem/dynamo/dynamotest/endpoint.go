// Package dynamotest gives tests real DynamoDB endpoints: emulators, with the store's tables on them. It is for tests
// only.
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
	"github.com/idem-go/idem-aws/localstack/emulator"
)

// EndpointsVariable names the environment variable that lists the emulators to test on, separated by commas; unset means
// dynoxide alone, which starts in milliseconds. An emulator that is listed and not installed fails the test.
const EndpointsVariable = "IDEM_STORE_ENDPOINTS"

// Names lists the emulators to test on.
func Names() []string {
	listed := os.Getenv(EndpointsVariable)
	if listed == "" {
		return []string{emulator.Dynoxide}
	}
	return strings.Split(listed, ",")
}

// running are the emulators of this process: one of each, shared by its tests, because Java takes seconds to start.
var running struct {
	sync.Mutex
	endpoints map[string]*emulator.Endpoint
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

// Endpoint returns the address of the named emulator, which it starts where it is not running yet. The package needs a
// TestMain with [Main].
func Endpoint(t testing.TB, name string) string {
	t.Helper()
	running.Lock()
	defer running.Unlock()
	if endpoint, ok := running.endpoints[name]; ok {
		return endpoint.URL
	}
	root, err := emulator.Root()
	if err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	endpoint, err := emulator.Open(context.WithoutCancel(t.Context()), root, name)
	if err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	if running.endpoints == nil {
		running.endpoints = map[string]*emulator.Endpoint{}
	}
	running.endpoints[name] = endpoint
	return endpoint.URL
}

// Each runs the test on every emulator of [Names], as a subtest named after it.
func Each(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) { test(t, Endpoint(t, name)) })
	}
}

// Client makes a client of the endpoint with the credentials and Region of local tests.
func Client(url string, options ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: &url, Region: "us-east-1", HTTPClient: sdkhttp.BufferedBody(nil),
		Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("test", "test", "")),
	}, options...)
}
