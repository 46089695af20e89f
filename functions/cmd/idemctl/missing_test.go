package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// accountBalance is what acct_1 holds before any payout.
const accountBalance = 10_000

// payOut sends a payout, which is delivered within its request, and returns its operation.
func (d *desk) payOut(key string) idem.OperationID {
	d.Helper()
	r := httptest.NewRequestWithContext(d.Context(), http.MethodPost, "/v1/payouts", strings.NewReader(`{"from":"acct_1","amount":500,"currency":"EUR","destination":"iban_ok"}`))
	r.Header.Set("Idempotency-Key", `"`+key+`"`)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	d.api.ServeHTTP(w, r)
	if w.Code != http.StatusCreated {
		d.Fatalf("%d %s", w.Code, w.Body)
	}
	payouts, err := d.Provider.Payouts(d.Context())
	d.ok(err)
	operation, _, err := idem.MessageID(payouts[0].Key).Operation()
	d.ok(err)
	return operation
}

// lose deletes every record, message and row, and says that records were lost up to now.
func (d *desk) lose() {
	d.Helper()
	for table, key := range map[string]string{d.Idempotency: "pk", d.Outbox: "id", d.Payments: "pk"} {
		for _, it := range d.Items(d.T, table) {
			_, err := d.Client.DeleteItem(d.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: map[string]types.AttributeValue{key: it[key]}})
			d.ok(err)
		}
	}
	d.Account(d.T, lambdatest.Tenant, "acct_1", accountBalance)
	cut := time.Now().Add(10 * time.Millisecond)
	d.exits(idemctl.ExitOK, "refuse-before", "set", cut.UTC().Format(time.RFC3339Nano), "--reason", "ticket 17", "--write")
	<-time.After(time.Until(cut.Add(10 * time.Millisecond))) // the grace of these tests, and more
}

// missingRestore is the command line over the last hour.
func missingRestore(more ...string) []string {
	now := time.Now()
	return append([]string{
		"missing", "restore", "--from", now.Add(-time.Hour).UTC().Format(time.RFC3339), "--to", now.Add(time.Hour).UTC().Format(time.RFC3339), "--reason", "ticket 17",
	}, more...)
}

// restores runs the command over the last hour.
func (d *desk) restores(want int, more ...string) (all []restored) {
	d.Helper()
	out, _ := d.exits(want, append([]string{"--output", "json"}, missingRestore(more...)...)...)
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		d.Fatalf("%v: %s", err, out)
	}
	return all
}

// What a person has to do is never shown as done, also where the audit log could not be told of the refusal.
func TestMissingOperationThatIsRefusedIsNotShownAsDone(t *testing.T) {
	t.Setenv("DRIFT_GRACE", "1ms")
	d := newDesk(t)
	d.Account(t, lambdatest.Tenant, "acct_1", accountBalance)
	d.deliver(d.pay("order-17", "card_ok").Message(1))
	d.lose()
	d.entriesStayIntended()
	if all := d.restores(idemctl.ExitTrouble, "--write"); len(all) != 1 || all[0].Code != payments.CodeTenantUnknown || all[0].Did != "" {
		t.Errorf("%+v, want to be told that its tenant is not known", all)
	}
}

// recovery.md "What is missing": the dry run says what would be done and what has to be said; done, nothing is missing, each operation has
// its entry in the audit log, and doing it again does nothing.
func TestMissingOperationsAreMadeAgain(t *testing.T) {
	t.Setenv("DRIFT_GRACE", "1ms")
	d := newDesk(t)
	d.Account(t, lambdatest.Tenant, "acct_1", accountBalance)
	charge, payout := d.pay("order-17", "card_ok"), d.payOut("out-17")
	d.deliver(charge.Message(1))
	d.lose()
	compares(t, idemctl.ExitRefused)

	for _, m := range d.restores(idemctl.ExitRefused) {
		if m.Code != payments.CodeTenantUnknown || m.Rule == "" || m.Did != "" {
			t.Errorf("of nobody: %+v", m)
		}
	}
	told := filepath.Join(t.TempDir(), "told")
	lines := fmt.Sprintf("2026-11-22 api {no json}\n{\"msg\":\"idempotency.reserve.created\",\"operation_id\":%q,\"tenant\":%q}\n{\"operation_id\":%q,\"tenant\":%q,\"account\":\"acct_1\"}\n",
		charge, lambdatest.Tenant, payout, lambdatest.Tenant)
	d.ok(os.WriteFile(told, []byte(lines), 0o600))
	for _, m := range d.restores(idemctl.ExitOK, "--told", told) {
		if !strings.HasPrefix(m.Did, "make "+m.Kind+" "+m.ID+" again") || m.Tenant != lambdatest.Tenant {
			t.Errorf("dry run: %+v", m)
		}
	}
	if n := len(d.Items(t, d.Outbox)); n != 0 {
		t.Errorf("a dry run wrote %d messages", n)
	}
	one := d.restores(idemctl.ExitOK, "--told", told, "--operation", string(charge), "--write")
	if len(one) != 1 || one[0].Operation != charge || one[0].Did != "restored" {
		t.Errorf("one: %+v", one)
	}
	if rest := d.restores(idemctl.ExitOK, "--told", told, "--write"); len(rest) != 1 || rest[0].Operation != payout || len(rest[0].Objects) != 2 || rest[0].Did != "restored" {
		t.Errorf("the rest: %+v", rest)
	}
	d.deliver(charge.Message(1))
	d.deliver(payout.Message(1))
	d.deliver(payout.Message(2))
	if again := d.restores(idemctl.ExitOK, "--told", told, "--write"); len(again) != 0 {
		t.Errorf("again: %+v", again)
	}
	if dry := d.restores(idemctl.ExitOK, "--told", told, "--operation", string(charge)); len(dry) != 1 || dry[0].Did != "leave it as it is: nothing of it is missing" {
		t.Errorf("a dry run of what is there: %+v", dry)
	}
	d.demands(d.inspect(string(charge)), "completed delivered succeeded", "nothing: it has ended")
	d.demands(d.inspect(string(payout)), "completed delivered delivered succeeded", "nothing: it has ended")
	compares(t, idemctl.ExitOK)
	if n := len(d.Charges(t)); n != 1 {
		t.Errorf("%d charges", n)
	}
	d.logged(charge, operator.EntryDone)
	d.logged(payout, operator.EntryDone)
}

// recovery.md "What is missing": a comparison that ends before the cut-over, because of the grace, says so and from when to repeat it. It
// never exits as if nothing were missing.
func TestWhatIsTooYoungToBeComparedIsSaid(t *testing.T) {
	t.Setenv("DRIFT_GRACE", "15m")
	d := newDesk(t)
	d.deliver(d.pay("order-17", "card_ok").Message(1))
	began := time.Now()
	d.lose()
	left := d.restores(idemctl.ExitRefused, "--tenant", lambdatest.Tenant, "--write")
	if len(left) != 1 || left[0].Code != codeTooYoung {
		t.Fatalf("%+v", left)
	}
	_, after, _ := strings.Cut(left[0].Rule, "Repeat the command after ")
	if at, err := time.Parse(time.RFC3339, after); err != nil || at.Before(began.Add(15*time.Minute)) || at.After(time.Now().Add(15*time.Minute+time.Second)) {
		t.Errorf("%+v", left)
	}
	before := []string{"missing", "restore", "--from", began.Add(-2 * time.Hour).UTC().Format(time.RFC3339), "--to", began.Add(-time.Hour).UTC().Format(time.RFC3339), "--reason", "ticket 17"}
	d.exits(idemctl.ExitOK, before...) // all that was asked for is compared
}

// Rows that can't be read are left to a person, and are in nobody's way: what is missing beside them is made again.
func TestARowThatCannotBeReadIsInTheWayOfNothingMissing(t *testing.T) {
	t.Setenv("DRIFT_GRACE", "1ms")
	d := newDesk(t)
	lost, spoilt := d.pay("order-17", "card_ok"), d.pay("order-18", "card_ok")
	d.deliver(lost.Message(1))
	d.deliver(spoilt.Message(1))
	kept := map[string][]map[string]types.AttributeValue{}
	for _, table := range []string{d.Idempotency, d.Outbox, d.Payments} {
		kept[table] = d.Items(t, table)
	}
	d.lose()
	charge, _ := payments.EntryOf(payments.EntryPayment, lambdatest.Tenant, spoilt)
	for _, it := range kept[d.Payments] {
		if pk := it["pk"].(*types.AttributeValueMemberS).Value; pk == charge {
			it["amt"] = &types.AttributeValueMemberS{Value: "much"}
			d.Put(t, d.Payments, it)
		}
	}
	for _, it := range kept[d.Outbox] {
		if it["id"].(*types.AttributeValueMemberS).Value == string(spoilt.Message(1)) {
			d.Put(t, d.Outbox, it)
		}
	}
	did := map[idem.OperationID]restored{}
	for _, m := range d.restores(idemctl.ExitRefused, "--tenant", lambdatest.Tenant, "--write") {
		did[m.Operation] = m
	}
	if len(did) != 2 || did[lost].Did != "restored" || did[""].Code != codeUnreadable || did[""].Rule == "" {
		t.Errorf("%+v", did)
	}
	if again := d.restores(idemctl.ExitOK, "--tenant", lambdatest.Tenant, "--operation", string(lost), "--write"); len(again) != 1 {
		t.Errorf("by its id: %+v", again)
	}
}

// Before anybody has said up to when data was lost nothing is made again, and nothing is said to be complete.
func TestNothingIsMissingBeforeTheCutOverIsSet(t *testing.T) {
	t.Setenv("DRIFT_GRACE", "1ms")
	d := newDesk(t)
	now := time.Now()
	_, errs := d.exits(idemctl.ExitRefused, "missing", "restore", "--from", now.Add(-time.Hour).UTC().Format(time.RFC3339), "--to", now.UTC().Format(time.RFC3339), "--reason", "ticket 17")
	if !strings.Contains(errs, "refuse-before set") {
		t.Error(errs)
	}
}

// docs/operator.md "Environment": rows that are made again under another number of shards than the functions' would be listed by nobody,
// or by the drift job alone while it is the higher one.
func TestMissingOperationsAreMadeUnderTheFunctionsLedgerShards(t *testing.T) {
	d := newDesk(t)
	d.lose()
	d.ok(payments.LedgerShards{Client: d.Client, Table: d.Payments, Number: 4}.Record(t.Context()))
	for shards, exit := range map[string]int{"8": idemctl.ExitUsage, "2": idemctl.ExitUsage, "4": idemctl.ExitOK} {
		t.Setenv("LEDGER_SHARDS", shards)
		_, errs := d.exits(exit, "missing", "restore", "--from", time.Now().Add(-2*time.Hour).UTC().Format(time.RFC3339), "--to", time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), "--reason", "ticket 17")
		if exit != idemctl.ExitOK && (!strings.Contains(errs, "LEDGER_SHARDS") || !strings.Contains(errs, "must be 4")) {
			t.Errorf("%s: %s", shards, errs)
		}
	}
}

// What can't be made again is refused in the audit log, too, and left in the answer with its code.
func TestMissingOperationsThatAreRefused(t *testing.T) {
	t.Setenv("DRIFT_GRACE", "1ms")
	d := newDesk(t)
	d.Account(t, lambdatest.Tenant, "acct_1", accountBalance)
	payout := d.payOut("out-17")
	d.lose()
	stray(t, d.Stage)
	codes := map[string]int{}
	for _, m := range d.restores(idemctl.ExitRefused, "--tenant", lambdatest.Tenant, "--account", "acct_poor", "--write") {
		codes[m.Code]++
	}
	if codes[payments.CodeFundsShort] != 1 || codes[payments.CodeNotOurs] != 1 || len(codes) != 2 {
		t.Errorf("%v", codes)
	}
	d.logged(payout, operator.EntryRefused)

	contradicts := filepath.Join(t.TempDir(), "told")
	d.ok(os.WriteFile(contradicts, []byte(`{"operation_id":"`+string(payout)+`","tenant":"a"}`+"\n"+`{"operation_id":"`+string(payout)+`","tenant":"b"}`), 0o600))
	window := []string{"missing", "restore", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-02T00:00:00Z", "--reason", "ticket 17"}
	accounts := filepath.Join(t.TempDir(), "told")
	d.ok(os.WriteFile(accounts, []byte(`{"operation_id":"`+string(payout)+`","tenant":"a","account":"acct_1"}`+"\n"+`{"operation_id":"`+string(payout)+`","tenant":"a"}`+"\n"+`{"operation_id":"`+string(payout)+`","tenant":"a","account":"acct_2"}`), 0o600))
	for _, wrong := range [][]string{{"--told", contradicts}, {"--told", accounts}, {"--operation", "op_1"}, {"--tenant", "a b"}} {
		d.exits(idemctl.ExitUsage, append(window, wrong...)...)
	}
}

// A line of --told that names an operation and can't be read is counted on stderr: its operation would be made again for --tenant.
func TestToldLinesThatArePassedOverAreCounted(t *testing.T) {
	t.Setenv("DRIFT_GRACE", "1ms")
	d := newDesk(t)
	d.Account(t, lambdatest.Tenant, "acct_1", accountBalance)
	payout := d.payOut("out-17")
	d.lose()
	told := filepath.Join(t.TempDir(), "told")
	lines := fmt.Sprintf("{\"operation_id\":%q,\"tenant\":\"a\"\n{\"operation_id\":%q,\"account\":\"acct_1\"}\nsettled %s\nop_1 is none\n\n", payout, payout, payout.Message(1))
	d.ok(os.WriteFile(told, []byte(lines), 0o600))
	now := time.Now()
	_, errs := d.exits(idemctl.ExitOK, "missing", "restore", "--from", now.Add(-time.Hour).UTC().Format(time.RFC3339), "--to", now.Add(time.Hour).UTC().Format(time.RFC3339),
		"--reason", "ticket 17", "--told", told, "--tenant", lambdatest.Tenant, "--account", "acct_1")
	if !strings.Contains(errs, "passed over") || !strings.HasSuffix(errs, ": 3\n") {
		t.Errorf("told %q", errs)
	}
}

// A file of --told without a line is what is left of one whose making failed: every operation would be made again for --tenant.
func TestAToldFileWithoutALineIsRefused(t *testing.T) {
	d := newDesk(t)
	told := filepath.Join(t.TempDir(), "told")
	d.ok(os.WriteFile(told, nil, 0o600))
	_, errs := d.exits(idemctl.ExitUsage, "missing", "restore", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-02T00:00:00Z", "--reason", "ticket 17",
		"--told", told, "--tenant", lambdatest.Tenant)
	if !strings.Contains(errs, "--told") || !strings.Contains(errs, "has no line") {
		t.Errorf("told %q", errs)
	}
}

// An operation of which the provider can't show everything now is trouble by itself, to be tried again, and the others are made again: an
// object that its listing does not show yet, one that is gone by its id, and a listing that fails.
func TestMissingOperationsThatTheProviderCanNotShow(t *testing.T) {
	for name, c := range map[string]struct {
		spoils func(r *http.Request, key, charge string) bool
		status int
		body   string
		// known says that the trouble names the operation.
		known bool
	}{
		"listed later": {func(r *http.Request, key, _ string) bool { return r.URL.Query().Get("key") == key }, http.StatusOK, "[]", true},
		"not listed":   {func(r *http.Request, key, _ string) bool { return r.URL.Query().Get("key") == key }, http.StatusBadGateway, "", true},
		"gone":         {func(r *http.Request, _, charge string) bool { return strings.HasSuffix(r.URL.Path, "/"+charge) }, http.StatusNotFound, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DRIFT_GRACE", "1ms")
			d := newDesk(t)
			hidden, shown := d.pay("order-17", "card_ok"), d.pay("order-18", "card_ok")
			d.deliver(hidden.Message(1))
			charge := d.Charges(t)[0].ID
			d.deliver(shown.Message(1))
			d.lose()
			d.behind(func(r *http.Request) bool { return c.spoils(r, string(hidden.Message(1)), charge) }, c.status, c.body)
			did := map[idem.OperationID]restored{}
			for _, m := range d.restores(idemctl.ExitTrouble, "--tenant", lambdatest.Tenant, "--write") {
				did[m.Operation] = m
			}
			trouble := did[map[bool]idem.OperationID{true: hidden}[c.known]]
			if len(did) != 2 || did[shown].Did != "restored" || trouble.Code != codeTrouble || trouble.Rule == "" || !slices.Equal(trouble.Objects, []string{charge}) {
				t.Errorf("%+v", did)
			}
		})
	}
}

// behind puts a proxy before the provider that answers some requests itself.
func (d *desk) behind(spoils func(*http.Request) bool, status int, body string) {
	d.Helper()
	target, err := url.Parse(d.Provider.URL)
	d.ok(err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && spoils(r) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	d.Cleanup(server.Close)
	d.Setenv("PROVIDER_URL", server.URL)
}

// A record that waits for a message which a loss has torn from it is named by its operation, and made whole by what it says itself.
func TestATornRecordIsMadeWhole(t *testing.T) {
	t.Setenv("DRIFT_GRACE", "1ms")
	d := newDesk(t)
	id := d.pay("order-17", "card_ok")
	record := d.Items(t, d.Idempotency)
	d.lose()
	for _, it := range record {
		d.Put(t, d.Idempotency, it)
	}
	one := []string{"--operation", string(id)}
	if left := d.restores(idemctl.ExitRefused, one...); len(left) != 1 || left[0].Code != payments.CodeNothingMade || left[0].Operation != id {
		t.Errorf("without --finish: %+v", left)
	}
	if done := d.restores(idemctl.ExitOK, append(one, "--finish", "--write")...); len(done) != 1 || done[0].Did != "restored" {
		t.Errorf("with it: %+v", done)
	}
	d.deliver(id.Message(1))
	d.demands(d.inspect(string(id)), "completed delivered succeeded", "nothing: it has ended")
	if n := len(d.Charges(t)); n != 1 {
		t.Errorf("%d charges", n)
	}
	d.logged(id, operator.EntryDone)
}

// keepsFirstMessageOfAPayout loses a payout's row and its second message: its record waits for that, and its first message has ended.
func (d *desk) keepsFirstMessageOfAPayout() idem.OperationID {
	d.Helper()
	d.Account(d.T, lambdatest.Tenant, "acct_1", accountBalance)
	payout := d.waits("out-17")
	d.due(payout.Message(1))
	d.deliver(payout.Message(1))
	records, messages := d.Items(d.T, d.Idempotency), d.Items(d.T, d.Outbox)
	d.deliver(payout.Message(2))
	d.lose()
	for _, it := range records {
		d.Put(d.T, d.Idempotency, it)
	}
	for _, it := range messages {
		if it["id"].(*types.AttributeValueMemberS).Value == string(payout.Message(1)) {
			d.Put(d.T, d.Outbox, it)
		}
	}
	return payout
}

// recovery.md "Torn transactions": where the row and what follows the last message are both gone, the row is put back, and the rest is left to a
// person, who is told to name the operation, also where the table has no room for that: a repetition without its id lists nothing, because its
// row is there. Named, it goes on.
func TestARowThatIsPutBackOfATornChainLeavesTheRestToAPerson(t *testing.T) {
	t.Setenv("DRIFT_GRACE", "1ms")
	d := newDesk(t)
	payout := d.keepsFirstMessageOfAPayout()
	dry := d.restores(idemctl.ExitRefused)
	if len(dry) != 1 || dry[0].Did != "put its row back" || dry[0].Code != codeChainTorn || !strings.Contains(dry[0].Rule, "(--write)") || !strings.HasSuffix(dry[0].Rule, "--operation "+string(payout)) {
		t.Errorf("dry run: %+v", dry)
	}
	table, notes := d.exits(idemctl.ExitRefused, missingRestore("--write")...)
	if !strings.Contains(table, "chain_t") || !strings.Contains(notes, codeChainTorn) || !strings.Contains(notes, "--operation "+string(payout)+"\n") || strings.Contains(notes, "(--write)") {
		t.Errorf("told\n%s%s", table, notes)
	}
	if unnamed := d.restores(idemctl.ExitOK, "--write"); len(unnamed) != 0 {
		t.Errorf("%+v, want nothing to be listed", unnamed)
	}
	d.compares(idemctl.ExitOK, "--correct", "--write")
	if done := d.restores(idemctl.ExitOK, "--operation", string(payout), "--write"); len(done) != 1 || done[0].Did != "restored" {
		t.Errorf("named: %+v", done)
	}
	d.deliver(payout.Message(2))
	d.demands(d.inspect(string(payout)), "completed delivered delivered succeeded", "nothing: it has ended")
	d.holds(lambdatest.Tenant, "acct_1", accountBalance-500)
}

// recovery.md "What is missing": who does not know what became of an operation is told to name it. Where the row is there by now, because
// somebody else has put it back, or because only the reply of its write was lost, it is not listed without its id.
func TestWhoComesSecondIsToldToNameTheOperation(t *testing.T) {
	t.Setenv("DRIFT_GRACE", "1ms")
	d := newDesk(t)
	payout := d.keepsFirstMessageOfAPayout()
	first := true
	mend := d.before("TransactWriteItems", func(body string) (refused bool) {
		if first && strings.Contains(body, "payout#") {
			first = false
			if done := d.restores(idemctl.ExitRefused, "--write"); len(done) != 1 || done[0].Did != payments.RowOfTornPutBack || done[0].Code != codeChainTorn {
				t.Errorf("the first: %+v", done)
			}
		}
		return false
	})
	second := d.restores(idemctl.ExitTrouble, "--write")
	if len(second) != 1 || second[0].Code != codeTrouble || !strings.Contains(second[0].Rule, "--operation "+string(payout)) {
		t.Errorf("the second: %+v", second)
	}
	mend()
	if done := d.restores(idemctl.ExitOK, "--operation", string(payout), "--write"); len(done) != 1 || done[0].Did != "restored" {
		t.Errorf("named: %+v", done)
	}
}

// A torn payout whose hold was released is left to a person, who is told the option that ends it: done, its client gets the answer that it
// would have got, and nothing is paid out. There is one entry of each try in the audit log.
func TestATornPayoutWhoseHoldWasReleasedIsEnded(t *testing.T) {
	t.Setenv("DRIFT_GRACE", "1ms")
	d := newDesk(t)
	d.Account(t, lambdatest.Tenant, "acct_1", accountBalance)
	d.faults(provider.Rule{On: provider.Payout, Fault: provider.Refuse, Times: 1}, provider.Rule{On: provider.Release, Fault: provider.ErrorAfter, Times: 1})
	id := d.post("/v1/payouts", "out-17", `{"from":"acct_1","amount":500,"currency":"EUR","destination":"iban_ok"}`)
	record := d.Items(t, d.Idempotency)
	for n := 2; n <= 3; n++ {
		d.deliver(id.Message(n))
	}
	d.lose()
	for _, it := range record {
		d.Put(t, d.Idempotency, it)
	}
	one := []string{"--operation", string(id)}
	left := d.restores(idemctl.ExitRefused, append(one, "--finish", "--write")...)
	if len(left) != 1 || left[0].Code != payments.CodeHoldReleased || !strings.Contains(left[0].Rule, "--end-released") {
		t.Errorf("without --end-released: %+v", left)
	}
	one = append(one, "--end-released")
	if would := d.restores(idemctl.ExitOK, one...); len(would) != 1 || !strings.HasPrefix(would[0].Did, "end payout ") {
		t.Errorf("dry run: %+v", would)
	}
	if n := len(d.Items(t, d.Outbox)); n != 0 {
		t.Errorf("a dry run wrote %d messages", n)
	}
	if done := d.restores(idemctl.ExitOK, append(one, "--write")...); len(done) != 1 || done[0].Did != "restored" {
		t.Errorf("with it: %+v", done)
	}
	d.deliver(id.Message(3))
	d.demands(d.inspect(string(id)), "failed delivered cancelled delivered failed", "nothing: it has ended")
	if payouts, err := d.Provider.Payouts(t.Context()); err != nil || len(payouts) != 0 {
		t.Errorf("%d payouts, %v", len(payouts), err)
	}
	d.logged(id, operator.EntryDone, operator.EntryRefused)
}
