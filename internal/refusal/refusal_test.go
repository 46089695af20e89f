package refusal_test

import (
	"hash/crc32"
	"strconv"
	"testing"

	"github.com/idem-go/idem-aws/internal/refusal"
)

func TestReplyHasTheShapeOfTheRealService(t *testing.T) {
	for name, row := range map[string]struct {
		refusal refusal.Refusal
		status  int
		body    string
	}{
		"an exception of DynamoDB": {
			refusal.Of(refusal.TransactionInProgress), 400,
			`{"__type":"com.amazonaws.dynamodb.v20120810#TransactionInProgressException","message":"Transaction from previous request is still in progress"}`,
		},
		"an exception of the service in front": {
			refusal.Of(refusal.ServiceUnavailable), 503,
			`{"__type":"com.amazon.coral.availability#ServiceUnavailableException","message":"The service is temporarily unavailable."}`,
		},
		"a failure": {
			refusal.Of(refusal.InternalServerError), 500,
			`{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"Internal server error"}`,
		},
		"one item of a transaction": {
			refusal.CancelledAt(1, 2, refusal.ReasonConflict), 400,
			`{"CancellationReasons":[{"Code":"None"},{"Code":"TransactionConflict","Message":"Transaction is ongoing for the item"}],` +
				`"Message":"Transaction cancelled, please refer cancellation reasons for specific reasons [None, TransactionConflict]",` +
				`"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException"}`,
		},
		"all items of a transaction": {
			refusal.CancelledThroughout(2, "Sunspots"), 400,
			`{"CancellationReasons":[{"Code":"Sunspots","Message":"refused by a test"},{"Code":"Sunspots","Message":"refused by a test"}],` +
				`"Message":"Transaction cancelled, please refer cancellation reasons for specific reasons [Sunspots, Sunspots]",` +
				`"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			header, body := row.refusal.Reply()
			if row.refusal.Status != row.status || string(body) != row.body {
				t.Errorf("%d %s, want %d %s", row.refusal.Status, body, row.status, row.body)
			}
			if got, want := header.Get("X-Amz-Crc32"), strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10); got != want {
				t.Errorf("the checksum is %s, want %s", got, want)
			}
		})
	}
}
