package drift_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/telemetry"
	"github.com/idem-go/idem-aws/internal/plaintext"
)

func sample() drift.Report {
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	return drift.Report{
		Window: drift.Window{From: at, To: at.Add(2 * time.Hour), Tenant: "tenant-a"}, Reached: at.Add(time.Hour), Unfinished: true, Unanswered: 2,
		Compared: drift.Counts{Rows: 3, Messages: 4, Records: 3, Objects: 4}, Open: 1, WithOperator: 1,
		Drift: map[drift.Kind]int{drift.MissingThere: 1, drift.AmountDiffers: 1},
		Drifts: []drift.Drift{
			{Kind: drift.MissingThere, Tenant: "tenant-a", Entry: "pay_1", Sides: []drift.Side{
				{What: "payment", ID: "pay_1", State: "succeeded", Amount: 1999, Currency: "EUR"}, {What: "provider charge", ID: "ch_1", State: "absent"},
			}},
			{Kind: drift.AmountDiffers, Tenant: "tenant-a", Entry: "pay_2", Sides: []drift.Side{
				{What: "payment", ID: "pay_2", State: "succeeded", Amount: 1999, Currency: "EUR"}, {What: "provider charge", ID: "ch_2", State: "succeeded", Amount: 2000, Currency: "EUR"},
			}},
		},
		Parked: []drift.Parked{{Tenant: "tenant-a", Entry: "pay_3", Message: "op_x.1", State: storage.MessageUnknown}},
		Cost:   drift.Cost{DynamoDBCalls: 7, ReadUnits: 12.5, ProviderCalls: 6},
	}
}

func TestTable(t *testing.T) {
	var got strings.Builder
	if err := sample().WriteTable(&got); err != nil {
		t.Fatal(err)
	}
	const want = `window          2026-11-21T10:00:00Z to 2026-11-21T12:00:00Z of tenant-a
compared        3 rows, 4 messages, 3 records, 4 provider objects
open            1
with operator   1
removed by TTL  0
late            0
cost            7 DynamoDB calls, 12.5 read units, 6 provider calls
drift           2: missing_there 1, amount_differs 1
unfinished      compared down to 2026-11-21T11:00:00Z
unanswered      2, not classified

KIND            TENANT    ENTRY  SIDES
missing_there   tenant-a  pay_1  payment pay_1 succeeded 1999 EUR | provider charge ch_1 absent
amount_differs  tenant-a  pay_2  payment pay_2 succeeded 1999 EUR | provider charge ch_2 succeeded 2000 EUR

WITH OPERATOR  TENANT    ENTRY  MESSAGE
unknown        tenant-a  pay_3  op_x.1
`
	if got.String() != want {
		t.Errorf("%s\nwant\n%s", &got, want)
	}
}

func TestJSONIsTheReport(t *testing.T) {
	var text bytes.Buffer
	if err := sample().WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	var back drift.Report
	decoder := json.NewDecoder(&text)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&back); err != nil || !reflect.DeepEqual(back, sample()) {
		t.Errorf("%+v, %v", back, err)
	}
}

// A tenant's name makes no line and no column of its own, and a terminal acts on nothing of it: JSON says the same to a program.
func TestAReportHasNothingThatATerminalWouldActOn(t *testing.T) {
	const evil, want = "a\x1b[2J\tb\nc\u200f", `a\x1b[2J\tb\nc\u200f`
	r := drift.Report{Window: drift.Window{Tenant: evil}, Drifts: []drift.Drift{{Kind: drift.MissingThere, Tenant: evil, Entry: evil, Sides: []drift.Side{{What: "payment", ID: evil}}}}, Parked: []drift.Parked{{Tenant: evil, Entry: evil}}}
	var table, text strings.Builder
	if err := errors.Join(r.WriteTable(&table), r.WriteJSON(&text)); err != nil {
		t.Fatal(err)
	}
	if strings.Count(table.String(), want) != 6 || strings.ContainsFunc(strings.ReplaceAll(table.String()+text.String(), "\n", ""), plaintext.Acted) {
		t.Errorf("%s%s", &table, &text)
	}
	var back drift.Report
	if err := json.Unmarshal([]byte(text.String()), &back); err != nil || back.Parked[0].Tenant != evil {
		t.Errorf("%+v, %v", back, err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestAReportThatCantBeWrittenIsAnError(t *testing.T) {
	if sample().WriteJSON(broken{}) == nil || sample().WriteTable(broken{}) == nil {
		t.Error("no error")
	}
}

func TestCleanIsWholeAndWithoutDrift(t *testing.T) {
	if !(drift.Report{Open: 1, WithOperator: 1, Removed: 1, Late: 1}).Clean() {
		t.Error("what is under way is drift")
	}
	for _, r := range []drift.Report{{Unfinished: true}, {Unreadable: 1}, {Unanswered: 1}, {Drift: map[drift.Kind]int{drift.Duplicate: 1}}} {
		if r.Clean() {
			t.Errorf("%+v is clean", r)
		}
	}
}

// A broken system has more drift than a person reads: all of it is counted, and the first of it is listed.
func TestAReportIsBounded(t *testing.T) {
	w := newWorld(t)
	const wrong = drift.ListedMax + 50
	for range wrong {
		w.charge("/charges", "", payment("card_ok"))
	}
	report := w.check()
	if report.Drift[drift.MissingHere] != wrong || len(report.Drifts) != drift.ListedMax || report.Clean() {
		t.Errorf("%d drifts, %d listed", report.DriftCount(), len(report.Drifts))
	}
}

// semantics.md "Metrics": a drift is a line and a metric, and so is a run that failed; nothing of a client's text is in
// either, and no tenant is a dimension.
func TestDriftIsAMetric(t *testing.T) {
	w := newWorld(t)
	var log bytes.Buffer
	handler, err := telemetry.NewHandler(slog.NewJSONHandler(&log, nil), telemetry.Config{Service: "test"})
	w.ok(err)
	logged := func(c *drift.Config) { c.Logger = slog.New(handler) }
	paid := w.pay("card_of_a_person")
	w.drifts(w.check(logged))
	if log.Len() > 0 {
		t.Errorf("a clean run logs %s", &log)
	}
	w.setRow(paid, "amt", 1)
	w.drifts(w.check(logged), drift.AmountDiffers)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for _, part := range []string{
		`"msg":"drift.found"`, `"Dimensions":[["service"]],"Metrics":[{"Name":"drift.found","Unit":"Count"}]`, `"drift.found":1`, `"kind":"amount_differs"`,
		`"tenant":"tenant-a"`, `"entry":"` + paid.ID + `"`,
	} {
		if len(lines) != 1 || !strings.Contains(lines[0], part) {
			t.Errorf("%s without %s", &log, part)
		}
	}
	for _, secret := range []string{"card_of_a_person", "order-17"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("%s shows %s", &log, secret)
		}
	}
	log.Reset()
	if _, err := w.job(logged, func(c *drift.Config) { c.ProviderURL = "http://127.0.0.1:1" }).Check(t.Context(), drift.Window{From: begin}); err == nil {
		t.Error("a provider that is not there is no error")
	}
	if !strings.Contains(log.String(), `"drift.failed":1`) {
		t.Errorf("%s", &log)
	}
}

func TestNewRefusesWhatCantBe(t *testing.T) {
	w := newWorld(t)
	for field, change := range map[string]func(*drift.Config){
		"Config.Client": func(c *drift.Config) { c.Client = nil },
		"Config.IdempotencyTable, OutboxTable, PaymentsTable": func(c *drift.Config) { c.PaymentsTable = "" },
		"Config.ProviderURL":     func(c *drift.Config) { c.ProviderURL = "provider" },
		"Config.ProviderTimeout": func(c *drift.Config) { c.ProviderTimeout = -1 },
		"Config.Window":          func(c *drift.Config) { c.Window = drift.WindowMax + 1 },
		"Config.Grace":           func(c *drift.Config) { c.ListingDelay = 2 * time.Minute },
		"Config.ListingDelay":    func(c *drift.Config) { c.ListingDelay = -1 },
		"Config.Retention":       func(c *drift.Config) { c.Retention = -1 },
		"Config.WorkMax":         func(c *drift.Config) { c.WorkMax = -1 },
		"Config.OlderReadsMax":   func(c *drift.Config) { c.OlderReadsMax = -1 },
		"Config.ObjectsMax":      func(c *drift.Config) { c.ObjectsMax = -1 },
	} {
		cfg := drift.Config{
			Client: w.client, IdempotencyTable: "i", OutboxTable: "o", PaymentsTable: "p", ProviderURL: w.provider.URL, Grace: time.Minute,
		}
		change(&cfg)
		_, err := drift.New(cfg)
		var refused *idem.ConfigError
		if !errors.As(err, &refused) || refused.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
