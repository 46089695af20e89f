package dynamoquota_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/quota"
	"github.com/idem-go/idem-aws/idem/quota/dynamoquota"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

var _ quota.Counters = (*dynamoquota.Counters)(nil)

// table makes an empty table of counters.
func table(t *testing.T) (*dynamodb.Client, string) {
	t.Helper()
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Names()[0]), metered)
	name := "quota-" + t.Name()
	if err := dynamotest.CreateTable(t.Context(), client, name, schema.Quota()); err != nil {
		t.Fatal(err)
	}
	return client, name
}

func counters(t *testing.T) (*dynamoquota.Counters, *dynamodb.Client, string) {
	t.Helper()
	client, name := table(t)
	c, err := dynamoquota.New(client, name)
	if err != nil {
		t.Fatal(err)
	}
	return c, client, name
}

func add(t *testing.T, c *dynamoquota.Counters, counter, field string, n, want int64) {
	t.Helper()
	if sum, err := c.Add(t.Context(), counter, field, n, time.Unix(1800000000, 0)); err != nil || sum != want {
		t.Errorf("add %d to %s %s: %d, %v; want %d", n, counter, field, sum, err, want)
	}
}

// What quota.Counters says, on a real endpoint: the sums, absence, order, and the time of removal.
func TestCountersAddAndRead(t *testing.T) {
	c, client, name := counters(t)
	add(t, c, "a", "h1", 5, 5)
	add(t, c, "a", "h1", 2, 7)
	add(t, c, "a", "h2", 1, 1)
	add(t, c, "a", "h1", -3, 4)
	add(t, c, "b", "n", 9, 9)
	all, err := c.Read(t.Context(), []string{"b", "none", "a"})
	if err != nil || len(all) != 3 || all[0]["n"] != 9 || len(all[1]) != 0 || all[2]["h1"] != 4 || all[2]["h2"] != 1 || len(all[2]) != 2 {
		t.Errorf("%v, %v", all, err)
	}
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &name, Key: map[string]types.AttributeValue{
		schema.CounterName: &types.AttributeValueMemberS{Value: "a"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if ttl, ok := out.Item[schema.TTL].(*types.AttributeValueMemberN); !ok || ttl.Value != "1800000000" {
		t.Errorf("ttl %v", out.Item[schema.TTL])
	}
}

// Ninety days are one call.
func TestCountersReadAsManyAsThereCanBe(t *testing.T) {
	c, _, _ := counters(t)
	names := make([]string, quota.ReadMax)
	for i := range names {
		names[i] = string(rune('A'+i%26)) + string(rune('a'+i/26))
	}
	add(t, c, names[len(names)-1], "h0", 1, 1)
	if all, err := c.Read(t.Context(), names); err != nil || len(all) != len(names) || all[len(names)-1]["h0"] != 1 {
		t.Errorf("%d, %v", len(all), err)
	}
}

func TestConcurrentAdditionsAreAllCounted(t *testing.T) {
	c, _, _ := counters(t)
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			if _, err := c.Add(context.WithoutCancel(t.Context()), "a", "n", 1, time.Unix(1800000000, 0)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	add(t, c, "a", "n", 0, 50)
}

// quota.Counters: what is added may count twice where its reply is lost, and what comes back counts once at most. Else a tenant had
// more keys than its limit.
func TestWhatComesBackCountsOnce(t *testing.T) {
	lost := func() (*http.Response, error) { return nil, &net.OpError{Op: "read", Err: syscall.ECONNRESET} }
	throttled := func() (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(strings.NewReader(
			`{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"slow down"}`))}, nil
	}
	for name, c := range map[string]struct {
		n      int64
		reply  func() (*http.Response, error)
		resent bool
	}{
		"taken, no reply":       {5, lost, true},
		"given back, no reply":  {-5, lost, false},
		"given back, throttled": {-5, throttled, true},
	} {
		synctest.Test(t, func(t *testing.T) { // the SDK waits before it sends again
			sends := 0
			client := dynamodb.New(dynamodb.Options{
				Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
				HTTPClient: httpClient(func(*http.Request) (*http.Response, error) {
					sends++
					return c.reply()
				}),
			})
			counters, err := dynamoquota.New(client, "quota")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := counters.Add(t.Context(), "a", "h1", c.n, time.Unix(1800000000, 0)); err == nil || sends == 0 || (sends > 1) != c.resent {
				t.Errorf("%s: it is sent %d times, %v; want more than once: %v", name, sends, err, c.resent)
			}
		})
	}
}

// httpClient makes one of a function.
type httpClient func(*http.Request) (*http.Response, error)

func (f httpClient) Do(r *http.Request) (*http.Response, error) { return f(r) }

func TestNewRejectsItsArguments(t *testing.T) {
	var rejected *idem.ConfigError
	if _, err := dynamoquota.New(nil, "t"); !errors.As(err, &rejected) || rejected.Field != "client" {
		t.Errorf("%v", err)
	}
	if _, err := dynamoquota.New(&dynamodb.Client{}, ""); !errors.As(err, &rejected) || rejected.Field != "table" {
		t.Errorf("%v", err)
	}
}

// A table that is not there is an error, not a refusal and not a permission.
func TestAnUnreadableTableIsAnError(t *testing.T) {
	client, _ := table(t)
	c, err := dynamoquota.New(client, "none")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Add(t.Context(), "a", "n", 1, time.Unix(1800000000, 0)); err == nil {
		t.Error("an addition to no table")
	}
	if _, err := c.Read(t.Context(), []string{"a"}); err == nil {
		t.Error("a read of no table")
	}
}
