package seal_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/klauspost/compress/zstd"
)

// marker is in everything that a tenant sends and gets.
const marker = "4111-1111-1111-1111"

// bodies are stored in the record, compressed in the record, in chunks, and compressed in chunks.
func bodies(t *testing.T) map[string][]byte {
	t.Helper()
	noise := make([]byte, 700<<10)
	rand.Read(noise)
	var long bytes.Buffer
	for long.Len() < 2<<20 {
		fmt.Fprintf(&long, `{"card":%q,"nonce":"%x"},`, marker, noise[long.Len()%(600<<10):][:16])
	}
	return map[string][]byte{
		"small": []byte(`{"card":"` + marker + `"}`), "compressible": bytes.Repeat([]byte(marker), 1000),
		"chunked": append(noise, marker...), "compressed and chunked": long.Bytes(),
	}
}

// No byte of what a tenant sent or got lies in any table as it was, nor is merely compressed.
func TestStoredBytesHoldNoPlaintext(t *testing.T) {
	for name, off := range map[string]bool{"sealed": false, "not sealed": true} {
		t.Run(name, func(t *testing.T) {
			b := newBank(t, dynamotest.Endpoint(t, dynamotest.Names()[0]))
			store := b.store(t, seal.Config{OpenOnly: off})
			engine := must(idem.New(store, idem.Config{}))(t)
			for kind, status := range map[storage.Kind]int{storage.KindAtomic: 201, storage.KindOptimistic: 201, storage.KindWrapped: 201, storage.KindDeferred: 202} {
				orders := must(engine.Register(idem.Operation{Name: "orders." + string(kind), Kind: kind, UnknownToOperator: kind == storage.KindWrapped, Policy: idem.IETF()}))(t)
				for size, body := range bodies(t) {
					if status == 202 && len(body) > 1<<10 {
						continue // a 202 is small
					}
					request := idem.Request{Tenant: "ada", Key: size, Input: canonical.Input{MediaType: "application/json", Body: []byte(`{"card":"` + marker + `"}`)}}
					for _, outcome := range []idem.Outcome{idem.OutcomeExecuted, idem.OutcomeReplayed} {
						result, err := orders.Do(t.Context(), request, func(_ context.Context, tx *idem.Tx) (storage.Response, error) {
							if status == 202 {
								tx.Send("orders.charge", []byte(`{"card":"`+marker+`"}`))
							}
							return storage.Response{Status: status, Header: []storage.Field{{Name: "Location", Value: "/cards/" + marker}}, Body: body}, nil
						})
						if err != nil || result.Outcome != outcome || !bytes.Equal(result.Response.Body, body) || result.Response.Get("Location") == "" {
							t.Fatalf("%s, %s: %+v, %v, want %s", kind, size, result.Outcome, err, outcome)
						}
					}
				}
			}
			b.settled(t, store)
			if found := b.find(t, marker); (found == "") == off {
				t.Errorf("found in %q", found)
			}
		})
	}
}

// settled ends a message with evidence and a chunked response, and leaves another with kept evidence.
func (b *bank) settled(t *testing.T, store *seal.Store) {
	t.Helper()
	for size, body := range bodies(t) {
		r, m := accepted(t, "ada", marker)
		commit(t, store, r, m)
		end := storage.MessageEnd{ID: m.ID, Tenant: "ada", Topic: m.Topic, State: storage.MessageDead, SweepAt: base, KeptDelivered: &storage.Kept{Evidence: body[:min(len(body), 72<<10)]}}
		settle := func(s storage.Settlement) {
			s.Token, s.Fence = string(owner(t)), storage.MessageFence{Open: true}
			send, err := store.PrepareSettle(s)
			ok(t, err)
			ok(t, send(t.Context()))
		}
		settle(storage.Settlement{Message: end})
		next := m
		next.ID, next.Index = m.OperationID.Message(2), 2
		end.State, end.DoneAt = storage.MessageDelivered, base
		settle(storage.Settlement{Message: end, Next: &next, Record: &storage.RecordEnd{
			Key: r.Key, OperationID: r.OperationID, State: storage.StateCompleted, DoneAt: base, ExpiresAt: base.Add(r.Retention),
			Response: storage.Response{Status: 201, Body: body},
		}})
		wantBody(t, store, r.Key, string(body))
		got, err := store.Message(t.Context(), m.ID)
		if err != nil || !bytes.Equal(got.KeptDelivered.Evidence, end.KeptDelivered.Evidence) || string(got.Payload) != marker {
			t.Errorf("%s: evidence of %d bytes, payload %q, %v", size, len(got.KeptDelivered.Evidence), got.Payload, err)
		}
	}
}

// find names the first attribute of any table in which the text lies, as it is or compressed.
func (b *bank) find(t *testing.T, text string) string {
	t.Helper()
	decoder := must(zstd.NewReader(nil))(t)
	defer decoder.Close()
	items := 0
	for _, table := range []string{b.tables.Idempotency, b.tables.Outbox, b.table} {
		pages := dynamodb.NewScanPaginator(b.client, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(t.Context())
			ok(t, err)
			for _, it := range page.Items {
				items++
				for name, value := range it {
					raw := fmt.Sprint(flat(value))
					plain, err := decoder.DecodeAll([]byte(raw), nil)
					if strings.Contains(raw, text) || err == nil && bytes.Contains(plain, []byte(text)) {
						return table + "." + name
					}
				}
			}
		}
	}
	if items < 20 {
		t.Errorf("scanned only %d items", items)
	}
	return ""
}

// flat is all of a value's text and bytes.
func flat(value types.AttributeValue) string {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberB:
		return string(v.Value)
	case *types.AttributeValueMemberL:
		var all strings.Builder
		for _, element := range v.Value {
			all.WriteString(flat(element))
		}
		return all.String()
	case *types.AttributeValueMemberM:
		var all strings.Builder
		for name, element := range v.Value {
			all.WriteString(name + flat(element))
		}
		return all.String()
	}
	return ""
}
