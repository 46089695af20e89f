package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/bench/meter"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
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
			if c.Lost {
				continue
			}
			calls++
			if c.Ruled.Writes() != c.ReportedWrites || c.Ruled.Reads != c.ReportedReads {
				t.Errorf("%s, %s, %s: %s: %gW %gR by the rules, %gW %gR reported", r.operation, r.response, r.path, c.Name,
					c.Ruled.Writes(), c.Ruled.Reads, c.ReportedWrites, c.ReportedReads)
			}
		}
	}
	if calls == 0 {
		t.Fatal("no call was compared")
	}
}

// A duplicate must never cost more than what it repeats, and with a read first it is a read.
func TestDuplicatesAreCheaperThanFirstRequests(t *testing.T) {
	var first meter.Units
	replays := 0
	for _, r := range measured(t, localtool.Dynoxide) {
		switch u := r.ruled(); r.path {
		case "first":
			first = u
		case "replay", "replay of the 202", "mismatch":
			replays++
			if u.Dollars() > first.Dollars()/2 {
				t.Errorf("%s, %s, %s: %g $, the first request %g $", r.operation, r.response, r.path, u.Dollars(), first.Dollars())
			}
			if r.calls[0].Name == "GetItem" && u.Writes() != 0 {
				t.Errorf("%s, %s, %s: it reads first and writes %g units", r.operation, r.response, r.path, u.Writes())
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
	if localtool.Excuses(err) {
		t.Skipf("not run: %v", err)
	}
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
