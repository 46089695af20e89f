package chaos_test

import (
	"fmt"
	"net/http/httptest"
	"reflect"
	"slices"
	"testing"

	"github.com/idem-go/idem-aws/localstack/chaos"
	"github.com/idem-go/idem-aws/localstack/faultproxy"
	"github.com/idem-go/idem-aws/localstack/provider"
)

func planned(t *testing.T, seed int64, requests int) chaos.Plan {
	t.Helper()
	p, err := chaos.New(seed, requests)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestASeedIsAPlan(t *testing.T) {
	first := planned(t, 7, 1000)
	if !reflect.DeepEqual(planned(t, 7, 1000), first) {
		t.Error("the same seed, another plan")
	}
	other := planned(t, 8, 1000)
	if reflect.DeepEqual(other.Requests, first.Requests) || reflect.DeepEqual(other.Events, first.Events) {
		t.Error("another seed, the same plan")
	}
	if !reflect.DeepEqual(planned(t, 7, 100).Requests, first.Requests[:100]) {
		t.Error("a smaller plan does not begin like a larger one")
	}
}

func TestPlansAreBounded(t *testing.T) {
	for _, n := range []int{-1, 0, chaos.RequestsMax + 1} {
		if _, err := chaos.New(1, n); err == nil {
			t.Errorf("%d requests are planned", n)
		}
	}
}

// TestAThousandRequestsMeetEverything: whatever the seed, no kind of request, client, fault or event is left out.
func TestAThousandRequestsMeetEverything(t *testing.T) {
	for seed := range int64(20) {
		seen := map[string]int{}
		p := planned(t, seed, 1000)
		for i, r := range p.Requests {
			count(seen, r)
			requestHolds(t, p.Requests, i)
		}
		for _, e := range p.Events {
			seen[fmt.Sprint(e.Action, " ", e.Victim, e.Mode)]++
			if e.After < 0 || e.After >= 1000 || e.Delay < 0 {
				t.Errorf("event %+v is never", e)
			}
		}
		if !slices.IsSortedFunc(p.Events, func(a, b chaos.Event) int { return a.After - b.After }) {
			t.Error("events are not in order")
		}
		for _, want := range everything() {
			if seen[want] == 0 {
				t.Errorf("seed %d: no %s in %v", seed, want, seen)
			}
		}
	}
}

func count(seen map[string]int, r chaos.Request) {
	seen[string(r.Kind)]++
	seen[r.Tenant]++
	seen["client "+string(r.Client.Temper)]++
	for _, rule := range r.Provider {
		seen[fmt.Sprint("provider ", rule.On, " ", rule.Fault)]++
	}
	for _, rule := range r.DynamoDB {
		seen[fmt.Sprint("dynamodb ", rule.Fault)]++
	}
	for what, is := range map[string]bool{"keyless": r.Keyless, "refused": r.Refused, "refund": r.Refund > 0} {
		if is {
			seen[what]++
		}
	}
}

func requestHolds(t *testing.T, all []chaos.Request, i int) {
	t.Helper()
	r := all[i]
	if r.Key != i {
		other := all[r.Key]
		if r.Key > i || other.Key != r.Key || other.Tenant == r.Tenant || other.Kind != r.Kind {
			t.Errorf("request %d shares the key of %+v: %+v", i, other, r)
		}
	}
	if r.From == r.To || r.To == chaos.AccountCount-1 || r.From < 0 || r.To < 0 || r.From >= chaos.AccountCount {
		t.Errorf("request %d goes from account %d to %d", i, r.From, r.To)
	}
	if r.Amount < 1 || r.Refund > r.Amount {
		t.Errorf("request %d is about %d and gives %d back", i, r.Amount, r.Refund)
	}
}

// everything is what each larger plan has.
func everything() []string {
	all := []string{
		"payment", "transfer", "payout", "tenant-a", "tenant-b", "keyless", "refused", "refund", "outage ",
		"webhooks late", "webhooks twice", "webhooks off", "webhooks normal",
	}
	for _, v := range chaos.Victims() {
		all = append(all, "kill "+string(v))
	}
	for _, temper := range []chaos.Temper{chaos.Follows, chaos.Trusts, chaos.Retries, chaos.Leaves, chaos.Returns, chaos.Crowds, chaos.Muddles} {
		all = append(all, "client "+string(temper))
	}
	for _, fault := range []provider.Fault{
		provider.ErrorBefore, provider.ErrorAfter, provider.DropBefore, provider.DropAfter, provider.HangBefore, provider.HangAfter,
		provider.RateLimit, provider.Decline,
	} {
		all = append(all, fmt.Sprint("provider charge ", fault))
	}
	for _, fault := range []faultproxy.Fault{
		faultproxy.DropReply, faultproxy.Late, faultproxy.Conflict, faultproxy.Throttle, faultproxy.Refuse, faultproxy.Refuse503, faultproxy.DelayRequest,
	} {
		all = append(all, fmt.Sprint("dynamodb ", fault))
	}
	return append(all, "provider legacy_charge drop_after", "provider legacy_payout drop_after", "provider screening drop_after",
		"provider payout drop_after", "provider list error_before")
}

// TestFaultsOfTheLargestPlanCanBeLaidOut: every rule is one that provider and fault proxy take, all at once.
func TestFaultsOfTheLargestPlanCanBeLaidOut(t *testing.T) {
	simulator := provider.New(provider.Config{})
	defer simulator.Close()
	proxy, err := faultproxy.New(faultproxy.Config{Target: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	atProvider, atProxy := httptest.NewServer(simulator), httptest.NewServer(proxy)
	defer atProvider.Close()
	defer atProxy.Close()

	var calls []provider.Rule
	var requests []faultproxy.Rule
	for i, r := range planned(t, 1, chaos.RequestsMax).Requests {
		for _, rule := range r.Provider {
			rule.Source = fmt.Sprintf("legacy_0123456789_%d", i)
			calls = append(calls, rule)
		}
		for _, rule := range r.DynamoDB {
			rule.Contains = "0123456789012345678901234567890123456789ab"
			requests = append(requests, rule)
		}
	}
	if err := (provider.Control{URL: atProvider.URL}).Faults(t.Context(), calls...); err != nil {
		t.Errorf("%d rules: %v", len(calls), err)
	}
	if err := (faultproxy.Control{URL: atProxy.URL}).Faults(t.Context(), requests...); err != nil {
		t.Errorf("%d rules: %v", len(requests), err)
	}
}
