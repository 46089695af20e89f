//go:build e2e

package e2e

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/localstack/provider"
)

const webhooks = "/v1/webhooks/provider"

// charged is an event that nobody has seen yet: a charge came to its end.
func charged(o provider.Object) provider.Event {
	return provider.Event{ID: "evt_" + strings.ToLower(rand.Text()), Type: "charge." + string(o.Status), Created: o.CreatedAt, Key: o.Key, Data: o}
}

// notice is the request that tells of an event: of the provider, with its signature, and without any token. Its secret and
// its time are the test's.
func notice(t *testing.T, e provider.Event, secret string, at time.Time) request {
	t.Helper()
	body, err := json.Marshal(e)
	must(t, err)
	return request{
		method: http.MethodPost, path: webhooks, body: string(body), anonymous: true,
		header: http.Header{provider.SignatureHeader: {provider.Sign(secret, at, body)}},
	}
}

// tell delivers an event, which must be accepted.
func tell(t *testing.T, e provider.Event) {
	t.Helper()
	got := deployed.tenantA.do(t, notice(t, e, deployed.variables["WEBHOOK_SECRET"], time.Now())).is(t, http.StatusNoContent)
	if len(got.body) != 0 {
		t.Errorf("204 with a body: %v", got)
	}
}

// chargeOf waits until the provider has made the request's charge.
func chargeOf(t *testing.T, r request) provider.Object {
	t.Helper()
	var made []provider.Object
	eventually(t, delivered, func() string {
		if made = chargesOf(t, r.key); len(made) == 0 {
			return "the provider has not made a charge"
		}
		return ""
	})
	return made[0]
}

// The provider has charged and keeps its answer back: within the worker's call, and for longer than that.
var (
	answeredLate  = troubled("card_hook_late", provider.Rule{On: provider.Charge, Fault: provider.HangAfter, Times: 1, DelayMillis: 3500})
	neverAnswered = troubled("card_hook_never", provider.Rule{On: provider.Charge, Fault: provider.HangAfter, Times: 1})
	announced     = func() (sources [3]string) {
		for n := range sources {
			sources[n] = troubled(fmt.Sprintf("card_hook_announced_%d", n), provider.Rule{
				On: provider.Charge, Fault: provider.HangAfter, Times: 1, DelayMillis: 4500,
			})
		}
		return sources
	}()
)

// TestSimulatorsWebhooksSettle runs alone: the provider announces everything while it is switched on. It does not send again what was not
// accepted, because the emulator stalled: then another charge is announced.
func TestSimulatorsWebhooksSettle(t *testing.T) { // payments-api.md "Webhooks": `up` has told the simulator where to
	settings := func(mode provider.Mode) {
		must(t, deployed.provider.Settings(t.Context(), provider.SettingsPatch{Webhooks: &provider.WebhooksPatch{Mode: &mode}}))
	}
	settings(provider.Twice)
	paying := map[idem.OperationID]request{}
	for _, source := range announced {
		r := pay("hook-"+source, source)
		_, body := accept(t, r)
		statuses := announcedTwice(t, chargeOf(t, r))
		if slices.Contains(statuses, http.StatusNoContent) {
			paying[body.Operation] = r
		}
		if statuses[0] == http.StatusNoContent && statuses[1] == http.StatusNoContent {
			break
		}
		if source == announced[len(announced)-1] {
			t.Errorf("of no charge both deliveries were accepted, of the last %v", statuses)
		}
	}
	settings(provider.Off)
	t.Parallel()
	for id, r := range paying {
		if op := deployed.tenantA.readOperation(t, id); op.State != "completed" {
			t.Errorf("the operation of %s is %s, want it completed by the event", r.key, op.State)
		}
		settledOnce(t, r)
	}
}

// announcedTwice waits until the provider has announced a charge twice, and returns what it was answered: 204, or, after the time of a stall,
// that there is no store.
func announcedTwice(t *testing.T, charge provider.Object) (statuses []int) {
	t.Helper()
	var its []provider.Delivery
	eventually(t, soon, func() string {
		deliveries, err := deployed.provider.Deliveries(t.Context())
		must(t, err)
		its = slices.DeleteFunc(deliveries, func(d provider.Delivery) bool { return d.Key != charge.Key })
		if len(its) < 2 {
			return fmt.Sprintf("two deliveries were not answered: %+v", its)
		}
		return ""
	})
	if len(its) != 2 || slices.ContainsFunc(its, func(d provider.Delivery) bool { return d.Status != http.StatusNoContent && !foundNoStore(d) }) {
		t.Fatalf("the deliveries of %s are %+v, want two, each with 204, or with 503 or 500 after %s", charge.Key, its, storeAwaited)
	}
	return []int{its[0].Status, its[1].Status}
}

// storeAwaited is the least time for which a function waits for a store which stalls.
const storeAwaited = time.Second

// foundNoStore says that a delivery was answered so because the emulator stalled: what is there sooner has another cause.
func foundNoStore(d provider.Delivery) bool {
	unavailable := d.Status == http.StatusServiceUnavailable || d.Status == http.StatusInternalServerError
	return unavailable && d.TookMillis >= storeAwaited.Milliseconds()
}

// answerAwaited is for how long at least a worker waits for the answer to what it was first charged (PROVIDER_TIMEOUT is five seconds): an
// event that is accepted before comes before another call.
const answerAwaited = 4 * time.Second

func TestWebhookBeforeTheWorkersAnswer(t *testing.T) { // design.md "Sweep, reconciler, webhook and operator": a webhook settles
	t.Parallel()
	for _, source := range []string{answeredLate, neverAnswered} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			r := pay("hook-"+source, source)
			_, body := accept(t, r)
			made := chargeOf(t, r)
			tell(t, charged(made))
			inTime := time.Since(made.CreatedAt.Time) < answerAwaited
			claims := number(messageRow(t, body), schema.Epoch) // who has claimed it before may still be on the way to the provider
			final, _ := settledOnce(t, r)
			eventually(t, soon, func() string { // the worker has its answer then, or has given up
				if open := chargeOf(t, r).Open; open > 0 {
					return fmt.Sprintf("%d requests wait for the provider's answer", open)
				}
				return ""
			})
			wake(t, body)
			again, charge := settledOnce(t, r)
			same(t, again, final)
			if int64(charge.Attempts) > claims || inTime && charge.Attempts != 1 {
				t.Errorf("the provider saw %d requests, want one each of %d claims at most; in time for the first: %t", charge.Attempts, claims, inTime)
			}
		})
	}
}

func TestWebhookAfterTheWorkerAndTwice(t *testing.T) { // payments-api.md: 204 for accepted and duplicate alike
	t.Parallel()
	r := pay("hook-after", card("hook_after"))
	final, charge := settledOnce(t, r)
	e := charged(charge)
	for range 3 {
		tell(t, e)
	}
	tell(t, charged(charge)) // another event about the same
	again, _ := settledOnce(t, r)
	same(t, again, final)
}

// unheard is charged without a key, its answer is lost, and no look-up finds it: only the provider itself can tell.
var unheard = troubled("legacy_hook_only", provider.Rule{On: provider.LegacyCharge, Fault: provider.DropAfter}, provider.Rule{On: provider.List, Fault: provider.ErrorBefore})

func TestKeylessChargeThatOnlyAWebhookSettles(t *testing.T) { // late, and all at once
	t.Parallel()
	r := pay("hook-only", unheard)
	_, body := accept(t, r)
	eventually(t, delivered, func() string {
		if state := deployed.tenantA.readOperation(t, body.Operation).State; state != "unknown" {
			return "the operation is " + state + ", not unknown"
		}
		return ""
	})
	told := notice(t, charged(chargeOf(t, r)), deployed.variables["WEBHOOK_SECRET"], time.Now())
	for _, got := range burst(t, slices.Repeat([]request{told}, 5)) {
		if got.starved() { // the emulator stalled: what comes again must find its way
			got = deployed.tenantA.do(t, told)
		}
		got.is(t, http.StatusNoContent)
	}
	if _, charge := settledOnce(t, r); charge.Attempts != 1 {
		t.Errorf("the provider saw %d requests, want one", charge.Attempts)
	}
}

// silent keeps every answer back for longer than anybody waits.
var silent = troubled("card_hook_silent", provider.Rule{On: provider.Charge, Fault: provider.HangAfter})

// evidenceOn is what of a message's row evidence alone writes: a worker that waits for the provider changes the rest meanwhile.
func evidenceOn(m item) string {
	return fmt.Sprintf("settled by %q at %q, reference %q, keeps a delivery: %t, a decline: %t", text(m, schema.SettledBy), text(m, schema.DoneAt),
		text(m, schema.ProviderReference), m[schema.KeptDelivered] != nil, m[schema.KeptDeclined] != nil)
}

func TestWebhookThatIsForgedOrStaleChangesNothing(t *testing.T) { // payments-api.md: 401 for a bad or stale signature
	t.Parallel()
	r := pay("hook-forged", silent)
	_, body := accept(t, r)
	e, secret := charged(chargeOf(t, r)), deployed.variables["WEBHOOK_SECRET"]
	unsigned := notice(t, e, secret, time.Now())
	unsigned.header = nil
	changed := notice(t, e, secret, time.Now())
	changed.body = strings.Replace(changed.body, "charge.succeeded", "charge.declined_", 1)
	for name, forged := range map[string]request{
		"unsigned": unsigned, "changed": changed, "another secret": notice(t, e, "whsec_of_somebody_else", time.Now()),
		"stale": notice(t, e, secret, time.Now().Add(-302*time.Second)), "ahead": notice(t, e, secret, time.Now().Add(330*time.Second)),
	} {
		before := evidenceOn(messageRow(t, body))
		got := deployed.tenantA.do(t, forged)
		got.isProblem(t, http.StatusUnauthorized, "webhook_signature_invalid")
		if op := deployed.tenantA.readOperation(t, body.Operation); op.State == "completed" {
			t.Fatalf("%s: the operation is %+v", name, op)
		}
		if after := evidenceOn(messageRow(t, body)); after != before {
			t.Errorf("%s: the message has %s, before it had %s", name, after, before)
		}
	}
	tell(t, e)
	settledOnce(t, r)
}

func TestWebhookForAMessageThatIsNotThereComesAgain(t *testing.T) { // payments-api.md: 404; 204 for what is not ours
	t.Parallel()
	r := pay("hook-unknown", card("hook_unknown"))
	final, charge := settledOnce(t, r)
	for _, key := range []string{unminted + ".1", strings.TrimSuffix(charge.Key, ".1") + ".2"} {
		e := charged(charge)
		e.Key, e.Data.Key = key, key
		for range 2 {
			deployed.tenantA.do(t, notice(t, e, deployed.variables["WEBHOOK_SECRET"], time.Now())).isProblem(t, http.StatusNotFound, "message_unknown")
		}
	}
	for _, key := range []string{"order-17", ""} {
		e := charged(charge)
		e.Key, e.Data.Key = key, key
		tell(t, e)
	}
	e := charged(charge)
	e.Type = "dispute.created"
	tell(t, e)
	same(t, deployed.tenantA.do(t, r), final)
}

func TestWebhookPathTakesNothingElse(t *testing.T) { // methods and neighbours are those of the whole API
	t.Parallel()
	got := deployed.tenantA.do(t, request{method: http.MethodGet, path: webhooks, anonymous: true})
	got.isProblem(t, http.StatusMethodNotAllowed, "method_not_allowed")
	deployed.tenantA.get(t, "/v1/webhooks/another").isProblem(t, http.StatusNotFound, "not_found")
	deployed.tenantA.get(t, "/v1/webhooks").isProblem(t, http.StatusNotFound, "not_found")
}
