package payments

import (
	"fmt"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem"
)

func TestFormListsEveryErrorWithItsPointer(t *testing.T) { // docs/payments-api.md "Conventions"
	for name, c := range map[string]struct {
		body string
		want []string
	}{
		"valid":          {`{"amount":1999,"currency":"EUR","source":"card_ok","reference":"order-17"}`, nil},
		"no reference":   {`{"amount":1,"currency":"EUR","source":"c"}`, nil},
		"all wrong":      {`{"amount":0,"currency":"eur","source":"","x~/y":1}`, []string{"/amount", "/currency", "/source", "/x~0~1y"}},
		"all missing":    {`{}`, []string{"/amount", "/currency", "/source"}},
		"not an object":  {`[1]`, []string{""}},
		"null":           {`null`, []string{""}},
		"no JSON":        {`{"amount":`, []string{""}},
		"fraction":       {`{"amount":1.5,"currency":"EUR","source":"c"}`, []string{"/amount"}},
		"exponent":       {`{"amount":1e2,"currency":"EUR","source":"c"}`, []string{"/amount"}},
		"amount string":  {`{"amount":"1","currency":"EUR","source":"c"}`, []string{"/amount"}},
		"too large":      {`{"amount":100000000,"currency":"EUR","source":"c"}`, []string{"/amount"}},
		"no ISO 4217":    {`{"amount":1,"currency":"QQQ","source":"c"}`, []string{"/currency"}},
		"null reference": {`{"amount":1,"currency":"EUR","source":"c","reference":null}`, []string{"/reference"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, problem := parsePayment([]byte(c.body))
			var got []string
			if problem != nil {
				for _, e := range problem.Errors {
					got = append(got, e.Pointer)
				}
			}
			if len(got) != len(c.want) {
				t.Fatalf("errors at %q, want %q", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("errors at %q, want %q", got, c.want)
				}
			}
		})
	}
}

// A body of unknown members was answered by five times its own size.
func TestFormListsNoMoreErrorsThanCanBeRead(t *testing.T) {
	var many strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&many, `"%05d":1,`, i)
	}
	for name, body := range map[string]string{
		"many members": `{` + many.String() + `"amount":0}`,
		"a long name":  `{"` + strings.Repeat("\u0001", 30_000) + `":1}`,
	} {
		_, problem := parsePayment([]byte(body))
		if problem == nil {
			t.Fatalf("%s: accepted", name)
		}
		if size := len(problem.Response().Body); size > 4<<10 {
			t.Errorf("%s: %d bytes are answered by %d", name, len(body), size)
		}
		if last := problem.Errors[len(problem.Errors)-1]; name == "many members" && last.Detail != "has 29983 more errors, which are not listed" {
			t.Errorf("%s: ends with %+v", name, last)
		}
	}
}

func TestFormTransferToItselfIsInvalid(t *testing.T) {
	_, problem := parseTransfer([]byte(`{"from":"acct_1","to":"acct_1","amount":5,"currency":"EUR"}`))
	if problem == nil || len(problem.Errors) != 1 || problem.Errors[0].Pointer != "/to" {
		t.Fatalf("problem %+v, want one error at /to", problem)
	}
}

func TestFormsOfRefundsAndPayouts(t *testing.T) {
	valid := func(problem *idem.Problem, want bool, body string) {
		t.Helper()
		if (problem == nil) != want {
			t.Errorf("%s: problem %+v", body, problem)
		}
	}
	for body, want := range map[string]bool{
		`{"amount":1}`: true, `{"amount":99999999}`: true, `{"amount":0}`: false, `{}`: false, `{"amount":1,"currency":"EUR"}`: false, `1`: false,
	} {
		_, problem := parseRefund([]byte(body))
		valid(problem, want, body)
	}
	for body, want := range map[string]bool{
		`{"from":"acct_1","amount":500,"currency":"EUR","destination":"iban_ok"}`:                         true,
		`{"from":"acct_1","amount":500,"currency":"EUR","destination":"` + strings.Repeat("ä", 64) + `"}`: true,
		`{"from":"acct_1","amount":500,"currency":"EUR","destination":"` + strings.Repeat("ä", 65) + `"}`: false,
		`{"from":"acct_1","amount":500,"currency":"EUR","destination":""}`:                                false,
		`{"from":"acct/1","amount":500,"currency":"EUR","destination":"iban_ok"}`:                         false,
		`{"from":"acct_1","amount":500,"currency":"EUR"}`:                                                 false,
		`{"from":"acct_1","amount":500,"currency":"EUR","destination":"iban_ok","reference":"order-17"}`:  false,
	} {
		_, problem := parsePayout([]byte(body))
		valid(problem, want, body)
	}
}

func TestFormIDsHoldNothingThatSeparatesKeys(t *testing.T) {
	for _, id := range []string{"a/b", "a#b", "../x", "ä", ""} {
		if _, problem := parseTransfer([]byte(`{"from":"` + id + `","to":"acct_1","amount":5,"currency":"EUR"}`)); problem == nil {
			t.Errorf("from %q is accepted", id)
		}
	}
}
