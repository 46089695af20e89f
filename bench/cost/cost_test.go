package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/internal/localtool"
)

// The costs are part of the design: whoever changes one shows it in the diff of testdata.
func TestCostsAreThoseOfTestdata(t *testing.T) {
	for _, name := range dynamotest.Names() {
		t.Run(name, func(t *testing.T) {
			rows := measured(t, name)
			var got bytes.Buffer
			if err := render(&got, rows); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".txt")
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			differ(t, strings.Split(string(want), "\n"), strings.Split(got.String(), "\n"))
			if t.Failed() {
				t.Logf("if this is meant: go run ./bench/cost --endpoint %s > bench/cost/%s", name, golden)
			}
		})
	}
}

func differ(t *testing.T, want, got []string) {
	t.Helper()
	if len(want) != len(got) {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			t.Errorf("line %d\n got %s\nwant %s", i+1, got[i], want[i])
		}
	}
}

// The rules that price a call here, and dynoxide, which knows nothing of them, agree on every call that is told of.
func TestRulesAgreeWithDynoxide(t *testing.T) {
	calls := 0
	for _, r := range measured(t, localtool.Dynoxide) {
		for _, c := range r.calls {
			if c.lost {
				continue
			}
			calls++
			if c.ruled.writes() != c.reportedWrites || c.ruled.reads != c.reportedReads {
				t.Errorf("%s, %s, %s: %s: %gW %gR by the rules, %gW %gR reported", r.operation, r.response, r.path, c.name,
					c.ruled.writes(), c.ruled.reads, c.reportedWrites, c.reportedReads)
			}
		}
	}
	if calls == 0 {
		t.Fatal("no call was compared")
	}
}

// A duplicate must never cost more than what it repeats, and with a read first it is a read.
func TestDuplicatesAreCheaperThanFirstRequests(t *testing.T) {
	var first units
	replays := 0
	for _, r := range measured(t, localtool.Dynoxide) {
		switch u := r.ruled(); r.path {
		case "first":
			first = u
		case "replay", "replay of the 202", "mismatch":
			replays++
			if u.dollars() > first.dollars()/2 {
				t.Errorf("%s, %s, %s: %g $, the first request %g $", r.operation, r.response, r.path, u.dollars(), first.dollars())
			}
			if r.calls[0].name == "GetItem" && u.writes() != 0 {
				t.Errorf("%s, %s, %s: it reads first and writes %g units", r.operation, r.response, r.path, u.writes())
			}
		}
	}
	if replays == 0 {
		t.Fatal("no duplicate was measured")
	}
}

func measured(t *testing.T, name string) []row {
	t.Helper()
	endpoint, err := localtool.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(endpoint.Stop)
	app, err := newApp(t.Context(), endpoint.URL)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := measure(t.Context(), app)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// Examples of the Developer Guide: "DynamoDB item sizes and formats", "DynamoDB read and write operations".
func TestUnitsAreDynamoDBs(t *testing.T) {
	text := func(bytes int) item {
		return item{"k": &types.AttributeValueMemberS{Value: strings.Repeat("x", bytes-1)}}
	}
	for name, row := range map[string]struct{ got, want float64 }{
		"an absent item":                       {readUnits(nil, true), 1},
		"3,500 bytes are read as 4 KB":         {readUnits(text(3500), true), 1},
		"4 KB and a byte":                      {readUnits(text(4<<10+1), true), 2},
		"8 KB, eventually consistent":          {readUnits(text(8<<10), false), 1},
		"500 bytes are written as 1 KB":        {writeUnits(nil, text(500)), 1},
		"the larger of before and after":       {writeUnits(text(300<<10), text(310<<10)), 310},
		"the larger of before and after, less": {writeUnits(text(300<<10), text(10)), 300},
		"a number of 13 digits":                {float64(itemBytes(item{"ca": &types.AttributeValueMemberN{Value: "1795262400123"}})), 2 + 8},
		"a number's trailing zeros":            {float64(itemBytes(item{"rt": &types.AttributeValueMemberN{Value: "86400000"}})), 2 + 3},
		"a list":                               {float64(valueBytes(&types.AttributeValueMemberL{Value: []types.AttributeValue{text(5)["k"]}})), 3 + 1 + 4},
	} {
		if row.got != row.want {
			t.Errorf("%s: got %g, want %g", name, row.got, row.want)
		}
	}
}

// Developer Guide, "Provisioned throughput considerations for global secondary indexes".
func TestIndexUnitsAreDynamoDBs(t *testing.T) {
	table := schema.Table{Key: "pk", Index: schema.Index{Partition: "q", Sort: "qa", Projected: []string{"tn"}}}
	row := func(queue, at, tenant, state string) item {
		it := item{"pk": &types.AttributeValueMemberS{Value: "a"}, "tn": &types.AttributeValueMemberS{Value: tenant}, "st": &types.AttributeValueMemberS{Value: state}}
		if queue != "" {
			it["q"], it["qa"] = &types.AttributeValueMemberS{Value: queue}, &types.AttributeValueMemberN{Value: at}
		}
		return it
	}
	for name, change := range map[string]struct {
		before, after item
		want          float64
	}{
		"never in it":                  {nil, row("", "", "t", "a"), 0},
		"enters":                       {nil, row("q", "1", "t", "a"), 1},
		"leaves":                       {row("q", "1", "t", "a"), row("", "", "t", "b"), 1},
		"moves":                        {row("q", "1", "t", "a"), row("q", "2", "t", "a"), 2},
		"changes what is shown":        {row("q", "1", "t", "a"), row("q", "1", "u", "a"), 1},
		"changes what is not shown":    {row("q", "1", "t", "a"), row("q", "1", "t", "b"), 0},
		"stays out, changes otherwise": {row("", "", "t", "a"), row("", "", "u", "b"), 0},
	} {
		if got := indexUnits(table, change.before, change.after); got != change.want {
			t.Errorf("%s: got %g, want %g", name, got, change.want)
		}
	}
}
