package faultproxy_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/localstack/faultproxy"
)

// The journal has what DynamoDB accepted and what it did not answer, and nothing that was refused, whoever refused it.
func TestTheJournalHasWhatWasWritten(t *testing.T) {
	b := startWith(t, faultproxy.Config{Journal: []string{"id", "st", "rv"}})
	b.upstream.answers(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.Header.Get("X-Case"), "refuse"):
			w.WriteHeader(http.StatusBadRequest)
		case strings.Contains(r.Header.Get("X-Case"), "silent"):
			panic(http.ErrAbortHandler)
		}
	})
	send := func(operation, kind, body string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.URL, strings.NewReader(body))
		b.must(err)
		req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
		req.Header.Set("X-Case", kind)
		req.GetBody = nil
		res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err == nil {
			_ = res.Body.Close()
		} else if kind != "silent" && kind != "lost" {
			t.Fatal(err)
		}
	}
	put := func(id string) string {
		return `{"TableName":"t","Item":{"id":{"S":"` + id + `"},"st":{"S":"pending"},"x":{"S":"not kept"},"m":{"M":{"id":{"S":"no"}}}}}`
	}
	send("PutItem", "", put("accepted"))
	send("PutItem", "refuse", put("refused"))
	send("PutItem", "silent", put("silent"))
	b.faults(faultproxy.Rule{Contains: "lost", Fault: faultproxy.DropReply}, faultproxy.Rule{Contains: "throttled", Fault: faultproxy.Throttle})
	send("PutItem", "lost", put("lost"))
	send("PutItem", "", put("throttled"))
	b.must(b.Reset(t.Context()))
	send("GetItem", "", `{"TableName":"t","Key":{"id":{"S":"read"}}}`)
	send("TransactWriteItems", "", `{"TransactItems":[
		{"Update":{"TableName":"u","Key":{"id":{"S":"updated"}},"UpdateExpression":"SET #0 = :0, y = :1 REMOVE z","ConditionExpression":"#0 = :2 AND (rv = :1 OR rv = :0)",
			"ExpressionAttributeNames":{"#0":"st"},"ExpressionAttributeValues":{":0":{"S":"delivered"},":1":{"N":"1"},":2":{"S":"claimed"}}}},
		{"ConditionCheck":{"TableName":"t","Key":{"id":{"S":"checked"}}}},
		{"Delete":{"TableName":"t","Key":{"id":{"S":"deleted"}}}}]}`)
	got, err := b.Writes(t.Context())
	b.must(err)
	var ids []string
	for _, w := range got.Writes {
		ids = append(ids, w.Values["id"])
		if w.Accepted != (w.Ended > w.Began) || w.Accepted == (w.Values["id"] == "silent") || w.At.IsZero() || len(w.Values) > 2 {
			t.Errorf("%+v", w)
		}
	}
	if strings.Join(ids, " ") != "accepted silent lost updated deleted" || got.Dropped != 0 || got.Next != 0 {
		t.Fatalf("the journal has %v, %+v", ids, got)
	}
	for i := range 2 {
		if got.Writes[i].Ended >= got.Writes[i+1].Began {
			t.Errorf("%+v does not end before %+v begins", got.Writes[i], got.Writes[i+1])
		}
	}
	updated, deleted := got.Writes[3], got.Writes[4]
	if updated.Table != "u" || updated.Whole || updated.Values["st"] != "delivered" || updated.Given["st"] != "claimed" || len(updated.Given) != 1 {
		t.Errorf("updated: %+v", updated)
	}
	if !deleted.Deleted || deleted.Whole || !got.Writes[0].Whole {
		t.Errorf("deleted: %+v, put: %+v", deleted, got.Writes[0])
	}
}

// A long journal is read in pages, and none of it is read twice.
func TestALongJournalIsReadWhole(t *testing.T) {
	b := startWith(t, faultproxy.Config{Journal: []string{"id"}})
	b.upstream.answers(func(http.ResponseWriter, *http.Request) {})
	const requests, rows = 90, 100
	item := `{"Put":{"TableName":"t","Item":{"id":{"S":"row"}}}}`
	body := `{"TransactItems":[` + strings.TrimSuffix(strings.Repeat(item+",", rows), ",") + `]}`
	for range requests {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.URL, strings.NewReader(body))
		b.must(err)
		req.Header.Set("X-Amz-Target", "DynamoDB_20120810.TransactWriteItems")
		res, err := http.DefaultClient.Do(req)
		b.must(err)
		b.must(res.Body.Close())
	}
	got, err := b.Writes(t.Context())
	b.must(err)
	if len(got.Writes) != requests*rows {
		t.Errorf("%d writes, want %d", len(got.Writes), requests*rows)
	}
}
