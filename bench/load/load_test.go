package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// The costs are those of bench/cost for the same paths; a status is the record and its message.
func TestTheHandlerIsMeasuredWithItsCosts(t *testing.T) {
	part, err := measureDirect(t.Context(), dynamotest.Endpoint(t, dynamotest.Dynoxide), 12, []int{1, 4}, wirefault.Patiently)
	must(t, err)
	must(t, Report{Parts: []Part{part}}.err())
	want := map[string]Cost{
		"payment":     {"GetItem, TransactWriteItems(3)", 7, 1},
		"replay":      {"GetItem", 0, 1},
		"status read": {"GetItem, GetItem", 0, 2},
	}
	if len(part.Figures) != 6 {
		t.Errorf("%d figures, want three paths twice", len(part.Figures))
	}
	for _, f := range part.Figures {
		if *f.Cost != want[f.Path] || f.Requests != 12 {
			t.Errorf("%s: %+v of %d requests, want %+v of 12", f.Path, *f.Cost, f.Requests, want[f.Path])
		}
	}
}

func TestCostsDoNotGrowWithTheTable(t *testing.T) {
	url := dynamotest.Endpoint(t, dynamotest.Dynoxide)
	var told []int
	part, err := measureGrowth(t.Context(), url, []int{300, 100}, 5, func(done, _ int) { told = append(told, done) }, wirefault.Patiently)
	must(t, err)
	must(t, Report{Parts: []Part{part}}.err())
	if len(part.Figures) != 4 || part.Figures[0].Rows != 100 || part.Figures[3].Rows != 300 {
		t.Errorf("%+v", part.Figures)
	}
	if !slices.IsSorted(told) || told[len(told)-1] != 300 {
		t.Errorf("told of %v", told)
	}
	filled := 0
	pages := dynamodb.NewScanPaginator(dynamotest.Client(url), &dynamodb.ScanInput{TableName: new("load-growth-idempotency")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		must(t, err)
		for _, row := range page.Items {
			if key, ok := row["pk"].(*types.AttributeValueMemberS); ok && strings.HasPrefix(key.Value, "fill") && len(row) > 5 {
				filled++
			}
		}
	}
	if filled != 300 {
		t.Errorf("%d records were filled in, want 300", filled)
	}
}

func TestACostThatGrowsFailsTheRun(t *testing.T) {
	figures := []Figure{
		{Path: "first", Rows: 10, Cost: &Cost{"PutItem", 1, 0}}, {Path: "replay", Rows: 10, Cost: &Cost{"GetItem", 0, 1}},
		{Path: "first", Rows: 20, Cost: &Cost{"PutItem", 1, 0}}, {Path: "replay", Rows: 20, Cost: &Cost{"GetItem", 0, 2}},
	}
	if wrong := grows(figures); len(wrong) != 1 || !strings.HasPrefix(wrong[0], "replay: ") {
		t.Errorf("got %q, want the replay", wrong)
	}
	if wrong := grows(figures[:3]); wrong != nil {
		t.Errorf("got %q of costs that are the same", wrong)
	}
}

// By hand the same calls are made that idem makes, so they consume the same.
func TestTheSidesAnswerAlikeAndTheCallsByHandConsumeWhatIdemDoes(t *testing.T) {
	part, err := measureBeside(t.Context(), dynamotest.Endpoint(t, dynamotest.Dynoxide), "", turns{requests: 12, rounds: 3, known: 5}, []int{1, 4}, wirefault.Patiently)
	must(t, err)
	must(t, Report{Parts: []Part{part}}.err())
	costs := map[string]Cost{}
	for _, f := range part.Figures {
		costs[f.Side+", "+f.Path] = *f.Cost
		if f.Requests != 12 {
			t.Errorf("%s, %s: %d requests, want 12", f.Side, f.Path, f.Requests)
		}
	}
	for _, kind := range []string{"atomic", "wrapped"} {
		for _, path := range []string{"first", "replay"} {
			idem, ok := costs["idem, "+kind+", "+path]
			if hand := costs[kind+"'s calls by hand, "+path]; hand != idem || !ok {
				t.Errorf("%s, %s: idem %+v, by hand %+v", kind, path, idem, hand)
			}
		}
	}
	if len(part.Figures) != 4*2*2 || len(part.Notes) != 4 {
		t.Errorf("%d figures and %d notes, want 16 and 4", len(part.Figures), len(part.Notes))
	}
}

func TestASideThatAnswersOtherwiseFailsTheRun(t *testing.T) {
	var n int
	odd := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n++; n == 2 {
			w.WriteHeader(http.StatusOK)
			return
		}
		respond(w)
	})
	samples := takeTurns(t.Context(), []*side{{name: "odd", client: inProcessClient(odd), first: "/"}}, false, turns{requests: 4, rounds: 2}, 1)
	if wrong := unexpected([]Figure{samples[0].figure("first", 1)}); len(wrong) != 1 || !strings.Contains(wrong[0], "1 200") {
		t.Errorf("got %q", wrong)
	}
}

func TestNoSideAlwaysGoesFirst(t *testing.T) {
	var order string
	var all []*side
	for _, name := range []string{"a", "b", "c"} {
		all = append(all, &side{name: name, first: "/", client: inProcessClient(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			order += name
			respond(w)
		}))})
	}
	samples := takeTurns(t.Context(), all, false, turns{requests: 4, rounds: 3}, 1)
	if want := "abc" + "bca" + "ccaabb"; order != want { // 1, 1 and 2 requests
		t.Errorf("order %s, want %s", order, want)
	}
	for i, s := range samples {
		if len(s.latencies) != 4 {
			t.Errorf("%s: %d requests, want 4", all[i].name, len(s.latencies))
		}
	}
}

// A replayed payment that is executed instead is no replay.
func TestAReplayThatIsExecutedIsUnexpected(t *testing.T) {
	url := dynamotest.Endpoint(t, dynamotest.Dynoxide)
	tables, err := createTables(t.Context(), url, "load-replay")
	must(t, err)
	app, err := newApp(t.Context(), newClient(url, wirefault.Patiently), tables)
	must(t, err)
	traffic := newTraffic(inProcessClient(app))
	if code := traffic.pay(t.Context(), 0); code != "" {
		t.Fatal(code)
	}
	if code := traffic.again(t.Context(), 0); code != "" {
		t.Errorf("a replay: %s", code)
	}
	traffic.accepted[0].key += "-other"
	if code := traffic.again(t.Context(), 0); code != "202 executed" {
		t.Errorf("got %q, want it executed", code)
	}
}

func TestNumbersThatMeasureNothingAreRefused(t *testing.T) {
	good := arguments{Requests: 1, Callers: []int{1}, Rows: []int{1}, Rounds: 1, Settle: time.Second}
	must(t, good.check())
	for flag, spoil := range map[string]func(*arguments){
		"--requests": func(a *arguments) { a.Requests = 0 },
		"--rounds":   func(a *arguments) { a.Rounds = -1 },
		"--settle":   func(a *arguments) { a.Settle = 0 },
		"--callers":  func(a *arguments) { a.Callers = []int{1, 0} },
		"--rows":     func(a *arguments) { a.Rows = nil },
	} {
		a := good
		spoil(&a)
		if err := a.check(); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: got %v", flag, err)
		}
	}
}

// What is compared is the release that docs/peers.md speaks of, and what npm ci installs is locked.
func TestPowertoolsIsPinned(t *testing.T) {
	var wanted struct{ Dependencies map[string]string }
	var locked struct {
		Packages map[string]struct{ Version, Integrity string }
	}
	for name, into := range map[string]any{"package.json": &wanted, "package-lock.json": &locked} {
		content, err := os.ReadFile(filepath.Join("powertools", name))
		must(t, err)
		must(t, json.Unmarshal(content, into))
	}
	exact := regexp.MustCompile(`^\d+\.\d+\.\d+$`)
	for name, version := range wanted.Dependencies {
		installed := locked.Packages["node_modules/"+name]
		if !exact.MatchString(version) || installed.Version != version || installed.Integrity == "" {
			t.Errorf("%s: %s is asked for, %+v locked", name, version, installed)
		}
	}
	readme, err := os.ReadFile("../README.md")
	must(t, err)
	if version := wanted.Dependencies["@aws-lambda-powertools/idempotency"]; !strings.Contains(string(readme), "TypeScript "+version) {
		t.Errorf("bench/README.md does not speak of Powertools for TypeScript %s", version)
	}
}
