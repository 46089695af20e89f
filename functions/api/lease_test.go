package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// docs/semantics.md "Leases": where the platform kills the process at a deadline no lease is renewed. So the one of a transfer's handler
// outlives its invocation, however long that may take: another request would run beside it otherwise.
func TestTheLeaseOutlivesTheInvocation(t *testing.T) {
	s := lambdatest.New(t)
	s.Account(t, lambdatest.Tenant, "acct_1", 1000)
	s.Account(t, lambdatest.Tenant, "acct_2", 0)
	inserted := inserts(t)
	deadline := time.Now().Add(10 * time.Minute)
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	raw, err := started(t).Invoke(ctx, lambdatest.Sample(t, "api-http-transfer"))
	if err != nil || !strings.Contains(string(raw), `"statusCode":201`) {
		t.Fatalf("%s, %v", raw, err)
	}
	leased := 0
	for _, it := range inserted() {
		if lease, ok := it[schema.LeaseUntil]; ok {
			leased++
			if until, err := strconv.ParseInt(lease.N, 10, 64); err != nil || time.UnixMilli(until).Before(deadline) {
				t.Errorf("the lease ends %v, %v, and the invocation %v", time.UnixMilli(until), err, deadline)
			}
		}
	}
	if leased != 1 {
		t.Errorf("%d records with a lease were inserted, want 1", leased)
	}
}

// inserts puts a front before DynamoDB that keeps the items that functions put.
func inserts(t *testing.T) func() []map[string]struct{ N string } {
	t.Helper()
	to, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all []map[string]struct{ N string }
	pass := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var put struct{ Item map[string]struct{ N string } }
		if err == nil && strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".PutItem") {
			err = json.Unmarshal(body, &put)
			mu.Lock()
			all = append(all, put.Item)
			mu.Unlock()
		}
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", front.URL)
	return func() []map[string]struct{ N string } {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}
