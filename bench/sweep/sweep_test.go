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

// What an outage leaves is offered without a read of a message, at a price that follows from its number: everything once, nothing
// twice, and minute by minute as much as the queue takes.
func TestWhatIsDueIsOfferedByTheQueuesRate(t *testing.T) {
	dynamotest.Each(t, func(t *testing.T, url string) {
		b, err := newBacklog(t.Context(), url, 4000, 1600, func(int) {})
		if err != nil {
			t.Fatal(err)
		}
		minutes, err := b.minutes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		offered, reads, writes, calls := 0, 0.0, 0.0, map[string]int{}
		for i, m := range minutes {
			offered, reads, writes = offered+m.offered, reads+m.reads, writes+m.writes
			for name, n := range m.calls {
				calls[name] += n
			}
			if i < 2 && m.offered < 1300 || m.offered > 1600 { // a run that begins later finds some of the room taken
				t.Errorf("minute %d: %d offered", i+1, m.offered)
			}
		}
		last := minutes[len(minutes)-1]
		if len(minutes) > 4 || offered != 4000 || last.lost != 0 {
			t.Errorf("%d offered in %d minutes, %d of them doubled", offered, len(minutes), last.lost)
		}
		// A page has up to 1,000, a run 200. Places: a GetItem and an UpdateItem for each run that does not come to the end.
		most := len(minutes) * dueShards
		if calls["SendMessage"] != 0 || calls["SendMessageBatch"] > offered/10+2*most || calls["GetItem"] > most || calls["UpdateItem"] > most ||
			calls["Query"] > 5*most || reads > 200 || writes > float64(most) {
			t.Errorf("%g R, %g W, %v", reads, writes, calls)
		}
		reading, err := b.run(t.Context(), 0)
		if err != nil || reading.offered < 4000 || reading.offered > 4000+dueShards || reading.calls["GetItem"] < 4000 || reading.calls["SendMessage"] < 4000 {
			t.Errorf("reading each: %+v, %v", reading, err)
		}
	})
}
