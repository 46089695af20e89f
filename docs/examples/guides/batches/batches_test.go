package batches

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

func TestThePageShowsBatches(t *testing.T) {
	page := check.NewPage(t, "batches.md")
	w := check.NewWorld(t)
	charges := check.Get(newCharges(w.Engine))(t)

	report, err := SQS(charges).Invoke(t.Context(), []byte(`{"Records": [
		{"messageId": "m1", "eventSource": "aws:sqs", "body": "{\"id\": \"a\", \"amount\": 500}"},
		{"messageId": "m2", "eventSource": "aws:sqs", "body": "{\"id\": \"a\", \"amount\": 500}"},
		{"messageId": "m3", "eventSource": "aws:sqs", "body": "{\"amount\": 100}"},
		{"messageId": "m4", "eventSource": "aws:sqs", "body": "{\"id\": \"a\", \"amount\": 900}"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	page.Text("report", string(report))
	if rows := w.Store.Rows(); len(rows) != 1 || string(rows["a"]) != "500" {
		t.Errorf("charged %q", rows)
	}

	records := []Record{
		{0, 7, []byte(`{"id":"a","amount":500}`)}, // charged before, from SQS
		{0, 8, []byte(`{"id":"b","amount":100}`)},
		{0, 9, []byte(`{"amount":100}`)},                   // no key
		{0, 10, []byte(`{"id":"c","amount":`)},             // cut off
		{0, 11, []byte(`{"id":"c","id":"d","amount":50}`)}, // JSON that can be read in two ways
		{0, 12, []byte(`{"id":"c","amount":50}`)},
	}
	var shown strings.Builder
	parked := 0
	park := func(r Record, err error) error {
		parked++
		fmt.Fprintf(&shown, "parked offset %d: %v\n", r.Offset, err)
		return nil
	}
	done, err := Consume(t.Context(), charges, records, park)
	if done != len(records) {
		t.Errorf("stopped at a record that can never succeed: done with %d of %d", done, len(records))
	}
	fmt.Fprintf(&shown, "done with %d records: %v\n", done, err)
	page.Text("partition", shown.String())
	if len(w.Store.Rows()) != 3 || parked != 3 {
		t.Errorf("charged %q, parked %d", w.Store.Rows(), parked)
	}
}

// A charged message that waited in two queues, for 14 days each, is no new one: its id with another amount is still refused.
func TestAKeyOutlivesTheQueues(t *testing.T) {
	w := check.NewWorld(t)
	charges := check.Get(newCharges(w.Engine))(t)
	deliver := func(amount int) string {
		t.Helper()
		report, err := SQS(charges).Invoke(t.Context(), fmt.Appendf(nil, `{"Records": [{"messageId": "m1", "body": "{\"id\": \"a\", \"amount\": %d}"}]}`, amount))
		if err != nil {
			t.Fatal(err)
		}
		return string(report)
	}
	if report := deliver(500); strings.Contains(report, "m1") {
		t.Error(report)
	}
	w.Clock.Advance(28 * 24 * time.Hour)
	if report := deliver(900); !strings.Contains(report, "m1") || string(w.Store.Rows()["a"]) != "500" {
		t.Errorf("%s, charged %q", report, w.Store.Rows())
	}
}

// While the store is down no offset is committed and nothing is parked: the consumer comes again.
func TestARecordThatFailsIsTriedAgain(t *testing.T) {
	w := check.NewWorld(t)
	down := faulty.New(w.Store)
	engine := check.Get(idem.New(down, idem.Config{Now: w.Clock.Now, Pause: w.Clock.Pause}))(t)
	charges := check.Get(newCharges(engine))(t)
	for try := range 6 { // idem.Config.ContentionTries
		down.On(faulty.Insert, try+1, faulty.Refuse(storage.ErrThrottled))
	}
	park := func(r Record, err error) error {
		t.Errorf("offset %d was parked: %v", r.Offset, err)
		return nil
	}
	records := []Record{{0, 7, []byte(`{"id":"a","amount":500}`)}}
	for want := range 2 {
		if done, err := Consume(t.Context(), charges, records, park); done != want || (err == nil) != (want == 1) {
			t.Errorf("done with %d (%v), want %d", done, err, want)
		}
	}
}
