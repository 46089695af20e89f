package idemtest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/idemtest"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

func operation(kind idem.Kind) idem.Operation {
	return idem.Operation{Name: "payouts.create", Kind: kind, Policy: idem.IETF()}
}

// pays debits the account and, where it is to be paid out by a message, sends that.
func pays(status int, send bool) func(*memstore.Store) idem.Handler {
	return func(*memstore.Store) idem.Handler {
		return func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Write(debit{"acct_1", 30})
			if send {
				tx.Send("payouts.send", []byte("30"))
			}
			return idem.JSON(status, map[string]string{"id": string(tx.OperationID())})
		}
	}
}

// bank is a provider that knows what it paid.
type bank struct {
	mu   sync.Mutex
	paid map[idem.MessageID]bool
}

func (b *bank) call(_ context.Context, m storage.Message) outbox.Outcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.paid == nil {
		b.paid = map[idem.MessageID]bool{}
	}
	b.paid[m.ID] = true
	return outbox.Delivered{Reference: "po_1"}
}

func (b *bank) probe(_ context.Context, m storage.Message) outbox.Finding {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.paid[m.ID] {
		return outbox.Absent{}
	}
	return outbox.Found{Outcome: outbox.Delivered{Reference: "po_1"}}
}

func (b *bank) topic(keys outbox.Keys) outbox.Topic {
	return outbox.Topic{Name: "payouts.send", Keys: keys, Call: b.call, Settle: func(m storage.Message, _ outbox.Outcome) (outbox.Settlement, error) {
		response, err := idem.JSON(http.StatusCreated, "paid out")
		return outbox.Settlement{Writes: []idem.Write{debit{"fees", 1}}, Response: response}, err
	}}
}

var honoured = outbox.Keys{Honoured: true, Retention: 24 * time.Hour}

func TestApplicationsThatKeepToTheTransactionSurviveEveryCrash(t *testing.T) {
	probed := new(bank)
	found := probed.topic(outbox.Keys{})
	found.Probe = probed.probe
	for name, app := range map[string]idemtest.App{
		"atomic":                        {Operation: operation(idem.KindAtomic), Handler: pays(201, false)},
		"optimistic":                    {Operation: operation(idem.KindOptimistic), Handler: pays(201, false)},
		"atomic with a message":         {Operation: operation(idem.KindAtomic), Handler: pays(201, true), Topics: []outbox.Topic{new(bank).topic(honoured)}},
		"a message that nobody takes":   {Operation: operation(idem.KindDeferred), Handler: pays(202, true)},
		"deferred":                      {Operation: operation(idem.KindDeferred), Handler: pays(202, true), Topics: []outbox.Topic{new(bank).topic(honoured)}},
		"deferred, inline":              {Operation: operation(idem.KindDeferred), Handler: pays(202, true), Topics: []outbox.Topic{new(bank).topic(honoured)}, Inline: true},
		"a provider without keys":       {Operation: operation(idem.KindDeferred), Handler: pays(202, true), Topics: []outbox.Topic{new(bank).topic(outbox.Keys{})}},
		"a provider that can be probed": {Operation: operation(idem.KindDeferred), Handler: pays(202, true), Topics: []outbox.Topic{found}},
	} {
		t.Run(name, func(t *testing.T) {
			app.Translate, app.Rows = toRow, map[string][]byte{"acct_1": []byte("100"), "fees": []byte("5")}
			if n := idemtest.Crash(t, app); n < 4 {
				t.Errorf("%d crashes prove nothing", n)
			}
		})
	}
}

// A rejection is an answer like any other, and writes nothing.
func TestARejectionSurvivesEveryCrash(t *testing.T) {
	idemtest.Crash(t, idemtest.App{
		Operation: operation(idem.KindAtomic), Handler: pays(201, false), Translate: toRow,
		Rows: map[string][]byte{"acct_1": []byte("10")},
	})
}

// put is a native write of a row that says whose it is.
func put(key string) memstore.Write {
	return memstore.Write{Key: key, Apply: func([]byte) []byte { return []byte("paid") }}
}

func TestCrashCatchesWhatIsDoneOutsideOfTheTransaction(t *testing.T) {
	runs, asked := 0, map[*memstore.Store]int{} // what is outside of all rows, as a file is
	for name, c := range map[string]struct {
		handler func(rows *memstore.Store) idem.Handler
		want    string
	}{
		"a row that counts": {func(rows *memstore.Store) idem.Handler {
			return func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
				rows.PutRow("count", append(rows.Row("count"), '+'))
				tx.Write(put(string(tx.OperationID())))
				return idem.Response{Status: 201}, nil
			}
		}, `row "count" is ++, without a crash +`},
		"a row under an id of its own": {func(rows *memstore.Store) idem.Handler {
			return func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
				runs++
				rows.PutRow(fmt.Sprint("payment ", runs), []byte("paid"))
				tx.Write(put(string(tx.OperationID())))
				return idem.Response{Status: 201}, nil
			}
		}, "there are 3 rows, without a crash 2"},
		"an answer that tells of another run": {func(rows *memstore.Store) idem.Handler {
			return func(context.Context, *idem.Tx) (idem.Response, error) {
				rows.PutRow("count", append(rows.Row("count"), '+'))
				return idem.JSON(201, string(rows.Row("count")))
			}
		}, `the response is "++", without a crash "+"`},
		"a message that tells of another run": {func(rows *memstore.Store) idem.Handler {
			return func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
				asked[rows]++
				tx.Send("payouts.send", fmt.Append(nil, 30*asked[rows]))
				return idem.Response{Status: 201}, nil
			}
		}, "message 1 to payouts.send says 60, without a crash 30"},
		"a write that is made only the first time": {func(rows *memstore.Store) idem.Handler {
			return func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
				if rows.Row("seen") == nil {
					rows.PutRow("seen", []byte("yes"))
					tx.Write(put("payment"))
				}
				return idem.Response{Status: 201}, nil
			}
		}, "0 business writes were made, without a crash 1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := watch(t, func(r *recorder) {
				idemtest.Crash(r, idemtest.App{Operation: operation(idem.KindAtomic), Handler: c.handler})
			})
			if all := strings.Join(r.errors, "\n"); !strings.Contains(all, c.want) {
				t.Errorf("the test said:\n%s\nwant: %s", all, c.want)
			}
		})
	}
}

// What the effect of a message depends on must not be in the process.
func TestCrashCatchesASettlementThatForgets(t *testing.T) {
	settle := func(known *bool) outbox.Topic {
		topic := new(bank).topic(honoured)
		topic.Settle = func(storage.Message, outbox.Outcome) (outbox.Settlement, error) {
			var writes []idem.Write
			if *known {
				writes = append(writes, put("paid"))
			}
			return outbox.Settlement{Writes: writes, Response: idem.Response{Status: 201}}, nil
		}
		return topic
	}
	known := false
	r := watch(t, func(r *recorder) {
		idemtest.Crash(r, idemtest.App{
			Operation: operation(idem.KindDeferred), Topics: []outbox.Topic{settle(&known)},
			Handler: func(*memstore.Store) idem.Handler {
				known = false // a process that starts knows nothing
				return func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
					known = true
					tx.Send("payouts.send", nil)
					return idem.Response{Status: 202}, nil
				}
			},
		})
	})
	if all := strings.Join(r.errors, "\n"); !strings.Contains(all, "0 business writes were made, without a crash 1") {
		t.Errorf("the test said:\n%s", all)
	}
}

func TestCrashRefusesWhatItCannotJudge(t *testing.T) {
	handler := pays(201, false)
	unwired, later := new(bank).topic(outbox.Keys{}), new(bank).topic(outbox.Keys{})
	unwired.Call = func(context.Context, storage.Message) outbox.Outcome { return outbox.Ambiguous{} }
	unwired.Probe = func(context.Context, storage.Message) outbox.Finding { return outbox.Unclear{} }
	later.Call = func(context.Context, storage.Message) outbox.Outcome {
		return outbox.NotExecuted{RetryAfter: 2 * time.Hour}
	}
	deferred := func(topic outbox.Topic) idemtest.App {
		return idemtest.App{
			Operation: operation(idem.KindDeferred), Handler: pays(202, true), Translate: toRow, Topics: []outbox.Topic{topic},
			Rows: map[string][]byte{"acct_1": []byte("100"), "fees": []byte("5")},
		}
	}
	for want, app := range map[string]idemtest.App{
		"App.Handler must be given": {Operation: operation(idem.KindAtomic)},
		"no transaction":            {Operation: operation(idem.KindWrapped), Handler: handler},
		"App.Inline is for":         {Operation: operation(idem.KindDeferred), Handler: handler, Inline: true},
		"App.Translate":             {Operation: operation(idem.KindAtomic), Handler: handler},
		"after 1h0m0s of its clock message 1 to payouts.send is unknown": deferred(unwired),
		"after 1h0m0s of its clock message 1 to payouts.send is pending": deferred(later),
		"the answer 503 is not stored":                                   {Operation: operation(idem.KindAtomic), Handler: pays(503, false), Translate: toRow},
		"Operation.Name":                                                 {Operation: idem.Operation{Kind: idem.KindAtomic}, Handler: handler},
		"the request fails: idem: handler:": {Operation: operation(idem.KindAtomic), Handler: func(*memstore.Store) idem.Handler {
			return func(context.Context, *idem.Tx) (idem.Response, error) { return idem.Response{}, fmt.Errorf("broken") }
		}},
	} {
		t.Run(want, func(t *testing.T) { fails(t, want, func(r *recorder) { idemtest.Crash(r, app) }) })
	}
}
