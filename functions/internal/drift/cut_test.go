package drift_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/functions/internal/payments"
)

// A window that is compared from its end in many steps has each row and each object once, also where a step ends within a
// millisecond that has more rows than a page.
func TestStepsCompareEachRowOnce(t *testing.T) {
	w := newWorld(t)
	from := begin.Add(10 * time.Minute)
	for i := range 150 {
		w.plant(from.Add(time.Duration(i)*time.Second), payments.StatusSucceeded)
	}
	for range 130 {
		w.plant(from.Add(200*time.Second), payments.StatusSucceeded)
	}
	for i := range 150 {
		w.plant(from.Add(300*time.Second+time.Duration(i)*time.Millisecond), payments.StatusSucceeded)
	}
	w.waitUntil(from.Add(60 * time.Hour))
	whole := drift.Window{From: from, To: from.Add(time.Hour)}
	all, steps := drift.Report{Window: drift.Window{From: whole.To, To: whole.To}}, 0
	for left := whole; left.To.After(left.From); steps++ {
		report, err := w.job().CheckLast(t.Context(), left, nil, false, func(rows int) bool { return rows >= 100 })
		w.ok(err)
		if !report.Window.To.Equal(left.To) || !report.Window.From.Before(left.To) {
			t.Fatalf("%+v of %+v", report.Window, left)
		}
		left.To = report.Window.From
		all = all.Join(report, drift.ListedMax)
	}
	w.drifts(all)
	if all.Compared.Rows != 430 || all.Compared.Objects != 430 || all.Window != whole || steps != 4 {
		t.Errorf("%d steps: %+v", steps, all)
	}
}

// At ten thousand payments a second the provider makes 600,000 objects in the minute that its clock may be behind ours: more than wait in
// memory. Then fewer are read ahead, and nothing is looked at twice for it.
func TestMoreObjectsAMinuteThanWaitInMemoryCostNoSecondLook(t *testing.T) {
	w := newWorld(t)
	for i := range 500 {
		w.plant(begin.Add(10*time.Minute+time.Duration(i)*10*time.Millisecond), payments.StatusSucceeded)
	}
	w.waitUntil(begin.Add(60 * time.Hour)) // messages and records are removed by then
	window := drift.Window{From: begin.Add(10 * time.Minute), To: begin.Add(11 * time.Minute)}
	of := func(objectsMax int) drift.Report {
		report, err := w.job(func(c *drift.Config) { c.ObjectsMax = objectsMax }).Check(t.Context(), window)
		w.ok(err)
		w.drifts(report)
		return report
	}
	all, few := of(0), of(250)
	if few.Cost != all.Cost || few.Compared != all.Compared || all.Compared.Rows != 500 || all.Compared.Objects != 500 {
		t.Errorf("with 250 objects in memory: %+v, %+v; with all: %+v, %+v", few.Compared, few.Cost, all.Compared, all.Cost)
	}
}

// What one step has found, the next does not find again where it is told so.
func TestKnownFindingsAreNotReportedAgain(t *testing.T) {
	w := newWorld(t)
	w.setRow(w.pay("card_ok"), "amt", 1)
	w.clock.Advance(time.Hour)
	window := drift.Window{From: begin, To: w.clock.Now()}
	first, err := w.job().CheckLast(t.Context(), window, nil, false, nil)
	w.ok(err)
	w.drifts(first, drift.AmountDiffers)
	again, err := w.job().CheckLast(t.Context(), window, []string{first.Drifts[0].ID()}, false, nil)
	w.ok(err)
	w.drifts(again)
	if joined := first.Join(first, 10); joined.DriftCount() != 1 || joined.Compared.Rows != 2 {
		t.Errorf("%+v", joined)
	}
	if joined := first.Join(first, 0); joined.DriftCount() != 1 || len(joined.Drifts) != 0 {
		t.Errorf("%+v", joined)
	}
}

// After a loss of rows there may be any number of objects without one. They are told of while the listing goes on, so that they need
// not be held, each in the log, also those that the report has no room for.
func TestObjectsWithoutRowsAreToldOfOnTheWay(t *testing.T) {
	w := newWorld(t)
	const objects = 60_000
	w.waitUntil(begin.Add(2 * time.Hour))
	var lines countedLines
	var early int64
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		page := []map[string]any{}
		if r.URL.Path == "/charges" {
			after := 0
			fmt.Sscanf(r.URL.Query().Get("starting_after"), "ch_%d", &after)
			for n := after + 1; n <= min(after+100, objects); n++ {
				page = append(page, map[string]any{
					"id": fmt.Sprint("ch_", n), "object": "charge", "status": "succeeded", "key": "nobody's", "amount": 1, "currency": "EUR",
					"created_at": begin.Add(time.Hour - time.Duration(n)*time.Millisecond).Format(time.RFC3339Nano),
				})
			}
			if after+100 >= objects {
				early = lines.Load()
			}
		}
		w.ok(json.NewEncoder(out).Encode(page))
	}))
	t.Cleanup(server.Close)
	report, err := w.job(func(c *drift.Config) {
		c.ProviderURL, c.Logger = server.URL, slog.New(slog.NewJSONHandler(&lines, nil))
	}).CheckLast(t.Context(), drift.Window{From: begin, To: begin.Add(time.Hour)}, nil, false, nil)
	w.ok(err)
	if report.Drift[drift.MissingHere] != objects || len(report.Drifts) != drift.ListedMax || lines.Load() != objects {
		t.Errorf("%v, %d listed, %d lines", report.Drift, len(report.Drifts), lines.Load())
	}
	if early == 0 {
		t.Error("nothing was told of before the listing ended")
	}
}

// countedLines counts the lines of findings.
type countedLines struct{ atomic.Int64 }

func (c *countedLines) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(`"msg":"drift.found"`)) {
		c.Add(1)
	}
	return len(p), nil
}

// A look-up that fails once is made again: what it is about must not be left out.
func TestALookUpThatFailsOnceIsRepeated(t *testing.T) {
	w := newWorld(t)
	w.setRow(w.pay("card_ok"), "amt", 1)
	w.clock.Advance(time.Hour)
	var failed atomic.Bool
	report, err := w.job(func(c *drift.Config) {
		c.Authorize = func(next http.RoundTripper) http.RoundTripper {
			return transport(func(r *http.Request) (*http.Response, error) {
				if strings.Contains(r.URL.RawQuery, "key=") && failed.CompareAndSwap(false, true) {
					return nil, http.ErrServerClosed
				}
				return next.RoundTrip(r)
			})
		}
	}).Check(t.Context(), drift.Window{From: begin})
	w.ok(err)
	w.drifts(report, drift.AmountDiffers)
	if !failed.Load() || report.Unanswered != 0 {
		t.Errorf("%+v", report)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// A redirect is no answer of the provider's: the empty list of another place must not make each payment a drift.
func TestARedirectIsNotCompared(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("[]")) }))
	defer elsewhere.Close()
	w := newWorld(t)
	w.pay("card_ok")
	w.clock.Advance(time.Hour)
	report, err := w.job(func(c *drift.Config) {
		c.Authorize = func(next http.RoundTripper) http.RoundTripper {
			return transport(func(r *http.Request) (*http.Response, error) {
				if r.Response != nil {
					return next.RoundTrip(r)
				}
				return &http.Response{Status: "302 Found", StatusCode: http.StatusFound, Header: http.Header{"Location": {elsewhere.URL}}, Body: http.NoBody, Request: r}, nil
			})
		}
	}).Check(t.Context(), drift.Window{From: begin})
	if err == nil || len(report.Drifts) != 0 {
		t.Errorf("%+v, %v, want an error and no finding", report, err)
	}
}
