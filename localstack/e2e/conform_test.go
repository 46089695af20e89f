//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/conform"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// docs/verify/conform.md: what idemctl conform asks any service, asked of the deployed one: of an operation with an effect at a provider,
// and of one transaction. No more is executed than the report counts.
func TestDeployedAPIConforms(t *testing.T) {
	t.Parallel()
	source := card("conform")
	from, to := open(t, "conform-from", 1000), open(t, "conform-to", 0)
	for path, body := range map[string]string{
		"/v1/payments":  fmt.Sprintf(`{"amount":1999,"currency":"EUR","source":%q}`, source),
		"/v1/transfers": fmt.Sprintf(`{"from":%q,"to":%q,"amount":1,"currency":"EUR"}`, from, to),
	} {
		t.Run(strings.TrimPrefix(path, "/v1/"), func(t *testing.T) {
			target := conform.Target{
				URL: deployed.tenantA.url + path, Body: []byte(body), Policy: idem.IETF(), Header: http.Header{"Authorization": {"Bearer " + deployed.tenantA.token}},
			}
			if path == "/v1/payments" { // the accounts are one tenant's
				target.OtherCaller = http.Header{"Authorization": {"Bearer " + deployed.tenantB.token}}
			}
			report, executed := conforms(t, target)
			for _, f := range report.Findings {
				if f.Verdict == conform.Differs || f.Verdict == conform.NotTold || f.Verdict == conform.Skipped && f.Check != "other_tenant" {
					t.Errorf("%s %s: %s", f.Check, f.Verdict, f.Saw)
				}
			}
			t.Logf("%d requests at last, at most %d executed in all", report.Requests, executed)
			if path == "/v1/transfers" {
				if moved := balance(t, to); moved < 1 || moved > int64(executed) {
					t.Errorf("%d moved, and the reports count %d executions", moved, executed)
				}
				return
			}
			all, err := deployed.provider.Charges(t.Context())
			must(t, err)
			charged := 0
			for _, c := range all {
				if c.Source == source && c.Status == provider.Succeeded {
					charged++
				}
			}
			if charged < 1 || charged > executed {
				t.Errorf("%d charges, and the reports count %d executions", charged, executed)
			}
		})
	}
}

// conforms checks the target, and once more where a request found no store, which is no answer to what the check asks: attemptsMax times at
// most. It returns the last report, and how much all of them count as executed.
func conforms(t *testing.T, target conform.Target) (report conform.Report, executed int) {
	t.Helper()
	for range attemptsMax {
		client := &judgedClient{base: &http.Transport{DisableKeepAlives: true}}
		target.Client = &http.Client{
			Timeout: 45 * time.Second, Transport: client, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		var err error
		report, err = conform.Check(t.Context(), target)
		must(t, err)
		executed += report.Executed
		if !client.starved.Load() {
			break
		}
		t.Logf("a request found no store: %+v", report.Findings)
	}
	return report, executed
}

// judgedClient has the audit hear what each caller is answered, and notes whether a request found no store.
type judgedClient struct {
	base    http.RoundTripper
	starved atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (c *judgedClient) RoundTrip(req *http.Request) (*http.Response, error) {
	caller := witness{base: c.base}
	for _, known := range []api{deployed.tenantA, deployed.tenantB} {
		if req.Header.Get("Authorization") == "Bearer "+known.token {
			caller.tenant = known.tenant
		}
	}
	res, err := caller.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(res.Body)
	res.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{err}))
	if (reply{res.StatusCode, res.Header, body}).starved() {
		c.starved.Store(true)
	}
	return res, nil
}
