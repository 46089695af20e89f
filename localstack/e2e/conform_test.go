//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

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
			report, err := conform.Check(t.Context(), target)
			must(t, err)
			for _, f := range report.Findings {
				if f.Verdict == conform.Differs || f.Verdict == conform.NotTold || f.Verdict == conform.Skipped && f.Check != "other_tenant" {
					t.Errorf("%s %s: %s", f.Check, f.Verdict, f.Saw)
				}
			}
			t.Logf("%d requests, at most %d executed", report.Requests, report.Executed)
			if path == "/v1/transfers" {
				if moved := balance(t, to); moved < 1 || moved > int64(report.Executed) {
					t.Errorf("%d moved, and the report counts %d executions", moved, report.Executed)
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
			if charged < 1 || charged > report.Executed {
				t.Errorf("%d charges, and the report counts %d executions", charged, report.Executed)
			}
		})
	}
}
