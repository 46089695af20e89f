package audit_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/localstack/audit"
	"github.com/idem-go/idem-aws/localstack/faultproxy"
)

var began = time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)

// heard is an answer that came in the n-th second, to a request that was sent half a second before.
func heard(n, status int, said, body string) audit.Exchange {
	at := began.Add(time.Duration(n) * time.Second)
	return audit.Exchange{
		Tenant: "a", Operation: "payments.create", Key: "k", Method: http.MethodPost, Path: "/v1/payments", Sent: []byte(`{"amount":1}`),
		Status: status, Header: http.Header{"Idempotency-Status": {said}, "Content-Type": {"application/json"}}, Body: []byte(body),
		Began: at.Add(-500 * time.Millisecond), Ended: at,
	}
}

// story is what the clients of one payment are told where all is well.
func story() []audit.Exchange {
	refused := heard(7, 422, "mismatch", `{"code":"idempotency_key_reused_with_different_payload"}`)
	refused.Sent = []byte(`{"amount":2}`)
	return []audit.Exchange{
		heard(0, 503, "executed", `freed`), heard(1, 409, "in_progress", `busy`), heard(2, 202, "executed", `pending`),
		heard(3, 202, "replayed", `pending`), heard(4, 409, "unknown", `unknown`), heard(5, 201, "replayed", `paid`), heard(6, 201, "replayed", `paid`),
		refused, heard(8, 503, "", `no store`),
	}
}

func TestI4(t *testing.T) {
	scope := audit.Scope{Tenant: "a", Operation: "payments.create", Key: "k"}
	stored := audit.Stored{Final: true, Status: 201, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`paid`)}
	broken, counts := audit.Answers(story(), map[audit.Scope]audit.Stored{scope: stored})
	none(t, broken)
	if want := (audit.AnswerCounts{Keys: 1, Executed: 1, Pending: 2, Final: 2, Running: 2, Stored: 1}); counts != want {
		t.Errorf("counted %+v, want %+v", counts, want)
	}
	broken, _ = audit.Answers(story(), map[audit.Scope]audit.Stored{scope: {Final: true, Status: 201}}) // encrypted
	none(t, broken)
	early := heard(5, 202, "replayed", `pending`)
	early.Ended = early.Ended.Add(2 * time.Second) // sent before the final answer was heard, and answered after it
	broken, _ = audit.Answers(append(story(), early), nil)
	none(t, broken)

	for name, c := range map[string]struct {
		more   audit.Exchange
		stored audit.Stored
		want   string
	}{
		"another replay":              {heard(9, 201, "replayed", `paid `), stored, "two answers to one key"},
		"another status":              {heard(9, 200, "replayed", `paid`), stored, "two answers to one key"},
		"another 202":                 {heard(3, 202, "replayed", `Pending`), stored, "two answers to one key"},
		"a 202 after the end":         {heard(9, 202, "replayed", `pending`), stored, "was heard"},
		"in progress after the end":   {heard(9, 409, "in_progress", `busy`), stored, "was heard"},
		"unknown after the end":       {heard(9, 409, "unknown", `unknown`), stored, "was heard"},
		"executed twice":              {heard(9, 201, "executed", `paid`), stored, "theirs is the execution"},
		"a mismatch of the same":      {heard(9, 422, "mismatch", ``), stored, "to the same bytes"},
		"another body in the record":  {heard(9, 503, "", ``), audit.Stored{Final: true, Status: 201, Body: []byte(`else`)}, "the record has"},
		"another status in it":        {heard(9, 503, "", ``), audit.Stored{Final: true, Status: 402}, "the record has"},
		"another Location in it":      {heard(9, 503, "", ``), audit.Stored{Final: true, Status: 201, Header: http.Header{"Location": {"/x"}}}, "the record has"},
		"another type of the content": {heard(9, 503, "", ``), audit.Stored{Final: true, Status: 201, Header: http.Header{"Content-Type": {"x"}}}, "the record has"},
	} {
		t.Run(name, func(t *testing.T) {
			broken, _ := audit.Answers(append(story(), c.more), map[audit.Scope]audit.Stored{scope: c.stored})
			one(t, broken, c.want)
		})
	}
	other := heard(9, 201, "executed", `paid to another`)
	other.Tenant = "b"
	broken, counts = audit.Answers(append(story(), other), nil)
	none(t, broken)
	if counts.Keys != 2 {
		t.Errorf("%d keys, want one of each tenant", counts.Keys)
	}
}

func TestI5(t *testing.T) {
	owners := audit.Owners{}
	for id, tenant := range map[string]string{"op_aaaaaaaa": "a", "pay_aaaaaa": "a", "op_bbbbbbbb": "b"} {
		owners.Add(id, tenant)
	}
	owners.Add("acct_both", "a")
	owners.Add("acct_both", "b")
	rows := []audit.Row{{ID: "op_aaaaaaaa.1", Tenant: "a", RecordTenant: "a"}}
	get := func(tenant, path string, status int, body string) audit.Exchange {
		return audit.Exchange{Tenant: tenant, Method: http.MethodGet, Path: path, Status: status, Header: http.Header{}, Body: []byte(body)}
	}
	moved := get("b", "/v1/operations/op_bbbbbbbb", 202, ``)
	moved.Header.Set("Location", "/v1/operations/op_aaaaaaaa")
	fine := []audit.Exchange{
		get("a", "/v1/operations/op_aaaaaaaa", 200, `{"id":"op_aaaaaaaa","payment":"pay_aaaaaa","account":"acct_both"}`),
		get("b", "/v1/operations/op_aaaaaaaa", 404, `no operation op_aaaaaaaa`), get("b", "/v1/operations/op_aaaaaaaa", 503, ``),
		get("b", "/v1/accounts/acct_both", 200, `{"id":"acct_both"}`), get("", "/orders", 200, `op_aaaaaaaa`),
	}
	broken, counts := audit.Tenants(fine, owners, rows)
	none(t, broken)
	if want := (audit.TenantCounts{Answers: 4, IDs: 5, Foreign: 2, Rows: 1}); counts != want {
		t.Errorf("counted %+v, want %+v", counts, want)
	}
	for name, c := range map[string]struct {
		more audit.Exchange
		rows []audit.Row
		want string
	}{
		"a status of another's":          {get("b", "/v1/operations/op_aaaaaaaa", 200, `{"state":"completed"}`), rows, "another asked for it"},
		"a 410 for another's":            {get("b", "/v1/operations/op_aaaaaaaa", 410, ``), rows, "another asked for it"},
		"a 404 that tells a state":       {get("b", "/v1/operations/op_aaaaaaaa", 404, `{"state":"pending"}`), rows, "another asked for it"},
		"another's payment in a body":    {get("b", "/v1/payments", 201, `{"payment":"pay_aaaaaa"}`), rows, "told to another"},
		"another's operation, Location":  {moved, rows, "told to another"},
		"another's message in an answer": {get("b", "/v1/payments", 409, `running as op_aaaaaaaa.1`), rows, "told to another"},
		"a message under another tenant": {get("a", "/", 200, ``), []audit.Row{{ID: "op_aaaaaaaa.1", Tenant: "b", RecordTenant: "a"}}, "its record of a"},
	} {
		t.Run(name, func(t *testing.T) {
			broken, _ := audit.Tenants(append(slices.Clone(fine), c.more), owners, c.rows)
			one(t, broken, c.want)
		})
	}
}

// rows makes a journal of writes to one row, one after the other. Of "unknown ep=2 ow=x" the first word is the state; "?" before it
// says that there was no answer, "~" that it overlaps the write before it, "u" that it is an update.
func rows(table string, texts ...string) faultproxy.Journal {
	var j faultproxy.Journal
	for i, text := range texts {
		words := strings.Fields(text)
		w := faultproxy.Write{
			Table: table, Began: 2*i + 1, Ended: 2*i + 2, Accepted: true, Whole: true,
			Values: map[string]string{"pk": "row", "id": "row", "rv": fmt.Sprint(i)}, Given: map[string]string{},
		}
		for ; strings.ContainsAny(words[0][:1], "?~!"); words[0] = words[0][1:] {
			switch words[0][0] {
			case '?':
				w.Accepted, w.Ended = false, 0
			case '~':
				w.Began = 2*i - 1
			case '!':
				w.Whole = false
			}
		}
		w.Values["st"] = words[0]
		for _, word := range words[1:] {
			name, value, _ := strings.Cut(word, "=")
			if name == "op" && !w.Whole {
				w.Given[name] = value
				continue
			}
			w.Values[name] = value
		}
		j.Writes = append(j.Writes, w)
	}
	return j
}

var tables = audit.Tables{Records: "records", Messages: "messages", IgnoresKeys: func(topic string) bool { return topic == "legacy" }}

func TestI7(t *testing.T) {
	for name, c := range map[string]struct {
		table  string
		writes []string
		want   string // "" = nothing is broken
	}{
		"absence was proven":                 {"messages", []string{"claimed ep=1", "unknown ep=1 cl=5", "pending ep=1 cl=9", "claimed ep=2 cl=9"}, ""},
		"found":                              {"messages", []string{"claimed ep=1", "unknown ep=1", "!delivered"}, ""},
		"claimed from unknown":               {"messages", []string{"claimed ep=1", "unknown ep=1", "claimed ep=2"}, "unknown becomes claimed"},
		"offered without a proof":            {"messages", []string{"claimed ep=1", "unknown ep=1", "pending ep=1", "claimed ep=2"}, "without a proof"},
		"offered by an older proof":          {"messages", []string{"claimed ep=1", "unknown ep=1 cl=5", "pending ep=1 cl=5"}, "without a proof"},
		"claim after claim, keys honoured":   {"messages", []string{"claimed ep=1 tp=keyed", "claimed ep=2 tp=keyed"}, ""},
		"claim after claim, keys ignored":    {"messages", []string{"claimed ep=1 tp=legacy", "claimed ep=2 tp=legacy"}, "ignores keys"},
		"nobody knows what was just before":  {"messages", []string{"claimed ep=1", "unknown ep=1", "~pending ep=1", "claimed ep=2"}, ""},
		"what had no answer may lie between": {"messages", []string{"unknown ep=1", "?pending ep=1 cl=2", "claimed ep=2 cl=2"}, ""},
		"released":                           {"records", []string{"in_progress op=1 ep=1", "unknown op=1 ep=1", "failed_retryable op=1 ep=1", "in_progress op=1 ep=2"}, ""},
		"reserved from unknown":              {"records", []string{"in_progress op=1 ep=1", "unknown op=1 ep=1", "in_progress op=1 ep=2"}, "unknown becomes in_progress"},
		"committed from unknown":             {"records", []string{"in_progress op=1 ep=1", "unknown op=1 ep=1", "pending op=1 ep=1"}, "unknown becomes pending"},
	} {
		t.Run(name, func(t *testing.T) {
			broken, _ := audit.Writes(rows(c.table, c.writes...), tables)
			if c.want == "" {
				none(t, broken)
			} else {
				one(t, broken, c.want)
			}
		})
	}
	_, counts := audit.Writes(rows("messages", "claimed ep=1", "unknown ep=1", "!delivered"), tables)
	if want := (audit.WriteCounts{Rows: 1, Writes: 3, Steps: 2, FromUnknown: 1}); counts != want {
		t.Errorf("counted %+v, want %+v", counts, want)
	}
}

func TestI8(t *testing.T) {
	for name, c := range map[string]struct {
		table  string
		writes []string
		want   string // "" = nothing is broken
	}{
		"takeover":                       {"records", []string{"in_progress op=1 ep=1 ow=x", "in_progress op=1 ep=2 ow=y", "completed op=1 ep=2 ow=y"}, ""},
		"an older holder commits":        {"records", []string{"in_progress op=1 ep=1 ow=x", "in_progress op=1 ep=2 ow=y", "failed_retryable op=1 ep=1 ow=x"}, "epoch 1 is written after epoch 2"},
		"two owners of one epoch":        {"records", []string{"in_progress op=1 ep=1 ow=x", "in_progress op=1 ep=1 ow=y"}, "has the owners x and y"},
		"what is final changes":          {"records", []string{"completed op=1 ep=1", "failed_retryable op=1 ep=1"}, "which is final"},
		"expired, and a new incarnation": {"records", []string{"completed op=1 ep=4", "in_progress op=2 ep=1", "completed op=2 ep=1"}, ""},
		"an older incarnation comes back": {"records", []string{"in_progress op=1 ep=1", "in_progress op=2 ep=1", "completed op=1 ep=1"},
			"comes back"},
		"an older incarnation's settlement": {"records", []string{"pending op=2 ep=1", "!completed op=1"}, "changes another incarnation"},
		"a settlement of its own":           {"records", []string{"pending op=2 ep=1", "!completed op=2"}, ""},
		"sent again":                        {"records", []string{"?completed op=1 ep=1 rv=same", "completed op=1 ep=1 rv=same"}, ""},
		"two that overlap":                  {"records", []string{"in_progress op=1 ep=2 ow=y", "~in_progress op=1 ep=1 ow=x"}, ""},
		"an older claim's release":          {"messages", []string{"claimed ep=1 ow=x", "claimed ep=2 ow=y", "pending ep=1 ow=x"}, "epoch 1 is written after epoch 2"},
		"an older claim's evidence":         {"messages", []string{"claimed ep=1 ow=x", "claimed ep=2 ow=y", "!delivered"}, ""},
		"a delivery becomes a decline":      {"messages", []string{"claimed ep=1", "!delivered", "!declined"}, "delivered, which is final, becomes declined"},
		"late evidence of what is dead":     {"messages", []string{"claimed ep=1", "dead ep=1", "!delivered"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			broken, _ := audit.Writes(rows(c.table, c.writes...), tables)
			if c.want == "" {
				none(t, broken)
			} else {
				one(t, broken, c.want)
			}
		})
	}
	lost := rows("messages", "claimed ep=1")
	lost.Dropped = 3
	broken, _ := audit.Writes(lost, tables)
	one(t, broken, "lost 3 writes")
}
