package payments

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/functions/internal/openapi"
)

// Whatever the form takes, the provider takes: 64 emoji have 256 bytes, which it refused. The document says the same.
func TestTheFormTakesNothingThatTheProviderRefuses(t *testing.T) {
	document, err := openapi.Find()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text            string
		named, referred bool
	}{
		"letters":             {strings.Repeat("a", 64), true, true},
		"three bytes each":    {strings.Repeat("界", 64), true, true},
		"the last before":     {"\uD7FF\uE000\uFFFF ~\u00A0", true, true},
		"emoji":               {"🎂", false, true},
		"64 emoji":            {strings.Repeat("💶", 64), false, true},
		"more than 64":        {strings.Repeat("a", 65), false, true},
		"140 emoji":           {strings.Repeat("💶", 140), false, true},
		"more than 140":       {strings.Repeat("a", 141), false, false},
		"NUL":                 {"a\x00", false, false},
		"a line break":        {"a\nb", false, false},
		"DEL":                 {"a\x7f", false, false},
		"a control of Latin1": {"a\u0085", false, false},
		"empty":               {"", false, true},
	} {
		text, err := json.Marshal(c.text)
		if err != nil {
			t.Fatal(err)
		}
		payment := `{"amount":1,"currency":"EUR","source":` + string(text) + `}`
		payout := `{"from":"acct_1","amount":1,"currency":"EUR","destination":` + string(text) + `}`
		referring := `{"amount":1,"currency":"EUR","source":"c","reference":` + string(text) + `}`
		takes := func(form, body, member string, refused, want bool) {
			t.Helper()
			if refused == want {
				t.Errorf("%s as %s: refused is %v", name, member, refused)
			}
			if err := document.Validate(form, []byte(body)); (err == nil) != want {
				t.Errorf("%s as %s: the document says %v", name, member, err)
			}
		}
		asked, problem := parsePayment([]byte(payment))
		takes("PaymentRequest", payment, "source", problem != nil, c.named)
		paid, problem := parsePayout([]byte(payout))
		takes("PayoutRequest", payout, "destination", problem != nil, c.named)
		referred, problem := parsePayment([]byte(referring))
		takes("PaymentRequest", referring, "reference", problem != nil, c.referred)
		if n := max(len(asked.source), len(paid.destination)); n > 255 || len(referred.reference) > 1024 {
			t.Errorf("%s: the provider is sent %d and %d bytes", name, n, len(referred.reference))
		}
	}
}
