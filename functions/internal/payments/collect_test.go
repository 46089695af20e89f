package payments_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	shape "github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/idemtest"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// collecting opens acct_c, which collects in so many partitions.
func (w *world) collecting(partitions int) {
	w.Helper()
	w.open(payments.Account{Tenant: tenantA, ID: "acct_c", Currency: "EUR", Partitions: partitions})
}

func (w *world) folder() payments.Folder {
	return payments.Folder{Collections: w.backend.collections, RefuseBefore: w.store.RefuseBefore, Now: w.clock.Now, Pause: w.clock.Pause}
}

// folds demands that a run folds so many transfers, and leaves none.
func (w *world) folds(n int) {
	w.Helper()
	if did, err := w.folder().Run(w.Context()); err != nil || did != (payments.Folded{Accounts: 1, Transfers: n}) {
		w.Errorf("%+v, %v, want %d folded", did, err, n)
	}
}

// has demands what GET /v1/accounts/acct_c says.
func (w *world) has(balance, incoming int64, transfers int, more bool) {
	w.Helper()
	want := fmt.Sprintf(`{"id":"acct_c","currency":"EUR","balance":%d,"incoming":{"amount":%d,"transfers":%d,"more":%t}}`, balance, incoming, transfers, more)
	if got := w.get(tenantA, "/v1/accounts/acct_c").want(200); got.body != want {
		w.Errorf("%s, want %s", got.body, want)
	}
}

// docs/payments-api.md "Collecting accounts": a transfer to one waits, can't be spent before it is folded, and is folded once.
func TestTransferToACollectingAccountWaits(t *testing.T) {
	onBoth(t, func(w *world) {
		w.collecting(2)
		w.has(0, 0, 0, false)
		first := w.post(tenantA, "/v1/transfers", "k", transfer("acct_1", "acct_c", 500)).want(201, "Idempotency-Status: executed")
		w.post(tenantA, "/v1/transfers", "k", transfer("acct_1", "acct_c", 500)).want(201, "Idempotent-Replayed: true").same(first)
		w.post(tenantA, "/v1/transfers", "k2", transfer("acct_1", "acct_c", 30)).want(201)
		w.has(0, 530, 2, false)
		w.post(tenantA, "/v1/transfers", "early", transfer("acct_c", "acct_2", 1)).problem(402, "insufficient_funds")
		w.folds(2)
		w.has(530, 0, 0, false)
		w.folds(0)
		w.has(530, 0, 0, false)
		w.post(tenantA, "/v1/transfers", "too much", transfer("acct_c", "acct_2", 531)).problem(402, "insufficient_funds")
		w.post(tenantA, "/v1/transfers", "all", transfer("acct_c", "acct_2", 530)).want(201)
		w.balances(tenantA, seedBalance-530, 530)
		w.has(0, 0, 0, false)
	})
}

// A payout from a collecting account takes from the balance, and what is given back is in the balance at once.
func TestPayoutFromACollectingAccount(t *testing.T) {
	onBoth(t, func(w *world) {
		w.collecting(1)
		w.post(tenantA, "/v1/transfers", "in", transfer("acct_1", "acct_c", 500)).want(201)
		body := `{"from":"acct_c","amount":500,"currency":"EUR","destination":"iban_no"}`
		w.post(tenantA, "/v1/payouts", "early", body).problem(402, "insufficient_funds")
		w.folds(1)
		w.faults(provider.Rule{On: provider.Payout, Destination: "iban_no", Fault: provider.Decline})
		w.post(tenantA, "/v1/payouts", "declined", body).problem(402, "payout_declined")
		w.has(500, 0, 0, false)
	})
}

// docs/design.md I6: transfers, debits and folds side by side; nothing is lost, counted twice or overdrawn.
func TestFoldsBesideTransfersConserveMoney(t *testing.T) {
	onBoth(t, func(w *world) {
		w.collecting(3)
		w.post(tenantA, "/v1/transfers", "begin", transfer("acct_1", "acct_c", 50)).want(201)
		w.folds(1)
		var stop, folding sync.WaitGroup
		done := make(chan struct{})
		for range 2 {
			folding.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
						_, _ = w.folder().Run(w.Context()) // two of them come in each other's way
					}
				}
			})
		}
		const each = 40
		var mu sync.Mutex
		var moved int64
		for n := range each {
			stop.Go(func() {
				w.post(tenantA, "/v1/transfers", fmt.Sprint("in", n), transfer("acct_1", "acct_c", int64(n+1))).want(201)
			})
			stop.Go(func() {
				got := w.post(tenantA, "/v1/transfers", fmt.Sprint("out", n), transfer("acct_c", "acct_2", 60))
				if got.status != 201 && got.status != 402 {
					w.Errorf("%d %s", got.status, got.body)
				}
				if got.status == 201 {
					mu.Lock()
					defer mu.Unlock()
					moved += 60
				}
			})
		}
		stop.Wait()
		close(done)
		folding.Wait()
		if _, err := w.folder().Run(w.Context()); err != nil {
			w.Error(err)
		}
		const sum = 50 + each*(each+1)/2
		w.has(sum-moved, 0, 0, false)
		w.balances(tenantA, seedBalance-sum, moved)
	})
}

// What is told of is bounded; what is folded is all of it, and each page is one transaction.
func TestFoldOfMoreThanATransactionTakes(t *testing.T) {
	onBoth(t, func(w *world) {
		w.collecting(1)
		const n = 2*payments.FoldMax + 5
		w.simultaneously(n, func(i int) answer {
			for { // the payer is one item: a transfer may be told to come again
				if got := w.post(tenantA, "/v1/transfers", fmt.Sprint(i), transfer("acct_1", "acct_c", 2)); got.status != http.StatusServiceUnavailable {
					return got.want(201)
				}
			}
		})
		w.has(0, 200, 100, true)
		w.folds(n)
		w.has(2*n, 0, 0, false)
	})
}

// A run that has no time stops, the next one goes on; it fails only once something has waited for too long.
func TestFoldWithoutTimeLeavesTheRest(t *testing.T) {
	onBoth(t, func(w *world) {
		w.collecting(2)
		w.post(tenantA, "/v1/transfers", "k", transfer("acct_1", "acct_c", 5)).want(201)
		short := func() (payments.Folded, error) {
			ctx, cancel := context.WithDeadline(w.Context(), w.clock.Now().Add(time.Second))
			defer cancel()
			return w.folder().Run(ctx)
		}
		if did, err := short(); err != nil || did != (payments.Folded{Accounts: 1, Left: true}) {
			w.Errorf("%+v, %v, want what is left and no error", did, err)
		}
		w.clock.Advance(16 * time.Minute)
		if did, err := short(); err == nil || !did.Left {
			w.Errorf("%+v, no error although a transfer waits since a quarter of an hour", did)
		}
		w.has(0, 5, 1, false)
		w.folds(1)
		w.has(5, 0, 0, false)
		if did, err := short(); err != nil || did.Transfers != 0 {
			w.Errorf("%+v, %v with nothing to do", did, err)
		}
	})
}

// collected is a table with an account that collects, the transfers that wait for it, and a client whose replies can be lost.
type collected struct {
	*testing.T
	table  payments.Table
	faults *wirefault.Transport
	lost   time.Time // RefuseBefore
}

func (c collected) refuseBefore(context.Context) (time.Time, error) { return c.lost, nil }

func newCollected(t *testing.T, amounts ...int64) collected {
	t.Helper()
	url := dynamotest.Endpoint(t, dynamotest.Names()[0])
	name := "collected-" + strconv.FormatInt(prefixes.Add(1), 10)
	c := collected{T: t, faults: &wirefault.Transport{OneAPage: true}}
	c.table = payments.Table{Name: name, Client: dynamotest.Client(url, func(o *dynamodb.Options) {
		o.HTTPClient, o.Retryer = &http.Client{Transport: c.faults}, aws.NopRetryer{}
	})}
	client := dynamotest.Client(url)
	if err := dynamotest.CreateTable(t.Context(), client, name, shape.Payments()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: accountItem(payments.Account{
		Tenant: tenantA, ID: "acct_c", Currency: "EUR", Balance: 7,
	})}); err != nil {
		t.Fatal(err)
	}
	if err := c.table.Collect(t.Context(), tenantA, "acct_c", 1, noon); err != nil {
		t.Fatal(err)
	}
	for i, amount := range amounts {
		put, err := payments.Items(name, 4)(payments.InsertTransfer{Transfer: payments.Transfer{
			Tenant: tenantA, ID: fmt.Sprint("tr_", i), From: "acct_1", To: "acct_c", Amount: amount, Currency: "EUR", CreatedAt: noon.Add(time.Duration(i) * time.Millisecond), Partition: 1, // the index lists the older first
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: put.Put.Item}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c collected) folder() payments.Folder {
	nap := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return payments.Folder{Collections: c.table, RefuseBefore: c.refuseBefore, Now: func() time.Time { return noon }, Pause: nap}
}

func (c collected) run() (payments.Folded, error) { return c.folder().Run(c.Context()) }

func (c collected) holds(balance int64) {
	c.Helper()
	a, err := c.table.Account(c.Context(), tenantA, "acct_c")
	if err != nil || a.Balance != balance {
		c.Errorf("%+v, %v, want a balance of %d", a, err, balance)
	}
}

// A fold whose reply is lost, and whose next tries are throttled, lost or in conflict, counts once: in that run or the next one.
func TestFoldWithLostRepliesCountsOnce(t *testing.T) {
	throttled, conflict := wirefault.Throttle("ThrottlingException"), wirefault.Conflict()
	for name, faults := range map[string][]wirefault.Fault{
		"lost reply":                         {wirefault.LoseReply},
		"lost reply, then throttled":         {wirefault.LoseReply, throttled, throttled},
		"lost request, then lost reply":      {wirefault.LoseRequest, wirefault.LoseReply, throttled},
		"conflict, cut reply, then conflict": {conflict, wirefault.CutReply, conflict},
		"every reply of a run":               {wirefault.LoseReply, wirefault.LoseReply, wirefault.LoseReply, wirefault.LoseReply, wirefault.LoseReply},
		"no try of a run arrives":            {throttled, conflict, wirefault.LoseRequest, throttled, wirefault.LoseRequest, wirefault.LoseReply},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCollected(t, 100, 20)
			c.faults.Inject("TransactWriteItems", faults...)
			_, _ = c.run()                        // it may fail
			c.faults.Inject("TransactWriteItems") // no more
			if did, err := c.run(); err != nil || did.Left {
				t.Errorf("%+v, %v", did, err)
			}
			c.holds(127)
		})
	}
}

// A try that arrives after a later one has folded the same transfers changes nothing.
func TestFoldThatArrivesLateCountsOnce(t *testing.T) {
	c := newCollected(t, 100, 20)
	a := payments.Account{Tenant: tenantA, ID: "acct_c", Currency: "EUR"}
	waits, err := c.table.Incoming(t.Context(), a, 1, 99)
	if err != nil || len(waits) != 2 {
		t.Fatalf("%+v, %v", waits, err)
	}
	if err := c.table.Fold(t.Context(), a, waits[:1], noon); err != nil {
		t.Fatal(err)
	}
	if err := c.table.Fold(t.Context(), a, waits, noon); err == nil {
		t.Error("one of the two is folded already, and all the same both are")
	}
	c.holds(107)
	if did, err := c.run(); err != nil || did.Transfers != 1 {
		t.Errorf("%+v, %v", did, err)
	}
	c.holds(127)
}

// stale answers every Query as the first one was, as an index does that is behind.
type stale struct {
	next  http.RoundTripper
	first []byte
}

func (s *stale) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := s.next.RoundTrip(r)
	if err != nil || r.Header.Get("X-Amz-Target") != "DynamoDB_20120810.Query" {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	if s.first == nil {
		s.first = body
	}
	res.Header.Del("X-Amz-Crc32")
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(s.first)), int64(len(s.first))
	return res, errors.Join(err, res.Body.Close())
}

// The index is read eventually consistent: what it still lists is not folded again.
func TestFoldOfWhatAStaleIndexLists(t *testing.T) {
	c := newCollected(t, 100, 20)
	behind := c.table
	behind.Client = dynamodb.New(c.table.Client.Options(), func(o *dynamodb.Options) {
		o.HTTPClient = &http.Client{Transport: &stale{next: http.DefaultTransport}}
	})
	a := payments.Account{Tenant: tenantA, ID: "acct_c", Currency: "EUR"}
	if waits, err := behind.Incoming(t.Context(), a, 1, 99); err != nil || len(waits) != 2 {
		t.Fatalf("%+v, %v", waits, err)
	}
	if did, err := c.run(); err != nil || did.Transfers != 2 {
		t.Fatalf("%+v, %v", did, err)
	}
	if waits, err := behind.Incoming(t.Context(), a, 1, 99); err != nil || len(waits) != 0 {
		t.Errorf("%+v, %v, want none that waits", waits, err)
	}
	c.holds(127)
}

// The index lists a transfer still that was corrected by hand to be another account's, or that of another tenant's account of the same name.
// Only the account that its row names gets it.
func TestFoldOfATransferThatBecameAnotherAccounts(t *testing.T) {
	for _, receiver := range []payments.AccountName{{Tenant: tenantA, ID: "acct_d"}, {Tenant: tenantB, ID: "acct_c"}} {
		c := newCollected(t)
		behind := c.table
		behind.Client = dynamodb.New(c.table.Client.Options(), func(o *dynamodb.Options) {
			o.HTTPClient = &http.Client{Transport: &stale{next: http.DefaultTransport}}
		})
		transfer := payments.Transfer{Tenant: receiver.Tenant, ID: "tr_1", From: "acct_1", To: receiver.ID, Amount: 100, Currency: "EUR", CreatedAt: noon, Partition: 1}
		corrected, err := payments.Items(c.table.Name, 4)(payments.InsertTransfer{Transfer: transfer})
		if err != nil {
			t.Fatal(err)
		}
		wrong := maps.Clone(corrected.Put.Item)
		wrong[shape.Hour] = text("to#" + tenantA + "/acct_c#1")
		a := payments.Account{Tenant: tenantA, ID: "acct_c", Currency: "EUR"}
		for i, it := range []map[string]types.AttributeValue{wrong, corrected.Put.Item} {
			if _, err := c.table.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &c.table.Name, Item: it}); err != nil {
				t.Fatal(err)
			}
			if waits, err := behind.Incoming(t.Context(), a, 1, 99); len(waits) != 0 || errors.Is(err, payments.ErrUnfoldable) != (i == 0) {
				t.Errorf("%+v: %+v, %v; want none that is the account's", receiver, waits, err)
			}
		}
	}
}

// An account collects in more partitions, never in fewer, and keeps what it has.
func TestCollectRaisesOnly(t *testing.T) {
	c := newCollected(t, 100)
	if err := c.table.Collect(t.Context(), tenantA, "acct_c", 4, noon); err != nil {
		t.Error(err)
	}
	for _, refused := range []struct {
		account    string
		partitions int
	}{{"acct_c", 3}, {"acct_none", 1}, {"acct_c", 0}, {"acct_c", payments.PartitionsMax + 1}} {
		if err := c.table.Collect(t.Context(), tenantA, refused.account, refused.partitions, noon); err == nil {
			t.Errorf("%+v: no error", refused)
		}
	}
	if all, err := c.table.Collecting(t.Context()); err != nil || len(all) != 1 || all[0].Partitions != 4 || all[0].Balance != 7 {
		t.Errorf("%+v, %v", all, err)
	}
	if did, err := c.run(); err != nil || did.Transfers != 1 {
		t.Errorf("%+v, %v", did, err)
	}
	c.holds(107)
}

// docs/payments-api.md "Collecting accounts": every one is folded, also those that the index lists on a later page.
func TestEveryCollectingAccountIsFolded(t *testing.T) {
	c := newCollected(t, 100)
	accounts := []string{"acct_c"}
	for _, id := range []string{"acct_d", "acct_e"} {
		it := accountItem(payments.Account{Tenant: tenantA, ID: id, Currency: "EUR"})
		if _, err := c.table.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &c.table.Name, Item: it}); err != nil {
			t.Fatal(err)
		}
		if err := c.table.Collect(t.Context(), tenantA, id, 1, noon); err != nil {
			t.Fatal(err)
		}
		accounts = append(accounts, id)
	}
	all, err := c.table.Collecting(t.Context())
	var found []string
	for _, a := range all {
		found = append(found, a.ID)
	}
	if slices.Sort(found); err != nil || !slices.Equal(found, accounts) {
		t.Errorf("%v, %v, want %v", found, err, accounts)
	}
	if did, err := c.run(); err != nil || did != (payments.Folded{Accounts: len(accounts), Transfers: 1}) {
		t.Errorf("%+v, %v, want one transfer of %d accounts folded", did, err, len(accounts))
	}
}

// While the table does not answer nothing is folded, and the run says so.
func TestFoldWhileTheTableIsDown(t *testing.T) {
	c := newCollected(t, 100)
	c.faults.Inject("Query", wirefault.LoseRequest)
	var unavailable *idem.UnavailableError
	if did, err := c.run(); !errors.As(err, &unavailable) {
		t.Errorf("%+v, %v", did, err)
	}
	c.holds(7)
}

// unprocessed is a batch of which no key was read: DynamoDB is throttled.
func unprocessed(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
	var asked struct{ RequestItems json.RawMessage }
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, err
	}
	body := fmt.Sprintf(`{"Responses":{},"UnprocessedKeys":%s}`, asked.RequestItems)
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
	}, nil
}

// The rest of a batch is asked for after pauses that grow: asked for at once, it would be refused for the same throttling each time.
func TestFoldWaitsForTheRestOfABatch(t *testing.T) {
	c := newCollected(t, 100)
	c.faults.Inject("BatchGetItem", slices.Repeat([]wirefault.Fault{unprocessed}, 5)...)
	began := time.Now()
	if did, err := c.run(); err != nil || did.Transfers != 1 {
		t.Errorf("%+v, %v", did, err)
	}
	if took := time.Since(began); took < 1500*time.Millisecond {
		t.Errorf("it asked five times more within %v", took)
	}
	c.holds(107)
}

// A partition whose batches DynamoDB leaves unread is left for the next run once its rest was asked for so often: its tries, with 6 s of pauses
// each, took most of the run's time from the other partitions.
func TestFoldLeavesAPartitionWhoseBatchStaysUnread(t *testing.T) {
	t.Parallel()
	c := newCollected(t, 100)
	if err := c.table.Collect(t.Context(), tenantA, "acct_c", 2, noon); err != nil {
		t.Fatal(err)
	}
	c.waits(payments.Transfer{ID: "tr_other", Amount: 20, Currency: "EUR", CreatedAt: noon}, func(it map[string]types.AttributeValue) {
		it["lh"] = &types.AttributeValueMemberS{Value: "to#" + tenantA + "/acct_c#2"}
	})
	c.faults.Inject("BatchGetItem", slices.Repeat([]wirefault.Fault{unprocessed}, 8)...)
	if did, err := c.run(); err == nil || did.Transfers != 1 || !did.Left {
		t.Errorf("%+v, %v, want the first partition to be left", did, err)
	}
	c.holds(27)
	if did, err := c.run(); err != nil || did.Transfers != 1 {
		t.Errorf("the next run: %+v, %v", did, err)
	}
	c.holds(127)
}

// A rest that is waited for when the run has to end is told, and nothing is folded.
func TestFoldEndsWhileItWaitsForTheRestOfABatch(t *testing.T) {
	c := newCollected(t, 100)
	ends, cancel := context.WithCancel(t.Context())
	c.faults.Inject("BatchGetItem", func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		time.AfterFunc(10*time.Millisecond, cancel) // after the reply has been read
		return unprocessed(r, next)
	})
	if did, err := c.folder().Run(ends); !errors.Is(err, context.Canceled) || did.Transfers != 0 {
		t.Errorf("%+v, %v", did, err)
	}
	c.holds(7)
}

// An account that can't be read keeps no other one from being folded, and the run fails.
func TestFoldBesideAMalformedAccount(t *testing.T) {
	c := newCollected(t, 100)
	broken := accountItem(payments.Account{Tenant: tenantA, ID: "acct_broken", Currency: "EUR"})
	broken["lh"], broken["ca"] = &types.AttributeValueMemberS{Value: shape.Collecting}, &types.AttributeValueMemberN{Value: "1"}
	broken["col"] = &types.AttributeValueMemberN{Value: "-1"}
	if _, err := c.table.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &c.table.Name, Item: broken}); err != nil {
		t.Fatal(err)
	}
	if did, err := c.run(); err == nil || did.Transfers != 1 {
		t.Errorf("%+v, %v, want one folded and an error", did, err)
	}
	c.holds(107)
}

// waits puts a transfer to acct_c into the table as somebody's hand has left it.
func (c collected) waits(each payments.Transfer, change func(map[string]types.AttributeValue)) {
	c.Helper()
	each.Tenant, each.From, each.To, each.Partition = tenantA, "acct_1", "acct_c", 1
	put, err := payments.Items(c.table.Name, 4)(payments.InsertTransfer{Transfer: each})
	if err != nil {
		c.Fatal(err)
	}
	if change != nil {
		change(put.Put.Item)
	}
	if _, err := c.table.Client.PutItem(c.Context(), &dynamodb.PutItemInput{TableName: &c.table.Name, Item: put.Put.Item}); err != nil {
		c.Fatal(err)
	}
}

// docs/payments-api.md "Collecting accounts": a row that can't be folded keeps none behind it from being folded, and the run says it.
func TestFoldPassesOverWhatCannotBeFolded(t *testing.T) {
	for name, change := range map[string]func(map[string]types.AttributeValue){
		"another currency":   func(it map[string]types.AttributeValue) { it["cur"] = &types.AttributeValueMemberS{Value: "USD"} },
		"an amount of text":  func(it map[string]types.AttributeValue) { it["amt"] = &types.AttributeValueMemberS{Value: "1"} },
		"an amount below 1":  func(it map[string]types.AttributeValue) { it["amt"] = &types.AttributeValueMemberN{Value: "-1"} },
		"another row's id":   func(it map[string]types.AttributeValue) { it["id"] = &types.AttributeValueMemberS{Value: "tr_0"} },
		"another receiver":   func(it map[string]types.AttributeValue) { it["to"] = &types.AttributeValueMemberS{Value: "acct_2"} },
		"no time in the row": func(it map[string]types.AttributeValue) { it["ca"] = &types.AttributeValueMemberN{Value: "0.5"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCollected(t, 100, 20)
			c.waits(payments.Transfer{ID: "tr_bad", Amount: 1, Currency: "EUR", CreatedAt: noon.Add(-time.Hour)}, change)
			for _, folded := range []int{2, 0} {
				if did, err := c.run(); err == nil || did.Transfers != folded {
					t.Errorf("%+v, %v, want %d folded, and an error about the row", did, err, folded)
				}
			}
			c.holds(127)
		})
	}
}

// More rows than a transaction takes that can't be folded keep no other one from being folded.
func TestFoldReadsPastAPageThatCannotBeFolded(t *testing.T) {
	c := newCollected(t, 100, 20)
	for i := range payments.FoldMax + 2 {
		c.waits(payments.Transfer{ID: fmt.Sprint("tr_bad", i), Amount: 1, Currency: "USD", CreatedAt: noon.Add(-time.Hour)}, nil)
	}
	if did, err := c.run(); err == nil || did.Transfers != 2 {
		t.Errorf("%+v, %v, want two folded and an error", did, err)
	}
	c.holds(127)
}

// What can't be folded is not told of as incoming, and does not keep the account from being read.
func TestAccountBesideATransferThatCannotBeFolded(t *testing.T) {
	t.Parallel()
	clock := idemtest.NewClock(noon)
	w := &world{T: t, clock: clock, backend: onMemstore(t, clock)}
	w.start(options{})
	w.collecting(1)
	store := w.backend.ledger.(payments.Rows).Store
	store.PutRow("transfer#"+tenantA+"/tr_usd", []byte(`{"Tenant":"tenant-a","ID":"tr_usd","To":"acct_c","Amount":1,"Currency":"USD","Partition":1}`))
	store.PutRow("transfer#"+tenantA+"/tr_torn", []byte(`{"Tenant":`))
	w.post(tenantA, "/v1/transfers", "in", transfer("acct_1", "acct_c", 500)).want(201)
	w.has(0, 500, 1, false)
	if did, err := w.folder().Run(t.Context()); err == nil || did.Transfers != 1 {
		t.Errorf("%+v, %v, want one folded and an error", did, err)
	}
	w.has(500, 0, 0, false)
}

// A run whose folds are all in conflict ends while there is time to answer, and still finds out whether something is late.
func TestFoldKeepsItsReserve(t *testing.T) {
	c := newCollected(t)
	c.waits(payments.Transfer{ID: "tr_late", Amount: 1, Currency: "EUR", CreatedAt: noon.Add(-time.Hour)}, nil)
	conflict := wirefault.Conflict()
	c.faults.Inject("TransactWriteItems", slices.Repeat([]wirefault.Fault{conflict}, 100)...)
	clock := idemtest.NewClock(noon)
	deadline := noon.Add(2500 * time.Millisecond) // half a second more than the reserve
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	folder := c.folder()
	folder.Now, folder.Pause = clock.Now, clock.Pause
	did, err := folder.Run(ctx)
	if left := deadline.Sub(clock.Now()); left < time.Second || !did.Left || err == nil || !strings.Contains(err.Error(), "folding is behind") {
		t.Errorf("%v of the reserve of 2 s are left: %+v, %v", left, did, err)
	}
}

// smaller answers folds of more than one transfer with a conflict, as debits of the account do that come at every moment.
type smaller struct {
	payments.Collections
	most int
}

func (s smaller) Fold(ctx context.Context, a payments.Account, transfers []payments.Transfer, at time.Time) error {
	if len(transfers) > s.most {
		return errors.New("conflict")
	}
	return s.Collections.Fold(ctx, a, transfers, at)
}

// ADR 0047: a fold that is in conflict is tried again with half of its transfers, and there is a pause after each fold for debits.
func TestFoldInConflictIsHalved(t *testing.T) {
	amounts := make([]int64, 30)
	for i := range amounts {
		amounts[i] = 2
	}
	c := newCollected(t, amounts...)
	folder := c.folder()
	folder.Collections = smaller{c.table, 9}
	pauses := 0
	folder.Pause = func(ctx context.Context, _ time.Duration) error { pauses++; return ctx.Err() }
	if did, err := folder.Run(t.Context()); err != nil || did.Left || did.Transfers != 30 {
		t.Errorf("%+v, %v, want all folded", did, err)
	}
	if pauses < 30/9 {
		t.Errorf("%d pauses, want one after each fold", pauses)
	}
	c.holds(67)
}

// torn is a table as a restore may leave it: one of its folds was applied in part.
func torn(t *testing.T, tear func(c collected, bal, sum, count int64)) collected {
	t.Helper()
	c := newCollected(t, 100, 20, 3)
	a, err := c.table.Account(t.Context(), tenantA, "acct_c")
	if err != nil {
		t.Fatal(err)
	}
	waits, err := c.table.Incoming(t.Context(), *a, 1, 99)
	if err != nil || len(waits) != 3 {
		t.Fatalf("%+v, %v", waits, err)
	}
	if err := c.table.Fold(t.Context(), *a, waits[:1], noon); err != nil { // one that is whole
		t.Fatal(err)
	}
	tear(c, 20, 20, 1)
	c.lost = noon.Add(time.Hour)
	return c
}

// balanceOnly is a fold of tr_1 of which only the account's part is there.
func balanceOnly(c collected, bal, sum, count int64) {
	c.update("account#"+tenantA+"/acct_c", "SET bal = bal + :bal ADD fsm :sum, fct :count", map[string]int64{":bal": bal, ":sum": sum, ":count": count})
}

// rowOnly is a fold of tr_1 of which only the transfer's part is there.
func rowOnly(c collected, _, _, _ int64) {
	c.update("transfer#"+tenantA+"/tr_1", "SET fol = :at REMOVE lh", map[string]int64{":at": noon.UnixMilli()})
}

func (c collected) update(pk, expression string, numbers map[string]int64) {
	c.Helper()
	values := map[string]types.AttributeValue{}
	for name, n := range numbers {
		values[name] = &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
	if _, err := c.table.Client.UpdateItem(c.Context(), &dynamodb.UpdateItemInput{
		TableName: &c.table.Name, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}},
		UpdateExpression: &expression, ExpressionAttributeValues: values,
	}); err != nil {
		c.Fatal(err)
	}
}

// compared is what an operator does: reads the account, adds up its folded transfers, and has the two agree.
func (c collected) compared() (payments.Account, payments.Totals, error) {
	c.Helper()
	a, err := c.table.Account(c.Context(), tenantA, "acct_c")
	if err != nil {
		c.Fatal(err)
	}
	rows, err := c.table.Rows(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	return *a, rows[a.Name()], c.table.Compared(c.Context(), *a, rows[a.Name()], c.lost, rand.Text())
}

// docs/recovery.md "Collecting accounts": a fold of which a restore brought back a part creates no money and loses none. Nothing is
// folded before the account was compared.
func TestFoldThatARestoreHasTornIsHeldAndCorrected(t *testing.T) {
	for name, tear := range map[string]func(collected, int64, int64, int64){
		"balance without its transfers": balanceOnly, "transfers without the balance": rowOnly, "whole": func(collected, int64, int64, int64) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := torn(t, tear)
			if did, err := c.run(); !errors.Is(err, payments.ErrFoldHeld) || did != (payments.Folded{Accounts: 1, Left: true}) {
				t.Errorf("%+v, %v, want folding to be held", did, err)
			}
			for range 2 { // who repeats it changes nothing
				if _, _, err := c.compared(); err != nil {
					t.Error(err)
				}
			}
			if _, err := c.run(); err != nil {
				t.Error(err)
			}
			c.holds(7 + 100 + 20 + 3)
			if a, rows, _ := c.compared(); a.Totals() != rows || rows.Folded != (payments.Total{Transfers: 3, Amount: 123}) {
				t.Errorf("the account has %+v, and its rows %+v", a.Totals(), rows)
			}
			c.lost = c.lost.Add(time.Hour) // another loss
			if _, err := c.run(); err == nil {
				t.Error("folded after another loss without a comparison")
			}
		})
	}
}

// docs/operator.md "FunctionErrors", docs/recovery.md "Collecting accounts": the pages quote the error as the log has it, so that it is
// found there. What follows names the account.
func TestPagesQuoteTheErrorOfAStoppedFold(t *testing.T) {
	words := strings.Split(payments.ErrFoldHeld.Error(), ":")
	for _, page := range []string{"operator.md", "recovery.md"} {
		raw, err := os.ReadFile("../../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		if quoted := "`" + words[0] + ":" + words[1] + "`"; !strings.Contains(string(raw), quoted) {
			t.Errorf("%s does not quote %s", page, quoted)
		}
	}
}

// A comparison whose reply is lost, and whose next try is throttled or late, is applied once.
func TestComparisonWithLostRepliesCountsOnce(t *testing.T) {
	throttled := wirefault.Throttle("ThrottlingException")
	for name, faults := range map[string][]wirefault.Fault{
		"lost reply":                 {wirefault.LoseReply},
		"lost reply, then throttled": {wirefault.LoseReply, throttled, throttled},
		"throttled, then lost reply": {throttled, wirefault.LoseReply},
		"lost request":               {wirefault.LoseRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := torn(t, balanceOnly)
			seen, rows, tries := payments.Account{}, payments.Totals{}, 0
			c.faults.Inject("UpdateItem", faults...)
			for err := errors.New("not yet"); err != nil; tries++ {
				var a payments.Account
				if a, rows, err = c.compared(); tries == 0 {
					seen = a
				}
			}
			if err := c.table.Compared(t.Context(), seen, rows, c.lost, "late"); err == nil { // the first try, late
				t.Error("a comparison of what was read before another one was written")
			}
			c.holds(107)
		})
	}
}

// What was folded too much and is spent can't be taken off: the account stays held. So does one that was written meanwhile.
func TestComparisonThatDoesNotFitChangesNothing(t *testing.T) {
	c := torn(t, balanceOnly)
	a, err := c.table.Account(t.Context(), tenantA, "acct_c")
	if err != nil {
		t.Fatal(err)
	}
	rows := payments.Totals{Folded: payments.Total{Transfers: 1, Amount: 100}}
	meanwhile := *a
	meanwhile.Folded.Transfers--
	if err := c.table.Compared(t.Context(), meanwhile, rows, c.lost, "comparison"); !errors.Is(err, payments.ErrNotCompared) {
		t.Errorf("%v, want a refusal: another total was read", err)
	}
	c.update("account#"+tenantA+"/acct_c", "SET bal = :left", map[string]int64{":left": 19})
	if _, _, err := c.compared(); !errors.Is(err, payments.ErrNotCompared) {
		t.Errorf("%v, want a refusal: the balance is lower than what is too much", err)
	}
	c.holds(19)
	if did, err := c.run(); err == nil {
		t.Errorf("%+v, want folding to be held", did)
	}
}

// While nobody can say whether anything was lost, nothing is folded.
func TestFoldWithoutRefuseBeforeIsHeld(t *testing.T) {
	c := newCollected(t, 100)
	folder, down := c.folder(), errors.New("LOST_RECORDS is set, and nobody has said up to when")
	folder.RefuseBefore = func(context.Context) (time.Time, error) { return time.Time{}, down }
	if did, err := folder.Run(t.Context()); !errors.Is(err, down) || !did.Left || did.Transfers != 0 {
		t.Errorf("%+v, %v", did, err)
	}
	c.holds(7)
}
