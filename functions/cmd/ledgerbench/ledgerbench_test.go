package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/drift/hourly"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

const rows, parts = 400, 4

var prefixes atomic.Int64

func filled(t *testing.T, whole bool) *ledger {
	t.Helper()
	prefix := "ledger-" + strconv.FormatInt(prefixes.Add(1), 10)
	l, err := fill(t.Context(), dynamotest.Endpoint(t, dynamotest.Names()[0]), prefix, rows, whole, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Each row is compared once, with its message and its record where they are there still, at the price of bench/README.md.
func TestHourIsComparedOnce(t *testing.T) {
	for whole, reads := range map[bool][2]float64{true: {3, 3.5}, false: {1, 3.5}} {
		t.Run(fmt.Sprintf("whole %t", whole), func(t *testing.T) {
			t.Parallel()
			found, err := filled(t, whole).measure(t.Context(), parts)
			if err != nil {
				t.Fatal(err)
			}
			each := found.report.Cost.ReadUnits / rows
			if found.report.Compared.Rows != rows || found.report.Compared.Objects == 0 || each < reads[0] || each > reads[1] || found.writes == 0 {
				t.Errorf("%+v: %.3f R a row", found, each)
			}
			if whole && found.report.Compared.Messages < rows {
				t.Errorf("%d messages compared", found.report.Compared.Messages)
			}
		})
	}
}

// The benchmark fails where its figures would be of something else than one comparison of everything.
func TestWhatIsNotOneComparisonFails(t *testing.T) {
	compare := func(pieces ...hourly.Piece) func(*testing.T, *ledger) {
		return func(t *testing.T, l *ledger) {
			provider := httptest.NewServer(l)
			defer provider.Close()
			worker, err := l.worker(provider.URL, http.DefaultTransport)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range pieces {
				if p.Pass = l.pass(); worker.Work(t.Context(), p) != nil {
					t.Fatalf("piece %v is not compared", p)
				}
			}
		}
	}
	// The row of a piece is the same, whatever share of the hour it is.
	half, minute := hourly.Piece{Part: 0, Of: 2}, hourly.Piece{Part: 0, Of: 60}
	first10, from20To40 := hourly.Piece{Part: 0, Of: 6}, hourly.Piece{Part: 1, Of: 3} // minutes 10 to 20 are left out, 30 to 40 come twice
	for name, plant := range map[string]func(*testing.T, *ledger){
		"rows are compared twice":                         compare(half),
		"rows are not compared":                           compare(minute),
		"as many are compared twice as are not":           compare(first10, from20To40),
		"a row is not in the index":                       change("REMOVE lh", nil),
		"a row has another amount than the provider says": change("SET amt = :amount", map[string]types.AttributeValue{":amount": &types.AttributeValueMemberN{Value: "2999"}}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := filled(t, true)
			plant(t, l)
			found, err := l.measure(t.Context(), parts)
			if err == nil {
				t.Errorf("%+v", found)
			}
			t.Log(err)
		})
	}
}

// change updates a row in the middle of the hour.
func change(update string, values map[string]types.AttributeValue) func(*testing.T, *ledger) {
	return func(t *testing.T, l *ledger) {
		name := l.payments()
		all, err := l.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &name, Limit: aws.Int32(1)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: &name, Key: map[string]types.AttributeValue{"pk": all.Items[0]["pk"]}, UpdateExpression: &update, ExpressionAttributeValues: values,
		}); err != nil {
			t.Fatal(err)
		}
	}
}
