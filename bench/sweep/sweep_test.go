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
			"sweep: Messages:{Offered:25 Parked:25} Records:{Parked:50}; 101 GetItem, 75 PutItem, 12 Query",
			"worker: Delivered:25; 25 GetItem, 25 PutItem, 25 UpdateItem",
			"reconcile: Messages:{Settled:25} Records:{Completed:25 Freed:25}; 76 GetItem, 50 PutItem, 8 Query, 25 UpdateItem",
			"nothing stuck: sweep: ; 12 Query",
			"reconcile: ; 8 Query",
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
