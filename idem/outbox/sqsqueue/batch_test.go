package sqsqueue_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/sqsqueue"
	"github.com/idem-go/idem-aws/idem/sdkhttp"
)

// SQS API reference, SendMessage: MessageGroupId is 1 to 128 letters, digits and punctuation.
func TestGroupIsWhatSQSTakes(t *testing.T) {
	for _, c := range []struct {
		tenant string
		itself bool
	}{
		{"tenant-a", true}, {"a!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~z", true}, {strings.Repeat("t", 128), true},
		{strings.Repeat("t", 129), false}, {"two words", false}, {"tab\t", false}, {"Bäckerei", false}, {"\x7f", false}, {"", false},
	} {
		group := sqsqueue.Group(c.tenant)
		if (group == c.tenant) != c.itself || len(group) == 0 || len(group) > 128 || strings.ContainsAny(group, " \t\x7f") {
			t.Errorf("group of %q is %q", c.tenant, group)
		}
	}
	if sqsqueue.Group("two words") == sqsqueue.Group("two  words") {
		t.Error("two tenants share a group")
	}
}

func wakeUps(n int) []sqsqueue.WakeUp {
	all := make([]sqsqueue.WakeUp, n)
	for i := range all {
		all[i] = sqsqueue.WakeUp{Tenant: "tenant " + fmt.Sprint(i%2), Message: idem.MessageID(strings.TrimSuffix(string(id), "1") + fmt.Sprint(i+1))}
	}
	return all
}

// What Send writes, Read reads, and each wake-up stands in its tenant's group.
func TestSendFillsTheQueue(t *testing.T) {
	q := newPair(t)
	sent := wakeUps(23)
	for i, err := range sqsqueue.Send(t.Context(), q.client, q.wakeUps, sent) {
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	got := q.drain(t, q.wakeUps)
	for _, w := range sent {
		m, ok := got[w.Message]
		if !ok || m.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)] != sqsqueue.Group(w.Tenant) {
			t.Errorf("%s of %q: %v", w.Message, w.Tenant, m.Attributes)
		}
	}
	if len(got) != len(sent) {
		t.Errorf("%d in the queue, want %d", len(got), len(sent))
	}
	if failed := sqsqueue.Send(t.Context(), q.client, q.wakeUps, nil); len(failed) != 0 {
		t.Errorf("nothing to send: %v", failed)
	}
}

// What a sweep offers, Waiting counts, and Read reads.
func TestOffersWaitInTheQueue(t *testing.T) {
	q := newPair(t)
	for i, err := range q.Offer(t.Context(), wakeUps(outbox.OfferBatchMax)) {
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	if n, err := q.Waiting(t.Context()); err != nil || n != outbox.OfferBatchMax {
		t.Errorf("%d wait, %v; want %d", n, err, outbox.OfferBatchMax)
	}
	if got := q.drain(t, q.wakeUps); len(got) != outbox.OfferBatchMax {
		t.Errorf("%d in the queue", len(got))
	}
	for _, call := range []string{"SendMessageBatch", "GetQueueAttributes"} {
		q.broken.Store(&call)
		failed := q.Offer(t.Context(), wakeUps(3))
		n, err := q.Waiting(t.Context())
		if len(failed) != 3 || (failed[2] != nil) != (call == "SendMessageBatch") || (err != nil) == (call == "SendMessageBatch") {
			t.Errorf("without %s: %v; %d, %v", call, failed, n, err)
		}
	}
}

var _ outbox.BatchWakeUps = (*sqsqueue.Queue)(nil)

// Each wake-up has its own outcome: SQS may refuse one of a batch, or not speak of it, and a request may fail altogether.
func TestSendReportsEachWakeUp(t *testing.T) {
	requests := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		if requests == 2 {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"Successful": []map[string]string{{"Id": "0", "MessageId": "m"}, {"Id": "77", "MessageId": "m"}, {"Id": "x", "MessageId": "m"}},
			"Failed":     []map[string]any{{"Id": "1", "Code": "InternalError", "SenderFault": false}},
		})
	}))
	t.Cleanup(srv.Close)
	client := newClient(srv.URL, func(o *sqs.Options) { o.RetryMaxAttempts, o.DisableMessageChecksumValidation = 1, true })
	failed := sqsqueue.Send(t.Context(), client, srv.URL+"/0/wake-ups", wakeUps(13))
	if len(failed) != 13 || failed[0] != nil || !strings.Contains(fmt.Sprint(failed[1]), "InternalError") || !strings.Contains(fmt.Sprint(failed[2]), "not acknowledged") {
		t.Errorf("%v", failed)
	}
	for i, err := range failed[1:] {
		if err == nil {
			t.Errorf("%d did not fail", i+1)
		}
	}
	if requests != 2 {
		t.Errorf("%d requests for 13 wake-ups", requests)
	}
}

func newClient(url string, options ...func(*sqs.Options)) *sqs.Client {
	return sqs.New(sqs.Options{
		BaseEndpoint: &url, Region: "us-east-1", Credentials: testCredentials{},
		HTTPClient: sdkhttp.BufferedBody(nil),
	}, options...)
}

func text(p *string) string { return aws.ToString(p) }
