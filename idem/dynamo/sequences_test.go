package dynamo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
	"github.com/idem-go/idem-aws/idem/storetest/sequences"
)

// The engine, a worker and an operator on real endpoints, by the SDK's own client. What fails is the wire, or DynamoDB as it
// says so itself.
func TestSequences(t *testing.T) {
	dynamotest.Each(t, func(t *testing.T, url string) {
		tables := createTables(t, dynamotest.Client(url))
		relay := wirefault.NewRelay(4)
		defer relay.Close()
		sequences.Run(t, sequences.Harness{
			Open: func(t *testing.T) storetest.Harness {
				wire := &wirefault.Transport{Next: relay}
				client := dynamotest.Client(url, func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: wire} })
				store := &preparing{Store: newStore(t, client, tables, dynamo.Config{}), tokens: map[string][]byte{}}
				t.Cleanup(func() { store.wantFrozen(t, wire.Sent()) })
				h := harness(client, tables, store.Store)
				h.Store = store
				return h
			},
			Faults: wireFaults(),
		})
	})
}

func wireFaults() sequences.Faults {
	throughput := wirefault.Throttle("ProvisionedThroughputExceededException")
	return sequences.Faults{
		LoseReply: onTheWire(wirefault.LoseReply), LoseRequest: onTheWire(wirefault.LoseRequest),
		Busy: map[string]faulty.Fault{
			"ThrottlingException":                      onTheWire(wirefault.Throttle("ThrottlingException")),
			"ProvisionedThroughputExceededException":   onTheWire(throughput),
			"RequestLimitExceeded":                     onTheWire(wirefault.Throttle("RequestLimitExceeded")),
			"TransactionConflict":                      onTheWire(wirefault.Conflict()),
			"ThrottlingError of an item":               onTheWire(wirefault.Either(wirefault.CancelledAt(0, throttle), throughput)),
			"ProvisionedThroughputExceeded of an item": onTheWire(wirefault.Either(wirefault.CancelledAt(0, provision), throughput)),
			"TransactionInProgressException":           onTheWire(wirefault.InProgress()),
		},
		CredentialsExpired: onTheWire(wirefault.Answer(http.StatusBadRequest, "ExpiredTokenException")),
	}
}

// onTheWire is a fault of a call to the store that its request meets.
func onTheWire(fault wirefault.Fault) faulty.Fault {
	return func(ctx context.Context, run func(context.Context) error) error {
		return run(wirefault.With(ctx, fault))
	}
}

// preparing keeps the tokens that transactions were prepared under.
type preparing struct {
	*dynamo.Store
	tokens map[string][]byte // with what was first sent under each
}

// Prepare implements storage.Store.
func (p *preparing) Prepare(c storage.Commit) (send func(context.Context) error, err error) {
	p.tokens[c.Token] = nil
	return p.Store.Prepare(c)
}

// PrepareSettle implements outbox.Store.
func (p *preparing) PrepareSettle(s storage.Settlement) (send func(context.Context) error, err error) {
	p.tokens[s.Token] = nil
	return p.Store.PrepareSettle(s)
}

// wantFrozen demands that each transaction was sent under the token that it was prepared under, and that all requests under one
// token are the same, byte for byte.
func (p *preparing) wantFrozen(t *testing.T, sent []wirefault.Request) {
	t.Helper()
	for _, request := range sent {
		var transaction struct{ ClientRequestToken string }
		if err := json.Unmarshal(request.Body, &transaction); err != nil {
			t.Errorf("%s: %v", request.Operation, err)
		}
		token := transaction.ClientRequestToken
		if token == "" {
			continue
		}
		first, prepared := p.tokens[token]
		if !prepared {
			t.Errorf("a transaction was sent under the token %s, which none was prepared under", token)
		}
		if first != nil && !bytes.Equal(first, request.Body) {
			t.Errorf("under the token %s were sent\n%s\nand\n%s", token, first, request.Body)
		}
		p.tokens[token] = request.Body
	}
}
