package main

import (
	"crypto/md5"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/awsctl"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/idem/outbox/sqsqueue"
	"github.com/idem-go/idem-aws/internal/jsonpage"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// answers are the types of the application's answers, by their section of docs/reference/idemctl-json.md.
var answers = jsonpage.Types{
	"payment": reflect.TypeFor[known](), "row": reflect.TypeFor[row](),
	"report": reflect.TypeFor[drift.Report](), "window": reflect.TypeFor[drift.Window](), "compared": reflect.TypeFor[drift.Counts](),
	"finding": reflect.TypeFor[drift.Drift](), "side": reflect.TypeFor[drift.Side](), "parked": reflect.TypeFor[drift.Parked](), "cost": reflect.TypeFor[drift.Cost](),
	"letters": reflect.TypeFor[sqsqueue.RedriveReport](), "letter": reflect.TypeFor[sqsqueue.Redriven](),
	"tables": reflect.TypeFor[awsctl.TablesAnswer](), "table": reflect.TypeFor[awsctl.TableAnswer](), "restored": reflect.TypeFor[restored](),
	"comparison": reflect.TypeFor[comparison](), "transfer": reflect.TypeFor[answeredTransfer](), "account": reflect.TypeFor[comparedAccount](), "refunded": reflect.TypeFor[refundedPayment](),
	"totals": reflect.TypeFor[payments.Totals](), "moved": reflect.TypeFor[payments.Moved](), "total": reflect.TypeFor[payments.Total](), "created": reflect.TypeFor[created](),
	"opened": reflect.TypeFor[awsctl.KeysAnswer](), "unreadable": reflect.TypeFor[awsctl.Unreadable](), "key": reflect.TypeFor[apikey.Key](), "limits": reflect.TypeFor[apikey.Limits](),
}

// commandAnswers are what the commands answer, in the page's words.
var commandAnswers = map[string]string{
	"drift": "report", "redrive --dead-letters": "letters", "tables check": "tables", "tables restore": "result", "tables prepare": "result",
	"keys check": "opened", "keys export": "result", "keys import": "result", "keys erase": "result",
	"missing restore": "array of restored", "account collect": "result", "account compare": "comparison",
	"apikey create": "created", "apikey revoke": "result", "apikey limit": "result", "apikey list": "array of key",
}

// jsonPage is docs/reference/idemctl-json.md: the text of the application's part, its sections, and those of the whole page.
func jsonPage(t *testing.T) (text string, own, all jsonpage.Page) {
	t.Helper()
	library, text, err := jsonpage.Read(filepath.Join("..", "..", "..", "docs", "reference", "idemctl-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	if own, err = jsonpage.Parse(text); err != nil {
		t.Fatal(err)
	}
	if all, err = jsonpage.Parse(library + text); err != nil {
		t.Fatal(err)
	}
	return text, own, all
}

// The page has every field of every answer of the application, with its type, and no other.
func TestJSONPageIsTheApplicationsCode(t *testing.T) {
	_, own, all := jsonPage(t)
	types := jsonpage.Types{"result": reflect.TypeFor[operator.Result]()}
	for name, typ := range answers {
		types[name] = typ
	}
	for name, typ := range answers {
		if want := types.Fields(typ); !reflect.DeepEqual(own[name], want) {
			t.Errorf("section %s of docs/reference/idemctl-json.md\nhas  %v\nwant %v", name, own[name], want)
		}
	}
	if len(own) != len(answers) {
		t.Errorf("the application's part has %d sections of fields, want %d", len(own), len(answers))
	}
	for name := range own {
		if len(all[name]) != len(own[name]) {
			t.Errorf("two sections are called %s", name)
		}
	}
}

// commandsOf are the commands of a grammar, by the words that are typed.
func commandsOf(path string, grammar reflect.Type) (all []string) {
	for _, f := range reflect.VisibleFields(grammar) {
		if _, isCommand := f.Tag.Lookup("cmd"); isCommand && len(f.Index) == 1 {
			all = append(all, commandsOf(path+" "+strings.ToLower(f.Name), f.Type)...)
		}
	}
	if all == nil {
		return []string{path}
	}
	return all
}

// The page's table of answers has every command of the application, and those of the library's that the application answers.
func TestJSONPageHasEveryCommandOfTheApplication(t *testing.T) {
	text, _, _ := jsonPage(t)
	table, _, _ := strings.Cut(text, "\n### ")
	listed := map[string]string{}
	for _, found := range regexp.MustCompile("(?m)^\\| (`.*`) \\| ([^|;]+?)(;[^|]*)? \\|$").FindAllStringSubmatch(table, -1) {
		for _, command := range strings.Split(found[1], ", ") {
			listed[strings.Trim(command, "`")] = regexp.MustCompile(`\[(\w+)\]\(#\w+\)`).ReplaceAllString(found[2], "$1")
		}
	}
	if got := listed["inspect"]; got != "story, whose `application` is a payment" {
		t.Errorf("inspect answers %q", got)
	}
	delete(listed, "inspect")
	if !reflect.DeepEqual(listed, commandAnswers) {
		t.Errorf("the table has\n%v\nwant\n%v", listed, commandAnswers)
	}
	for _, c := range app().Commands {
		for _, command := range commandsOf(c.Name, reflect.TypeOf(c.Grammar).Elem()) {
			if commandAnswers[command] == "" {
				t.Errorf("%s has no answer", command)
			}
		}
	}
}

// page checks what is printed against the page, and knows which commands have printed.
type page struct {
	*desk
	all     jsonpage.Page
	printed map[string]bool
}

// shows runs a command with --output json and demands that it prints what the page says.
func (p *page) shows(want int, args ...string) any {
	p.Helper()
	out, _ := p.exits(want, append(args, "--output", "json")...)
	var answer any
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		p.Fatalf("%q: %v: %s", args, err, out)
	}
	kind := "story"
	for command, answers := range commandAnswers {
		if strings.HasPrefix(strings.Join(args, " ")+" ", command+" ") {
			kind = answers
			p.printed[command] = true
		}
	}
	for _, wrong := range p.all.Mismatches(kind, answer) {
		p.Errorf("%q: %s\n%s", args, wrong, out)
	}
	return answer
}

// What the application's commands print is what the page says, field by field: of a dry run, of a change, and of what is refused.
func TestJSONPageIsWhatTheApplicationPrints(t *testing.T) {
	t.Setenv("DRIFT_GRACE", "1ms")
	d := newDesk(t)
	_, _, all := jsonPage(t)
	p := &page{d, all, map[string]bool{}}
	p.keys()
	p.drifts()
	p.letters()
	p.tables()
	p.missing()
	p.accounts()
	sealed, _ := encrypted(t)
	(&page{sealed, all, p.printed}).sealedKeys()
	for command := range commandAnswers {
		if !p.printed[command] {
			t.Errorf("%s was not checked", command)
		}
	}
}

func (p *page) sealedKeys() {
	p.Helper()
	file := filepath.Join(p.TempDir(), "keys.json")
	p.shows(idemctl.ExitOK, "keys", "check")
	p.shows(idemctl.ExitOK, "keys", "export", file, "--reason", "r")
	p.shows(idemctl.ExitOK, "keys", "export", file, "--reason", "r", "--write")
	p.otherRegion(os.Getenv("KMS_KEY_ID")) // whose table the last line erases from
	p.shows(idemctl.ExitRefused, "keys", "check")
	p.shows(idemctl.ExitOK, "keys", "import", file, "--reason", "r")
	p.shows(idemctl.ExitOK, "keys", "import", file, "--reason", "r", "--write")
	p.shows(idemctl.ExitOK, "keys", "erase", lambdatest.Tenant, "--reason", "r", "--write")
}

func (p *page) keys() {
	p.Helper()
	create := []string{"apikey", "create", "--tenant", "tenant-b", "--name", "shop", "--expires", "2126-01-01T00:00:00Z", "--reason", "r"}
	p.shows(idemctl.ExitOK, create...)
	made := p.shows(idemctl.ExitOK, append(create, "--write")...).(map[string]any)
	_, err := p.Keys(p.T).Caller(p.Context(), "Bearer "+made["key"].(string))
	p.ok(err)
	limit := []string{"apikey", "limit", "tenant-b", "--new-keys", "5", "--active-keys", "6", "--look-ups", "7", "--waits", "8", "--reason", "r"}
	p.shows(idemctl.ExitOK, limit...)
	p.shows(idemctl.ExitOK, append(limit, "--write")...)
	revoke := []string{"apikey", "revoke", made["subject"].(string), "--reason", "r"}
	p.shows(idemctl.ExitOK, revoke...)
	p.shows(idemctl.ExitOK, append(revoke, "--write")...)
	key := p.shows(idemctl.ExitOK, "apikey", "list", "--tenant", "tenant-b").([]any)[0].(map[string]any)
	if len(key) != len(p.all["key"]) {
		p.Errorf("the key has the fields %v, want all of the page's", key)
	}
	p.shows(idemctl.ExitOK, "apikey", "list", "--tenant", "nobody")
}

func (p *page) accounts() {
	p.Helper()
	p.Account(p.T, "tenant-b", "acct_c", 7)
	collect := []string{"account", "collect", "acct_c", "--tenant", "tenant-b", "--partitions", "1", "--reason", "r"}
	p.shows(idemctl.ExitOK, collect...)
	p.shows(idemctl.ExitOK, append(collect, "--write")...)
	p.foldedInPart(500)
	compare := []string{"account", "compare", "acct_c", "--tenant", "tenant-b", "--correct", "--reason", "r"}
	p.exits(idemctl.ExitOK, "refuse-before", "set", time.Now().Add(time.Minute).UTC().Format(time.RFC3339), "--reason", "r", "--write")
	p.shows(idemctl.ExitOK, compare...)
	p.shows(idemctl.ExitOK, append(compare, "--write")...)
	p.shows(idemctl.ExitOK, compare...) // it agrees
	p.Account(p.T, lambdatest.Tenant, "acct_2", 0)
	p.answeredWithoutRow("acct_1", "acct_2", 3)
	p.shows(idemctl.ExitRefused, "account", "compare", "--reason", "r")
}

// drifts has a payment, a refund of it, a charge that is nobody's and a charge whose outcome is unknown.
func (p *page) drifts() {
	p.Helper()
	p.shows(idemctl.ExitOK, "drift", "--tenant", lambdatest.Tenant)
	p.shows(idemctl.ExitTrouble, "drift", "--within", "1ns") // nothing is compared
	paid := p.pay("order-17", "card_ok")
	p.deliver(paid.Message(1))
	payment := p.inspect(string(paid)).Application.Row.ID
	refund := p.post("/v1/payments/"+payment+"/refunds", "refund-17", `{"amount":500}`)
	p.deliver(refund.Message(1))
	p.faults(provider.Rule{On: provider.LegacyCharge, Fault: provider.DropAfter, Times: 1})
	unknown := p.pay("order-18", "legacy_ok")
	p.deliver(unknown.Message(1))
	stray(p.T, p.Stage)
	report := p.shows(idemctl.ExitRefused, "drift").(map[string]any)
	if len(report["drifts"].([]any)) == 0 || len(report["parked"].([]any)) == 0 {
		p.Errorf("nothing drifts, or nothing is parked: %v", report)
	}
	for id, made := range map[string]string{string(paid): "refunded", string(refund): "payment", string(unknown): "status"} {
		application := p.shows(idemctl.ExitOK, "inspect", id).(map[string]any)["application"]
		for _, wrong := range p.all.Mismatches("payment", application) {
			p.Errorf("application of %s: %s", id, wrong)
		}
		if row, ok := application.(map[string]any)["row"].(map[string]any); !ok || row[made] == nil {
			p.Errorf("the row of %s has no %s: %v", id, made, row)
		}
	}
}

// letters has a dead-letter queue with a dead message, and a body that nobody knows.
func (p *page) letters() {
	p.Helper()
	dead := fmt.Sprintf(`{"message":%q,"topic":"payments.charge","reason":"given up"}`, p.pay("order-19", "card_ok").Message(1))
	p.Setenv("AWS_ENDPOINT_URL_SQS", deadLetters(p.T, dead, "{}"))
	redrive := []string{"redrive", "--dead-letters", "--max", "2", "--reason", "r"}
	p.shows(idemctl.ExitOK, redrive...)
	report := p.shows(idemctl.ExitOK, append(redrive, "--write")...).(map[string]any)
	if n := len(report["letters"].([]any)); n != 2 {
		p.Errorf("%d letters: %v", n, report)
	}
}

// deadLetters is an endpoint that answers for a queue with these bodies, as SQS does over the wire (AWS JSON 1.0).
func deadLetters(t *testing.T, bodies ...string) (url string) {
	t.Helper()
	var messages []map[string]any
	for i, body := range bodies {
		messages = append(messages, map[string]any{
			"MessageId": fmt.Sprint("letter-", i), "ReceiptHandle": fmt.Sprint("receipt-", i), "Body": body, "MD5OfBody": fmt.Sprintf("%x", md5.Sum([]byte(body))),
			"Attributes": map[string]string{"SentTimestamp": fmt.Sprint(time.Now().UnixMilli())},
		})
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		answer := map[string]any{}
		if r.Header.Get("X-Amz-Target") == "AmazonSQS.ReceiveMessage" {
			answer["Messages"] = messages
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func (p *page) tables() {
	p.Helper()
	p.bare("-r1")
	recoverable(p.T)
	differ := p.shows(idemctl.ExitRefused, "tables", "check", "--suffix=-r1").(map[string]any)
	if !slices.ContainsFunc(differ["tables"].([]any), func(table any) bool { return table.(map[string]any)["differences"] != nil }) {
		p.Errorf("nothing differs: %v", differ)
	}
	prepare := []string{"tables", "prepare", "--suffix=-r1", "--reason", "r"}
	p.shows(idemctl.ExitOK, prepare...)
	p.shows(idemctl.ExitOK, append(prepare, "--write")...)
	p.shows(idemctl.ExitOK, "tables", "check", "--suffix=-r1")
	p.shows(idemctl.ExitOK, "tables", "restore", "--to", "2026-11-21T11:30:00Z", "--suffix=-r2", "--reason", "r")
}

// missing has what is left to a person, and what is made again.
func (p *page) missing() {
	p.Helper()
	p.lose()
	now := time.Now()
	restore := []string{
		"missing", "restore", "--from", now.Add(-time.Hour).UTC().Format(time.RFC3339), "--to", now.Add(time.Hour).UTC().Format(time.RFC3339), "--reason", "r",
	}
	p.shows(idemctl.ExitRefused, restore...)
	restore = append(restore, "--tenant", lambdatest.Tenant)
	p.shows(idemctl.ExitRefused, restore...)
	did := map[string]int{}
	for _, one := range p.shows(idemctl.ExitRefused, append(restore, "--write")...).([]any) {
		for _, field := range []string{"did", "code"} {
			if one.(map[string]any)[field] != nil {
				did[field]++
			}
		}
	}
	if did["did"] == 0 || did["code"] == 0 {
		p.Errorf("%v", did)
	}
	p.shows(idemctl.ExitOK, "missing", "restore", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-02T00:00:00Z", "--reason", "r")
}
