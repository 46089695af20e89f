package idemtest_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/idemtest"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// createOrder is a handler: it writes an order and asks for its shipment.
func createOrder(item string) idem.Handler {
	return func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
		id := string(tx.OperationID())
		tx.Write(dynamo.Put(types.Put{TableName: aws.String("orders"), Item: map[string]types.AttributeValue{
			"pk":   &types.AttributeValueMemberS{Value: id},
			"item": &types.AttributeValueMemberS{Value: item},
		}}))
		tx.Send("orders.ship", []byte(item))
		return idem.JSON(http.StatusCreated, map[string]string{"item": item})
	}
}

// A handler is run once, and nothing is sent anywhere: the test looks at what would be committed.
func ExampleRun() {
	result := idemtest.Run(t, createOrder("book"))

	put, _ := dynamo.Item(result.Writes[0])
	fmt.Println("puts into", *put.Put.TableName)
	fmt.Println("sends to", result.Messages[0].Topic, string(result.Messages[0].Payload))
	fmt.Println("answers", result.Response.Status, string(result.Response.Body), result.Err)
	// Output:
	// puts into orders
	// sends to orders.ship book
	// answers 201 {"item":"book"} <nil>
}

// debit is a business write of the application's own, which toRow turns into one of the reference store.
type debit struct {
	account string
	amount  int
}

func (debit) IfConditionFails() idem.Failure {
	return idem.Reject(idem.NewProblem(402, "insufficient_funds", "Insufficient funds", "The account does not hold the amount."))
}

func toRow(w idem.Write) (memstore.Write, error) {
	d, ok := w.(debit)
	if !ok {
		return memstore.Write{}, fmt.Errorf("unexpected: %T", w)
	}
	balance := func(row []byte) int { n, _ := strconv.Atoi(string(row)); return n }
	return memstore.Write{
		Key:       d.account,
		Condition: func(row []byte) bool { return balance(row) >= d.amount },
		Apply:     func(row []byte) []byte { return strconv.AppendInt(nil, int64(balance(row)-d.amount), 10) },
		Failure:   d.IfConditionFails(),
	}, nil
}

// The process dies before and after each of its calls. The account is debited once, and paid out once, all the same.
func ExampleCrash() {
	withdraw := func(*memstore.Store) idem.Handler {
		return func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Write(debit{"acct_1", 30})
			tx.Send("payouts.send", []byte("30"))
			return idem.JSON(http.StatusAccepted, "on its way")
		}
	}
	bank := outbox.Topic{
		Name: "payouts.send",
		Keys: outbox.Keys{Honoured: true, Retention: 24 * time.Hour},
		Call: func(context.Context, storage.Message) outbox.Outcome { return outbox.Delivered{Reference: "po_1"} },
		Settle: func(storage.Message, outbox.Outcome) (outbox.Settlement, error) {
			response, err := idem.JSON(http.StatusCreated, "paid out")
			return outbox.Settlement{Response: response}, err
		},
	}
	idemtest.Crash(t, idemtest.App{
		Operation: idem.Operation{Name: "payouts.create", Kind: idem.KindDeferred, Policy: idem.IETF()},
		Handler:   withdraw,
		Translate: toRow,
		Rows:      map[string][]byte{"acct_1": []byte("100")},
		Topics:    []outbox.Topic{bank},
	})
	// Output:
	// idemtest: payouts.create: 22 crashes, before and after each of 11 calls
}

// A key is free again when its retention is over. Nobody waits for that.
func ExampleClock() {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		panic(err)
	}
	clock := idemtest.NewClock(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	engine, err := idem.New(store, idem.Config{Now: clock.Now, Pause: clock.Pause})
	if err != nil {
		panic(err)
	}
	op, err := engine.Register(idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()})
	if err != nil {
		panic(err)
	}
	for _, later := range []time.Duration{0, time.Hour, 24 * time.Hour} {
		clock.Advance(later)
		result, err := op.Do(context.Background(), idem.Request{Tenant: "tenant-a", Key: "order-17"}, createNothing)
		if err != nil {
			panic(err)
		}
		fmt.Println(clock.Now().Format("02 15:04"), result.Outcome)
	}
	// Output:
	// 22 12:00 executed
	// 22 13:00 replayed
	// 23 13:00 executed
}

func createNothing(context.Context, *idem.Tx) (idem.Response, error) {
	return idem.JSON(http.StatusCreated, "created")
}

// A store of package faulty fails where a test asks it to. Here the commit happens, and its reply is lost: the engine sends
// the same transaction again and learns what became of it.
func Example_lostReply() {
	inner, err := memstore.New(memstore.Config{})
	if err != nil {
		panic(err)
	}
	store := faulty.New(inner)
	clock := idemtest.NewClock(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	engine, err := idem.New(store, idem.Config{Now: clock.Now, Pause: clock.Pause})
	if err != nil {
		panic(err)
	}
	op, err := engine.Register(idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()})
	if err != nil {
		panic(err)
	}
	store.On(faulty.Commit, 1, faulty.LoseReply())
	result, err := op.Do(context.Background(), idem.Request{Tenant: "tenant-a", Key: "order-17"}, createNothing)
	fmt.Println(result.Response.Status, err, "- commits sent:", store.Count(faulty.Commit), "- records:", len(inner.Records()))
	// Output:
	// 201 <nil> - commits sent: 2 - records: 1
}
