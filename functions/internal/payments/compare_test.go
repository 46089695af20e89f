package payments_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/idemtest"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// books is an application on DynamoDB whose rows a restore has torn.
type books struct {
	*world
	payments.Table
}

func newBooks(t *testing.T) books {
	t.Helper()
	t.Parallel()
	w := &world{T: t, clock: idemtest.NewClock(noon)}
	w.backend = onDynamoDB(t, dynamotest.Names()[0])
	w.start(options{workerOnly: true})
	return books{w, w.backend.ledger.(payments.Table)}
}

// items are the rows of tenant-a, by their keys.
func (b books) items() map[string]map[string]types.AttributeValue {
	b.Helper()
	all := map[string]map[string]types.AttributeValue{}
	pages := dynamodb.NewScanPaginator(b.Client, &dynamodb.ScanInput{TableName: &b.Table.Name, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(b.Context())
		b.ok(err)
		for _, it := range page.Items {
			if pk := it["pk"].(*types.AttributeValueMemberS).Value; strings.Contains(pk, "#"+tenantA+"/") {
				all[pk] = it
			}
		}
	}
	return all
}

// put makes an item what it was; nil is none.
func (b books) put(pk string, it map[string]types.AttributeValue) {
	b.Helper()
	var err error
	if it == nil {
		_, err = b.Client.DeleteItem(b.Context(), &dynamodb.DeleteItemInput{TableName: &b.Table.Name, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}}})
	} else {
		_, err = b.Client.PutItem(b.Context(), &dynamodb.PutItemInput{TableName: &b.Table.Name, Item: it})
	}
	b.ok(err)
}

// compare is what an operator does with every account: it returns by how much balances were corrected.
func (b books) compare() (corrected int64) {
	b.Helper()
	accounts, err := b.Accounts(b.Context())
	b.ok(err)
	rows, err := b.Rows(b.Context())
	b.ok(err)
	for _, a := range accounts {
		if sums := rows[a.Name()]; a.Totals() != sums {
			b.ok(b.Compared(b.Context(), a, sums, time.Time{}, b.Name()))
			corrected += max(a.Totals().Lacks(sums), -a.Totals().Lacks(sums))
		}
	}
	return corrected
}

// agrees demands that the totals of all accounts are what their rows say.
func (b books) agrees() {
	b.Helper()
	if corrected := b.compare(); corrected != 0 {
		b.Errorf("balances differ from their rows by %d", corrected)
	}
}

// upTo asks for a payout of 500 to a destination, if that was not done, and delivers the messages of its chain up to the n-th.
func (b books) upTo(n int, destination string) {
	b.Helper()
	var begun struct {
		Operation idem.OperationID `json:"operation"`
	}
	b.payOut(destination, destination).decode(&begun)
	for i := range n {
		b.deliverMessage(begun.Operation, i+1)
	}
}

// Name is the test's.
func (b books) Name() string { return b.T.Name() }

// docs/recovery.md "Compare the balances": whatever happens through the application, each account's totals are what its rows add up to.
func TestTotalsAreWhatTheRowsAddUpTo(t *testing.T) {
	b := newBooks(t)
	b.collecting(2)
	b.post(tenantA, "/v1/transfers", "plain", transfer("acct_1", "acct_2", 500)).want(201)
	b.post(tenantA, "/v1/transfers", "back", transfer("acct_2", "acct_1", 20)).want(201)
	b.post(tenantA, "/v1/transfers", "poor", transfer("acct_2", "acct_1", 10_000)).want(402)
	b.post(tenantA, "/v1/transfers", "in", transfer("acct_1", "acct_c", 70)).want(201)
	b.agrees()
	b.folds(1)
	b.post(tenantA, "/v1/transfers", "waits", transfer("acct_1", "acct_c", 5)).want(201)
	b.post(tenantA, "/v1/transfers", "out", transfer("acct_c", "acct_2", 30)).want(201)
	b.upTo(2, "iban_ok")
	b.faults(provider.Rule{On: provider.Payout, Destination: "iban_no", Fault: provider.Decline})
	b.upTo(2, "iban_no")
	b.agrees()
	b.upTo(3, "iban_no")
	b.agrees()
	accounts, err := b.Accounts(b.Context())
	b.ok(err)
	moved := map[string]payments.Moved{}
	for _, a := range accounts {
		if a.Tenant == tenantA {
			moved[a.ID] = a.Moved
		}
	}
	want := map[string]payments.Moved{"acct_1": {7, -500 + 20 - 70 - 5 - 500}, "acct_2": {3, 500 - 20 + 30}, "acct_c": {1, -30}}
	if !maps.Equal(moved, want) {
		t.Errorf("%+v, want %+v", moved, want)
	}
}

// docs/recovery.md "Compare the balances": of each transaction that moves money a restore may bring back any part. The comparison makes
// every balance what the rows say that are there, and changes nothing when it is repeated.
func TestWhateverPartOfATransactionIsThereBalancesFollowTheRows(t *testing.T) {
	for name, does := range map[string]struct {
		items  int
		before func(books)
		does   func(books)
		// rows is which item is the reason for the others, and what it does to accounts.
		row    string
		effect map[string]int64
	}{
		"transfer": {3, func(books) {}, func(b books) {
			b.post(tenantA, "/v1/transfers", "k", transfer("acct_1", "acct_2", 500)).want(201)
		}, "transfer#", map[string]int64{"acct_1": -500, "acct_2": 500}},
		"transfer to a collecting account": {2, func(b books) { b.collecting(1) }, func(b books) {
			b.post(tenantA, "/v1/transfers", "k", transfer("acct_1", "acct_c", 500)).want(201)
		}, "transfer#", map[string]int64{"acct_1": -500}},
		"fold": {2, func(b books) {
			b.collecting(1)
			b.post(tenantA, "/v1/transfers", "k", transfer("acct_1", "acct_c", 500)).want(201)
		}, func(b books) { b.folds(1) }, "transfer#", map[string]int64{"acct_c": 500}},
		"payout begun": {2, func(books) {}, func(b books) {
			b.payOut("k", "iban_ok").want(202)
		}, "payout#", map[string]int64{"acct_1": -500}},
		"payout given back": {2, func(b books) {
			b.faults(provider.Rule{On: provider.Payout, Destination: "iban_no", Fault: provider.Decline})
			b.upTo(2, "iban_no")
		}, func(b books) { b.upTo(3, "iban_no") }, "payout#", map[string]int64{"acct_1": 500}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBooks(t)
			does.before(b)
			before := b.items()
			does.does(b)
			after := b.items()
			var changed []string
			for pk := range after {
				if !reflect.DeepEqual(before[pk], after[pk]) {
					changed = append(changed, pk)
				}
			}
			slices.Sort(changed)
			if len(changed) != does.items {
				t.Fatalf("changed %v, want %d items", changed, does.items)
			}
			for part := range 1 << len(changed) {
				there := false
				for i, pk := range changed {
					from := before
					if part>>i&1 == 1 {
						from = after
						there = there || strings.HasPrefix(pk, does.row)
					}
					b.put(pk, from[pk])
				}
				b.compare()
				for account, effect := range does.effect {
					want, err := strconv.ParseInt(before["account#"+tenantA+"/"+account]["bal"].(*types.AttributeValueMemberN).Value, 10, 64)
					b.ok(err)
					if there {
						want += effect
					}
					if got, err := b.Account(t.Context(), tenantA, account); err != nil || got.Balance != want {
						t.Errorf("part %b of %v: %+v, %v, want a balance of %d", part, changed, got, err, want)
					}
				}
				b.agrees()
			}
		})
	}
}

// docs/recovery.md "Compare the balances": a row may say that it was folded into an account that does not collect, as one that is written by
// hand, or after an account that collected was made again. It is credited once, and never again by a repetition.
func TestAFoldedTransferIsCreditedOnceWhereItsReceiverDoesNotCollect(t *testing.T) {
	b := newBooks(t)
	b.post(tenantA, "/v1/transfers", "k", transfer("acct_1", "acct_2", 500)).want(201)
	before := b.balance(tenantA, "acct_2")
	pk := "transfer#" + tenantA + "/tr_hand"
	b.put(pk, map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: pk}, "tn": &types.AttributeValueMemberS{Value: tenantA}, "id": &types.AttributeValueMemberS{Value: "tr_hand"},
		"frm": &types.AttributeValueMemberS{Value: "acct_1"}, "to": &types.AttributeValueMemberS{Value: "acct_2"}, "cur": &types.AttributeValueMemberS{Value: "EUR"},
		"amt": number(123), "ca": number(noon.UnixMilli()), "cnt": number(1), "fol": number(noon.UnixMilli()),
	})
	for range 3 {
		b.compare()
		if got := b.balance(tenantA, "acct_2"); got != before+123 {
			t.Errorf("%d, want %d", got, before+123)
		}
	}
	b.agrees()
}

// A transaction of a release before the totals, or of one that is rolled back to, is in no total and has no mark. One payout may be begun
// by the one and given back by the other.
func TestRowsOfAReleaseBeforeTheTotalsAreNotCounted(t *testing.T) {
	unmarked := func(b books, pk string, mark string) {
		it := b.items()[pk]
		delete(it, mark)
		b.put(pk, it)
	}
	uncounted := func(b books, account string, movements, amount int64) {
		it := b.items()["account#"+tenantA+"/"+account]
		a, err := b.Account(b.Context(), tenantA, account)
		b.ok(err)
		it["mvc"], it["mvs"] = number(a.Moved.Movements-movements), number(a.Moved.Amount-amount)
		b.put("account#"+tenantA+"/"+account, it)
	}
	row := func(b books, prefix string) string {
		for pk := range b.items() {
			if strings.HasPrefix(pk, prefix) {
				return pk
			}
		}
		b.Fatalf("no row %s", prefix)
		return ""
	}
	for name, story := range map[string]func(books){
		"transfer": func(b books) {
			b.post(tenantA, "/v1/transfers", "k", transfer("acct_1", "acct_2", 500)).want(201)
			unmarked(b, row(b, "transfer#"), "cnt")
			uncounted(b, "acct_1", 1, -500)
			uncounted(b, "acct_2", 1, 500)
		},
		"payout begun by it": func(b books) {
			b.faults(provider.Rule{On: provider.Payout, Fault: provider.Decline})
			b.upTo(3, "iban_no")
			unmarked(b, row(b, "payout#"), "cnt")
			uncounted(b, "acct_1", 1, -500)
		},
		"payout given back by it": func(b books) {
			b.faults(provider.Rule{On: provider.Payout, Fault: provider.Decline})
			b.upTo(3, "iban_no")
			unmarked(b, row(b, "payout#"), "gvb")
			uncounted(b, "acct_1", 1, 500)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBooks(t)
			story(b)
			b.post(tenantA, "/v1/transfers", "since", transfer("acct_1", "acct_2", 3)).want(201)
			b.agrees()
		})
	}
}

// compareRefunds is what an operator does with every payment: it returns by how much payments were corrected.
func (b books) compareRefunds() (corrected int64) {
	b.Helper()
	sums, err := b.RefundSums(b.Context())
	b.ok(err)
	for name, sum := range sums {
		if sum.Payment == sum.Refunds {
			continue
		}
		p, err := b.Payment(b.Context(), name.Tenant, name.ID)
		b.ok(err)
		b.ok(b.CorrectRefunded(b.Context(), *p, sum.Refunds, rand.Text()))
		corrected += max(sum.Payment-sum.Refunds, sum.Refunds-sum.Payment)
	}
	return corrected
}

// docs/recovery.md "Compare the balances": of each transaction of a refund a restore may bring back any part. The comparison has the payment
// say what the refunds add up to that are there, and changes nothing when it is repeated.
func TestWhateverPartOfARefundIsThereItsPaymentFollowsTheRows(t *testing.T) {
	for name, c := range map[string]struct {
		begun bool // before
		does  func(b books, payment string)
	}{
		"begun":    {false, func(b books, payment string) { b.giveBack("r", payment, 500).want(202) }},
		"not made": {true, func(b books, payment string) { b.givenBack(payment) }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBooks(t)
			p := b.paid("k", "card_ok")
			b.giveBack("whole", p.ID, 7).want(202)
			b.faults(provider.Rule{On: provider.Refund, Fault: provider.Decline})
			if c.begun {
				b.giveBack("r", p.ID, 500).want(202)
			}
			before := b.items()
			c.does(b, p.ID)
			after := b.items()
			var changed []string
			for pk := range after {
				if !reflect.DeepEqual(before[pk], after[pk]) {
					changed = append(changed, pk)
				}
			}
			if len(changed) != 2 {
				t.Fatalf("changed %v, want the payment and the refund", changed)
			}
			for part := range 1 << len(changed) {
				pending := c.begun
				for i, pk := range changed {
					from := before
					if part>>i&1 == 1 {
						from = after
						pending = pending != strings.HasPrefix(pk, "refund#") // its row is the one that counts
					}
					b.put(pk, from[pk])
				}
				b.compareRefunds()
				want := int64(7)
				if pending {
					want += 500
				}
				b.refunded(p.ID, want)
				if corrected := b.compareRefunds(); corrected != 0 {
					t.Errorf("part %b of %v: corrected by %d once more", part, changed, corrected)
				}
			}
		})
	}
}

// docs/recovery.md "End a row by hand": a payout that was set back to pending beside what was given back is not settled, be it that its provider
// has made it: the account would keep the money.
func TestAPayoutThatWasGivenBackIsNotSettled(t *testing.T) {
	b := newBooks(t)
	b.upTo(1, "iban_ok")
	var pk string
	for name := range b.items() {
		if strings.HasPrefix(name, "payout#") {
			pk = name
		}
	}
	row := b.items()[pk]
	row["gvb"] = number(1)
	b.put(pk, row)
	b.upTo(2, "iban_ok")
	if after := b.items()[pk]; !reflect.DeepEqual(after, row) {
		t.Errorf("its row is %v, want %v", after, row)
	}
}

// What a missing account is made again with may be less than nothing: its rows add up to more than it had.
func TestABalanceBelowZeroIsCorrectedByWhatItsRowsAddUpTo(t *testing.T) {
	b := newBooks(t)
	b.post(tenantA, "/v1/transfers", "k", transfer("acct_1", "acct_2", 500)).want(201)
	b.put("account#"+tenantA+"/acct_2", nil)
	b.open(payments.Account{Tenant: tenantA, ID: "acct_2", Currency: "EUR", Balance: -400})
	b.compare()
	if got := b.balance(tenantA, "acct_2"); got != 100 {
		t.Errorf("%d, want 100", got)
	}
	b.agrees()
}

// docs/recovery.md "End a row by hand": nothing is refunded of a payment that somebody has ended without the provider's reference, because the
// provider could not be told of which charge.
func TestNothingIsRefundedOfAPaymentWithoutAReference(t *testing.T) {
	b := newBooks(t)
	p := b.paid("k", "card_ok")
	pk := "payment#" + tenantA + "/" + p.ID
	row := b.items()[pk]
	reference := row["prv"]
	delete(row, "prv")
	b.put(pk, row)
	b.giveBack("r", p.ID, 500).want(500)
	b.refunded(p.ID, 0)
	row["prv"] = reference
	b.put(pk, row)
	b.giveBack("r", p.ID, 500).want(202)
}

// givenBack asks for a refund of 500, if that was not done, and delivers its message.
func (b books) givenBack(payment string) {
	b.Helper()
	var made accepted
	b.giveBack("r", payment, 500).want(202).decode(&made)
	b.deliver(made.Operation)
}

// docs/recovery.md "Compare the balances": an amount that a restore has left on a payment without its refund is taken off before the refund is
// made again. It is counted once, and the rest can be refunded.
func TestAnAmountThatALossLeftOnItsPaymentIsCountedOnce(t *testing.T) {
	b := newBooks(t)
	b.anew = func() backend { return onDynamoDB(t, dynamotest.Names()[0]) }
	p := b.paid("k", "card_ok")
	payment, _, err := idem.MessageID(b.charges()[0].Key).Operation()
	b.ok(err)
	b.givenBack(p.ID)
	refund, _, err := idem.MessageID(b.refunds()[0].Key).Operation()
	b.ok(err)
	b.lose()
	b.Table = b.backend.ledger.(payments.Table)
	b.restores(payment, "restored")
	torn := b.items()["payment#"+tenantA+"/"+p.ID]
	torn["rfd"] = number(500)
	b.put("payment#"+tenantA+"/"+p.ID, torn)
	if corrected := b.compareRefunds(); corrected != 500 {
		t.Errorf("corrected by %d", corrected)
	}
	b.restores(refund, "restored")
	b.refunded(p.ID, 500)
	rest := fmt.Sprintf(`{"amount":%d}`, p.Amount-500)
	b.post(tenantA, "/v1/payments/"+p.ID+"/refunds", "rest", rest, "Idempotency-First-Sent: "+b.clock.Now().Format(time.RFC3339)).want(202)
}

// A comparison that read the payment before another one, or before a refund, is refused, however late it arrives. Its own, whose reply was
// lost, is not.
func TestALateComparisonOfAPaymentIsRefused(t *testing.T) {
	b := newBooks(t)
	p := b.paid("k", "card_ok")
	read := func() payments.Payment {
		t.Helper()
		now, err := b.Payment(t.Context(), tenantA, p.ID)
		b.ok(err)
		return *now
	}
	seen := read()
	b.giveBack("r", p.ID, 500).want(202)
	if err := b.CorrectRefunded(t.Context(), seen, 1, "after a refund"); !errors.Is(err, payments.ErrNotCompared) {
		t.Errorf("%v, want it refused", err)
	}
	seen = read()
	for range 2 {
		b.ok(b.CorrectRefunded(t.Context(), seen, 0, "first"))
	}
	b.giveBack("again", p.ID, 500).want(202) // it says what the first one has read
	if err := b.CorrectRefunded(t.Context(), seen, 0, "late"); err == nil || errors.Is(err, payments.ErrNotCompared) {
		t.Errorf("%v, want to be told that it is not known what became of it", err)
	}
	b.refunded(p.ID, 500)
	if err := b.CorrectRefunded(t.Context(), payments.Payment{Tenant: tenantA, ID: "pay_none"}, 0, "none"); !errors.Is(err, payments.ErrNotCompared) {
		t.Errorf("%v, want no payment to be made", err)
	}
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// An account that money moves on between the reading and the correction is not corrected, nor is one that has begun to collect.
func TestAccountThatChangesWhileItIsComparedIsLeft(t *testing.T) {
	for name, meanwhile := range map[string]func(books){
		"a transfer": func(b books) {
			b.post(tenantA, "/v1/transfers", "meanwhile", transfer("acct_1", "acct_2", 5)).want(201)
		},
		"there and back": func(b books) {
			b.post(tenantA, "/v1/transfers", "there", transfer("acct_1", "acct_2", 5)).want(201)
			b.post(tenantA, "/v1/transfers", "back", transfer("acct_2", "acct_1", 5)).want(201)
		},
		"it collects": func(b books) { b.ok(b.Collect(b.Context(), tenantA, "acct_1", 1, noon)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBooks(t)
			b.post(tenantA, "/v1/transfers", "k", transfer("acct_1", "acct_2", 500)).want(201)
			a, err := b.Account(t.Context(), tenantA, "acct_1")
			b.ok(err)
			meanwhile(b)
			before := b.balance(tenantA, "acct_1")
			err = b.Compared(t.Context(), *a, payments.Totals{}, time.Time{}, "comparison")
			if !errors.Is(err, payments.ErrNotCompared) || b.balance(tenantA, "acct_1") != before {
				t.Errorf("%v, want a refusal that changes nothing", err)
			}
		})
	}
}

// Two people who compare an account at the same time correct it once; the later one is told that the account has been compared.
func TestTwoComparisonsCorrectOnce(t *testing.T) {
	b := newBooks(t)
	b.post(tenantA, "/v1/transfers", "k", transfer("acct_1", "acct_2", 500)).want(201)
	a, err := b.Account(t.Context(), tenantA, "acct_1")
	b.ok(err)
	b.ok(b.Compared(t.Context(), *a, payments.Totals{}, time.Time{}, "first"))
	if err := b.Compared(t.Context(), *a, payments.Totals{}, time.Time{}, "second"); err == nil || errors.Is(err, payments.ErrNotCompared) {
		t.Errorf("%v, want to be told that it is not known what became of it", err)
	}
	b.ok(b.Compared(t.Context(), *a, payments.Totals{}, time.Time{}, "first")) // its own try, whose reply was lost
	if got := b.balance(tenantA, "acct_1"); got != seedBalance {
		t.Errorf("%d, want %d", got, seedBalance)
	}
}

// docs/recovery.md "Compare the balances": a comparison takes totals back to what the rows say, and money that moves then makes them what
// they were before it. A write of a comparison that read them before is refused, however late it arrives.
func TestLateComparisonIsRefusedWhereTheTotalsAreAgainWhatItRead(t *testing.T) {
	for _, account := range []string{"acct_1", "acct_c"} {
		t.Run(account, func(t *testing.T) {
			b := newBooks(t)
			b.open(payments.Account{Tenant: tenantA, ID: "acct_c", Currency: "EUR", Balance: 100, Partitions: 1})
			for _, round := range []string{"never compared", "compared before"} {
				moves := func(key string) {
					b.post(tenantA, "/v1/transfers", round+key, transfer(account, "acct_2", 5)).want(201)
				}
				before := b.balance(tenantA, account)
				moves("torn")
				a, err := b.Account(t.Context(), tenantA, account)
				b.ok(err)
				b.ok(b.Compared(t.Context(), *a, payments.Totals{}, time.Time{}, round))
				moves("again")
				again, err := b.Account(t.Context(), tenantA, account)
				if b.ok(err); again.Totals() != a.Totals() {
					t.Fatalf("%+v, want the totals %+v", again, a.Totals())
				}
				if err := b.Compared(t.Context(), *a, payments.Totals{}, time.Time{}, "late"); err == nil {
					t.Error(round + ": it was written")
				}
				if got := b.balance(tenantA, account); got != before-5 {
					t.Errorf("%s: %d, want %d", round, got, before-5)
				}
				b.ok(b.Compared(t.Context(), *again, payments.Totals{}, time.Time{}, round+" at last"))
			}
		})
	}
}

// docs/recovery.md "Compare the balances": a transfer that was answered and whose row is gone is found, its row put back, and the
// balances follow; whatever part of it was there.
func TestAnsweredTransferWithoutItsRowIsPutBack(t *testing.T) {
	for name, receiver := range map[string]string{"to an account": "acct_2", "to a collecting account": "acct_c"} {
		t.Run(name, func(t *testing.T) {
			b := newBooks(t)
			b.collecting(2)
			b.post(tenantA, "/v1/transfers", "whole", transfer("acct_1", receiver, 7)).want(201)
			before := b.items()
			b.post(tenantA, "/v1/transfers", "k", transfer("acct_1", receiver, 500)).want(201)
			b.post(tenantA, "/v1/transfers", "refused", transfer("acct_2", "acct_1", 10_000)).want(402)
			after := b.items()
			var row string
			for pk := range after {
				if before[pk] == nil {
					row = pk
				}
			}
			answered := payments.Answered{Table: b.Table, Records: strings.TrimSuffix(b.Table.Name, "-payments") + "-idempotency", Store: b.store}
			for _, payer := range []map[string]map[string]types.AttributeValue{before, after} {
				b.put(row, nil)
				b.put("account#"+tenantA+"/acct_1", payer["account#"+tenantA+"/acct_1"])
				if late, err := answered.Transfers(t.Context(), noon.Add(time.Second)); err != nil || len(late) != 0 {
					t.Errorf("%+v, %v since later than it", late, err)
				}
				found, err := answered.Transfers(t.Context(), noon)
				if err != nil || len(found) != 1 || found[0].Trouble != nil {
					t.Fatalf("%+v, %v, want one", found, err)
				}
				for range 2 {
					b.ok(b.PutBack(t.Context(), found[0].Transfer))
				}
				if now := b.items()[row]; !reflect.DeepEqual(now, after[row]) {
					t.Errorf("%v, want the row %v", now, after[row])
				}
				b.compare()
				b.agrees()
				if got := b.balance(tenantA, "acct_1"); got != seedBalance-507 {
					t.Errorf("the payer has %d", got)
				}
				if found, err := answered.Transfers(t.Context(), time.Time{}); err != nil || len(found) != 0 {
					t.Errorf("%+v, %v, want none any more", found, err)
				}
			}
		})
	}
}

// counted counts the requests of a client.
type counted struct{ requests atomic.Int64 }

// Do implements the SDK's HTTP client.
func (c *counted) Do(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return http.DefaultClient.Do(r)
}

// readOneByOne is a store of which no record may be read by itself.
type readOneByOne struct{ storage.Store }

func (readOneByOne) Get(context.Context, storage.RecordKey) (*storage.Record, error) {
	return nil, errors.New("a record is read by itself, and its transfer has a row")
}

// docs/recovery.md "Compare the balances": transfers that have their rows are looked at in batches. One by one, the transfers of an hour
// would take longer than the hour that the page's command has.
func TestAnsweredTransfersWithTheirRowsAreReadInBatches(t *testing.T) {
	b := newBooks(t)
	for n := range 120 { // more than one batch
		b.post(tenantA, "/v1/transfers", fmt.Sprintf("k%d", n), transfer("acct_1", "acct_2", 1)).want(201)
	}
	requests := &counted{}
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Names()[0]), func(o *dynamodb.Options) { o.HTTPClient = requests })
	answered := payments.Answered{
		Table: payments.Table{Client: client, Name: b.Table.Name}, Records: strings.TrimSuffix(b.Table.Name, "-payments") + "-idempotency", Store: readOneByOne{b.store},
	}
	found, err := answered.Transfers(t.Context(), time.Time{})
	if err != nil || len(found) != 0 {
		t.Errorf("%+v, %v, want none", found, err)
	}
	if n := requests.requests.Load(); n >= 20 {
		t.Errorf("%d requests for 120 transfers", n)
	}
}

// unloaded is a store that can't read one response.
type unloaded struct {
	storage.Store
	asked *int
}

func (u unloaded) LoadResponse(ctx context.Context, r storage.Record) (storage.Record, error) {
	if *u.asked++; *u.asked == 1 {
		return r, errors.New("it can't be decrypted")
	}
	return u.Store.LoadResponse(ctx, r)
}

// What can't be read of one transfer keeps no other one from being found.
func TestAnsweredTransferThatCannotBeReadIsTrouble(t *testing.T) {
	b := newBooks(t)
	b.post(tenantA, "/v1/transfers", "one", transfer("acct_1", "acct_2", 500)).want(201)
	b.post(tenantA, "/v1/transfers", "two", transfer("acct_1", "acct_2", 500)).want(201)
	for pk := range b.items() {
		if strings.HasPrefix(pk, "transfer#") {
			b.put(pk, nil)
		}
	}
	answered := payments.Answered{Table: b.Table, Records: strings.TrimSuffix(b.Table.Name, "-payments") + "-idempotency", Store: unloaded{b.store, new(int)}}
	found, err := answered.Transfers(t.Context(), time.Time{})
	if err != nil || len(found) != 2 || (found[0].Trouble == nil) == (found[1].Trouble == nil) {
		t.Errorf("%+v, %v, want both, and trouble with one", found, err)
	}
	for _, lost := range found {
		if id := strings.TrimPrefix(lost.Transfer.ID, "tr_"); id == "" || id == lost.Transfer.ID || lost.Transfer.Tenant != tenantA {
			t.Errorf("%+v, want the id of its row", lost)
		}
	}
}
