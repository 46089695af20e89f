//go:build e2e

package e2e

import (
	"bytes"
	"flag"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/internal/recording"
	"github.com/idem-go/idem-aws/localstack/provider"
)

var updateRecorded = flag.Bool("update", false, "write testdata/recorded.http from what the deployed stack answers")

// slowDocs is a source that is charged so late that a duplicate finds the payment pending.
var slowDocs = troubled("card_docs", provider.Rule{On: provider.Charge, Fault: provider.RateLimit, Times: 1, DelayMillis: 20_000})

// pages records what the deployed stack answers, for the pages of docs/policies.
type pages struct {
	*testing.T
	recording.Recording
}

// record sends the request to tenant A's API, and records it.
func (p *pages) record(name string, r request) reply {
	p.Helper()
	got := deployed.tenantA.do(p.T, r)
	sent := &http.Request{Method: r.method, Header: http.Header{}}
	if sent.Method == "" {
		sent.Method = http.MethodGet
	}
	address, err := http.NewRequest(sent.Method, "http://api"+r.path, nil)
	must(p.T, err)
	sent.URL = address.URL
	if r.key != "" {
		sent.Header.Set(header.NameKey, `"`+r.key+`"`)
	}
	if sent.Method == http.MethodPost {
		sent.Header.Set("Content-Type", "application/json")
	}
	for header, values := range r.header {
		sent.Header[header] = values
	}
	p.Add(name, sent, []byte(r.body), &http.Response{StatusCode: got.status, Header: got.header, Body: io.NopCloser(bytes.NewReader(nil))}, got.body)
	return got
}

// bare is the request with its key as it stands, without quotes.
func (r request) bare(key string) request {
	r.key = ""
	r.header = http.Header{header.NameKey: {key}}
	return r
}

// The pages of docs/policies show exchanges of testdata/recorded.http. They are what the deployed API answers, through its
// gateway.
func TestPagesShowWhatTheStackAnswers(t *testing.T) {
	t.Parallel()
	p := &pages{T: t, Recording: recording.Recording{Live: true, Stable: strings.NewReplacer(run+"-", "", run+"_", "", "_"+run, "")}}
	from, to := open(t, "docs-from", 1000), open(t, "docs-to", 0)

	keyless := move("none", from, to, 5)
	keyless.key = ""
	p.record("missing-key refused", keyless)
	p.record("missing-key ignored", request{path: "/v1/accounts/" + from, key: named("read")})

	quoted := move("order-17", from, to, 5)
	p.record("key-syntax structured, quoted", quoted)
	p.record("key-syntax structured, bare", quoted.bare(named("order-17")))
	p.record("key-syntax structured, two keys", quoted.bare(named("order-17")+", "+named("order-18")))

	other := quoted
	other.body = transferBody(from, to, 6)
	p.record("other-payload refused", other)
	spelled := quoted
	spelled.body = strings.NewReplacer(`"amount":5`, `"amount":5.0`).Replace(quoted.body)
	p.record("other-payload same, otherwise spelled", spelled)

	payment := pay("order-20", slowDocs)
	p.record("in-flight deferred, first", payment)
	p.record("in-flight deferred, duplicate", payment)
	deployed.tenantA.settle(t, payment)
	p.record("in-flight deferred, final", payment)

	poor := move("order-21", from, to, 99_999_999)
	p.record("stored-results rejected", poor)
	p.record("stored-results rejected, replayed", poor)
	invalid := move("order-22", from, to, 0)
	p.record("stored-results invalid, not stored", invalid)
	invalid.body = transferBody(from, to, 5)
	p.record("stored-results corrected", invalid)

	elsewhere := pay("order-17", card("ok"))
	p.record("scope other operation", elsewhere)

	p.record("retention replayed", quoted)

	late := move("order-23", from, to, 5)
	late.header = http.Header{header.NameFirstSent: {"2020-01-01T12:00:00Z"}}
	p.record("key-time first sent too long ago", late)
	late.header = http.Header{header.NameFirstSent: {"2120-01-01T12:00:00Z"}}
	p.record("key-time first sent in the future", late)

	p.record("exempt webhook without a signature", request{method: http.MethodPost, path: "/v1/webhooks/provider", body: "{}", anonymous: true})

	must(t, p.Compare("testdata/recorded.http", *updateRecorded))
}
