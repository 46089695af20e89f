package main

import (
	"os"
	"slices"
	"testing"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// What sweeps and reconcilers cost follows from what is stuck alone: tables that are ten times as large cost the same,
// call by call and unit by unit. Nobody looks at what has expired, and it stands in no request's way.
func TestCostDoesNotGrowWithTheTables(t *testing.T) {
	dynamotest.Each(t, func(t *testing.T, url string) {
		few, many := measured(t, url, 200), measured(t, url, 2000)
		if !slices.EqualFunc(few, many, stage.equal) {
			t.Errorf("with 200 rows\n%+v\nwith 2,000\n%+v", few, many)
		}
		var told []string
		for _, s := range few {
			told = append(told, s.name+": "+s.brief()+"; "+s.told())
		}
		// One GetItem more of each engine and worker, once a minute: when data may have been lost.
		for i, want := range []string{
			"sweep, records: Parked:50; 50 GetItem, 50 PutItem, 4 Query",
			"sweep, messages: Offered:25 Parked:25; 51 GetItem, 25 PutItem, 4 Query",
			"worker: Delivered:25; 26 GetItem, 25 PutItem, 25 UpdateItem",
			"reconcile, records: Completed:25 Freed:25; 100 GetItem, 50 PutItem, 4 Query",
			"reconcile, messages: Settled:25; 26 GetItem, 4 Query, 25 UpdateItem",
			"nothing stuck: sweep, records: ; 4 Query",
			"sweep, messages: ; 4 Query",
			"reconcile, records: ; 4 Query",
			"reconcile, messages: ; 4 Query",
			"request, new key: Outcome:executed; 1 GetItem, 1 PutItem, 1 TransactWriteItems",
			"request, expired key: Outcome:executed; 1 PutItem, 1 TransactWriteItems",
		} {
			if told[i] != want {
				t.Errorf("got  %s\nwant %s", told[i], want)
			}
		}
	})
}

func measured(t *testing.T, url string, rows int) []stage {
	t.Helper()
	stages, err := measure(t.Context(), url, rows, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	return stages
}
