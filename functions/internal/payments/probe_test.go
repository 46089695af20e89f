package payments_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/idemtest"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// topics returns the application's topics at the address.
func topics(t *testing.T, url string) map[string]outbox.Topic {
	t.Helper()
	client, err := payments.NewProvider(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]outbox.Topic{}
	for _, topic := range client.Topics(payments.Bounds{AttemptsMax: 10}) {
		byName[topic.Name] = topic
	}
	return byName
}

func charge(source string) storage.Message {
	return message(`{"version":1,"payment":"pay_1","amount":1999,"currency":"EUR","source":"` + source + `","reference":"","created_at":"2026-11-21T00:00:00Z"}`)
}

func message(payload string) storage.Message {
	return storage.Message{ID: idem.MessageID(unusedOperation + ".1"), Tenant: tenantA, Payload: []byte(payload)}
}

// effect is one of each topic's, and where the provider shows all of its kind.
type effect struct {
	topic string
	kind  provider.Kind
	m     storage.Message
	all   func(*world) []provider.Object
}

// effects refund a charge and release a screening that they are given.
func effects(charged, screened string) []effect {
	about := `{"version":1,"payout":"po_1","from":"acct_1","amount":500,"currency":"EUR","destination":"iban","created_at":"2026-11-21T00:00:00Z"`
	screening := message(about + `}`)
	payout := message(about + `,"screening":"` + screened + `"}`)
	release := message(about + `,"screening":"` + screened + `","because":"not_executed","declined":""}`)
	refund := message(`{"version":1,"refund":"re_1","payment":"pay_1","charge":"` + charged + `","amount":500,"currency":"EUR","created_at":"2026-11-21T00:00:00Z"}`)
	return []effect{
		{payments.TopicCharges, provider.Charge, charge("card"), (*world).charges},
		{payments.TopicLegacyCharges, provider.LegacyCharge, charge("legacy_card"), (*world).charges},
		{payments.TopicRefunds, provider.Refund, refund, (*world).refunds},
		{payments.TopicScreenings, provider.Screening, screening, (*world).screenings},
		{payments.TopicPayouts, provider.Payout, payout, (*world).payouts},
		{payments.TopicLegacyPayouts, provider.LegacyPayout, payout, (*world).payouts},
		{payments.TopicReleases, provider.Release, release, (*world).releases},
	}
}

// docs/design.md "Sweep, reconciler, webhook and operator": a probe finds by the downstream key what a call made, in the
// words in which the call would have told it; what is not listed yet is absent, which alone proves nothing.
func TestProbeFindsWhatACallMade(t *testing.T) {
	for n, e := range effects("", "") {
		for name, fault := range map[string]provider.Fault{"delivered": provider.DropAfter, "declined": provider.Decline} {
			t.Run(e.topic+" "+name, func(t *testing.T) {
				clock := idemtest.NewClock(noon)
				simulator := provider.New(provider.Config{Now: clock.Now})
				server := httptest.NewServer(simulator)
				t.Cleanup(func() { simulator.Close(); server.Close() })
				w := &world{T: t, clock: clock, provider: provider.Control{URL: server.URL, Client: client}}
				charged := topics(t, server.URL)[payments.TopicCharges].Call(t.Context(), otherKey(charge("card"))).(outbox.Delivered)
				c := effects(charged.Reference, screened(t, server.URL))[n]
				delay := time.Minute.Milliseconds()
				w.ok(w.provider.Settings(t.Context(), provider.SettingsPatch{ListDelayMillis: &delay}))
				w.faults(provider.Rule{On: c.kind, Fault: fault}, provider.Rule{On: provider.List, Fault: provider.ErrorBefore, Times: 1})
				topic, m := topics(t, server.URL)[c.topic], c.m

				called := topic.Call(t.Context(), m)
				if found, ok := topic.Probe(t.Context(), m).(outbox.Unclear); !ok || found.Cause == nil || strings.Contains(found.Cause.Error(), "%!") {
					t.Errorf("a look-up that fails: %+v, want Unclear with its cause", found)
				}
				if found := topic.Probe(t.Context(), m); found != (outbox.Absent{}) {
					t.Errorf("not listed yet: %+v, want Absent", found)
				}
				clock.Advance(time.Minute)
				made := c.all(w)[0]
				if name == "declined" {
					found, _ := topic.Probe(t.Context(), m).(outbox.Found).Outcome.(outbox.Declined)
					if answered, ok := called.(outbox.Declined); !ok || found.Reference != made.ID || answered.Reference != made.ID {
						t.Errorf("called %+v, found %+v, made %+v", called, found, made)
					}
					return
				}
				found, _ := topic.Probe(t.Context(), m).(outbox.Found).Outcome.(outbox.Delivered)
				if _, ok := called.(outbox.Ambiguous); !ok || found.Reference != made.ID || len(found.Evidence) == 0 {
					t.Errorf("called %+v, found %+v, made %+v", called, found, made)
				}
			})
		}
	}
}

// screened is the id of a screening that the provider has made.
func screened(t *testing.T, url string) string {
	t.Helper()
	for _, e := range effects("", "") {
		if e.topic == payments.TopicScreenings {
			e.m.ID = idem.MessageID(unusedOperation + ".3")
			return topics(t, url)[e.topic].Call(t.Context(), e.m).(outbox.Delivered).Reference
		}
	}
	return ""
}

// The other endpoint's charges are not the message's, and another key's neither.
func TestProbeFindsNothingElse(t *testing.T) {
	simulator := provider.New(provider.Config{})
	server := httptest.NewServer(simulator)
	t.Cleanup(func() { simulator.Close(); server.Close() })
	topics, m := topics(t, server.URL), charge("card")
	if _, ok := topics[payments.TopicLegacyCharges].Call(t.Context(), m).(outbox.Delivered); !ok {
		t.Fatal("the charge was not made")
	}
	if found := topics[payments.TopicCharges].Probe(t.Context(), m); found != (outbox.Absent{}) {
		t.Errorf("another endpoint's charge: %+v", found)
	}
	if found := topics[payments.TopicLegacyCharges].Probe(t.Context(), otherKey(m)); found != (outbox.Absent{}) {
		t.Errorf("another key's charge: %+v", found)
	}
}

// otherKey is the same message under another key.
func otherKey(m storage.Message) storage.Message {
	m.ID = idem.MessageID(unusedOperation + ".2")
	return m
}

// What each topic takes the provider's refusals for: what is not listed may have happened.
func TestEachTopicClassesTheProvidersStatuses(t *testing.T) {
	status := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"id":"ch_1"}`)
	}))
	defer server.Close()
	for _, e := range effects("ch_0", "scr_0") {
		topic := topics(t, server.URL)[e.topic]
		for code, want := range map[int]outbox.Outcome{
			400: outbox.Refused{}, 401: outbox.NotExecuted{Unauthorized: true}, 402: outbox.Declined{}, 403: outbox.NotExecuted{Unauthorized: true}, 404: outbox.Refused{},
			409: outbox.Refused{Unproven: true}, 410: outbox.Ambiguous{}, 422: outbox.Refused{}, 425: outbox.Ambiguous{}, 429: outbox.NotExecuted{},
			303: outbox.Ambiguous{}, 500: outbox.Ambiguous{},
		} {
			status = code
			got := topic.Call(t.Context(), e.m)
			refused, _ := got.(outbox.Refused)
			waits, _ := got.(outbox.NotExecuted)
			wantRefused, _ := want.(outbox.Refused)
			wantWaits, _ := want.(outbox.NotExecuted)
			if got.Name() != want.Name() || refused.Unproven != wantRefused.Unproven || waits.Unauthorized != wantWaits.Unauthorized {
				t.Errorf("%s: %d is %#v, want %#v", e.topic, code, got, want)
			}
		}
	}
}

// What a call is answered is judged like what a probe finds and what a webhook tells: an object of another status or another key is
// no evidence, whatever the answer's status is. What the object does not tell contradicts nothing.
func TestAnAnswerWhoseObjectSaysSomethingElseIsAmbiguous(t *testing.T) {
	code, body := 0, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	key, another := `"key":"`+unusedOperation+`.1"`, `"key":"`+unusedOperation+`.7"`
	for _, e := range effects("ch_0", "scr_0") {
		topic := topics(t, server.URL)[e.topic]
		for _, c := range []struct {
			code int
			body string
			want outbox.Outcome
		}{
			{201, `{"id":"x","status":"processing"}`, outbox.Ambiguous{}},
			{201, `{"id":"` + strings.Repeat("x", 256) + `","status":"succeeded"}`, outbox.Ambiguous{}},
			{402, `{"id":"` + strings.Repeat("x", 256) + `","status":"declined"}`, outbox.Ambiguous{}},
			{200, `{"id":"x","status":"declined"}`, outbox.Ambiguous{}},
			{201, `{"id":"x","status":"succeeded",` + another + `}`, outbox.Ambiguous{}},
			{402, `{"id":"x","status":"succeeded"}`, outbox.Ambiguous{}},
			{402, `{"id":"x","status":"declined",` + another + `}`, outbox.Ambiguous{}},
			{201, `{"id":"x"}`, outbox.Delivered{}},
			{201, `{"id":"x","status":"succeeded",` + key + `}`, outbox.Delivered{}},
			{402, `{"id":"x"}`, outbox.Declined{}},
			{402, `{"id":"x","status":"declined",` + key + `}`, outbox.Declined{}},
		} {
			code, body = c.code, c.body
			if got := topic.Call(t.Context(), e.m); got.Name() != c.want.Name() {
				t.Errorf("%s: %d %s is %s, want %s", e.topic, c.code, c.body, got.Name(), c.want.Name())
			}
		}
	}
}

// A list that the provider did not make by the key proves nothing: neither what is on it nor what is not.
func TestAnOperationIsMadeOfNoObjectOfAnotherKey(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `[{"id":"ch_9","object":"charge","key":"`+unusedOperation+`.7","status":"succeeded","amount":1999,"currency":"EUR"}]`)
	}))
	defer server.Close()
	client, err := payments.NewProvider(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if made, err := client.MadeBy(t.Context(), idem.OperationID(unusedOperation), "charge"); err == nil {
		t.Errorf("%+v, want an error", made)
	}
}

// What can't be read decides nothing, whatever it looks like. Money that moved under the key has moved, whatever else was
// declined under it.
func TestProbeJudgesTheAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"nothing":                    {200, `[]`, "absent"},
		"found":                      {200, `[{"id":"ch_1","status":"succeeded"}]`, "delivered ch_1"},
		"declined":                   {200, `[{"id":"ch_1","status":"declined"}]`, "declined ch_1"},
		"declined after it happened": {200, `[{"id":"ch_2","status":"declined"},{"id":"ch_1","status":"succeeded"}]`, "delivered ch_1"},
		"another status":             {200, `[{"id":"ch_1","status":"processing"}]`, "unclear"},
		"one is not decided yet":     {200, `[{"id":"ch_2","status":"processing"},{"id":"ch_1","status":"declined"}]`, "unclear"},
		"an id":                      {200, `[{"id":"` + strings.Repeat("x", 255) + `","status":"succeeded"}]`, "delivered " + strings.Repeat("x", 255)},
		"an id too long for one":     {200, `[{"id":"` + strings.Repeat("x", 256) + `","status":"succeeded"}]`, "unclear"},
		"too large to be kept":       {200, `[{"id":"ch_1","status":"succeeded","more":"` + strings.Repeat("x", outbox.EvidenceBytesMax) + `"}]`, "unclear"},
		"no id":                      {200, `[{"status":"succeeded"}]`, "unclear"},
		"no object":                  {200, `["ch_1"]`, "unclear"},
		"null":                       {200, `null`, "unclear"},
		"no array":                   {200, `{"data":[]}`, "unclear"},
		"no JSON":                    {200, `<html>`, "unclear"},
		"nothing at all":             {200, ``, "unclear"},
		"half":                       {200, `[{"id":"ch_1","status":"succeeded"}`, "unclear"},
		"another key's":              {200, `[{"id":"ch_9","key":"` + unusedOperation + `.7","status":"succeeded"}]`, "unclear"},
		"another key's too": {
			200, `[{"id":"ch_9","key":"` + unusedOperation + `.7","status":"succeeded"},{"id":"ch_1","key":"` + unusedOperation + `.1","status":"succeeded"}]`, "delivered ch_1",
		},
		"a decline and another key's": {
			200, `[{"id":"ch_1","key":"` + unusedOperation + `.1","status":"declined"},{"id":"ch_9","key":"` + unusedOperation + `.7","status":"succeeded"}]`, "unclear",
		},
		"another key's and one without a key": {
			200, `[{"id":"ch_9","key":"` + unusedOperation + `.7","status":"succeeded"},{"id":"ch_1","key":null,"status":"succeeded"}]`, "unclear",
		},
		"one without a key and another key's": {
			200, `[{"id":"ch_1","status":"succeeded"},{"id":"ch_9","key":"` + unusedOperation + `.7","status":"succeeded"}]`, "unclear",
		},
		"another key's between one without a key and its own": {
			200, `[{"id":"ch_2","status":"succeeded"},{"id":"ch_9","key":"` + unusedOperation + `.7","status":"declined"},{"id":"ch_1","key":"` + unusedOperation + `.1","status":"succeeded"}]`, "delivered ch_1",
		},
		"another key's, which has no status": {
			200, `[{"id":"ch_1","status":"succeeded"},{"id":"ch_9","key":"` + unusedOperation + `.7"}]`, "unclear",
		},
		"a key that is none beside one without a key": {200, `[{"id":"ch_1","status":"succeeded"},{"id":"ch_9","key":7,"status":"succeeded"}]`, "unclear"},
		"a key that is none":                          {200, `[{"id":"ch_9","key":7,"status":"succeeded"}]`, "unclear"},
		"more than is read":                           {200, `[` + strings.Repeat(" ", 1<<20) + `]`, "unclear"},
		"404":                                         {404, `[]`, "unclear"},
		"503":                                         {503, `[]`, "unclear"},
		"204":                                         {204, ``, "unclear"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.URL.Path != "/charges" || r.URL.Query().Get("key") != unusedOperation+".1" {
					t.Errorf("asked %s %s", r.Method, r.URL)
				}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			}))
			defer server.Close()
			got := "absent"
			switch found := topics(t, server.URL+"/")[payments.TopicCharges].Probe(t.Context(), charge("card")).(type) {
			case outbox.Found:
				switch o := found.Outcome.(type) {
				case outbox.Delivered:
					got = "delivered " + o.Reference
				case outbox.Declined:
					got = "declined " + o.Reference
				}
			case outbox.Unclear:
				got = "unclear"
				if found.Cause == nil || strings.Contains(found.Cause.Error(), "%!") || errors.Unwrap(found.Cause) == found.Cause {
					t.Errorf("cause %v", found.Cause)
				}
			}
			if got != c.want {
				t.Errorf("found %s, want %s", got, c.want)
			}
		})
	}
}

func TestProbeOfADeadProviderIsUnclear(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	topic := topics(t, server.URL)[payments.TopicCharges]
	if found, ok := topic.Probe(t.Context(), charge("card")).(outbox.Unclear); !ok || found.Cause == nil {
		t.Errorf("%+v, want Unclear", found)
	}
	if o, ok := topic.Call(t.Context(), charge("card")).(outbox.NotExecuted); !ok {
		t.Errorf("called: %+v, want NotExecuted: nothing was sent", o)
	}
}

func TestProviderURLIsChecked(t *testing.T) {
	for _, url := range []string{"", "provider", "provider:4580", "ftp://provider", "http://", "/charges", "://"} {
		if _, err := payments.NewProvider(url, nil); err == nil || !strings.Contains(err.Error(), "PROVIDER_URL") {
			t.Errorf("%q: %v, want an error that names PROVIDER_URL", url, err)
		}
	}
}
