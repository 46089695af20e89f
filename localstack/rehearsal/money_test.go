package rehearsal

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/localstack/provider"
)

// Each thing that a rehearsal is there to find is found: a count that can't fail counts nothing.
func TestCountFindsWhatIsWrong(t *testing.T) {
	charge := func(id, source string) provider.Object {
		return provider.Object{ID: id, Source: source, Amount: 100, Status: provider.Succeeded}
	}
	booked := row{ID: "pay_1", Status: "succeeded", Provider: "ch_1", Amount: 100, Intent: "a"}
	with := func(change func(*row)) row {
		changed := booked
		change(&changed)
		return changed
	}
	one := []provider.Object{charge("ch_1", "a")}
	second := with(func(r *row) { r.ID = "pay_2" })
	for name, c := range map[string]struct {
		evidence
		want string
	}{
		"booked":                {evidence{objects: one, rows: []row{booked}}, ""},
		"missing and listed":    {evidence{objects: one, listed: []string{"ch_1"}}, ""},
		"missing, not listed":   {evidence{objects: one}, "not listed"},
		"charged twice":         {evidence{objects: []provider.Object{charge("ch_1", "a"), charge("ch_2", "a")}, rows: []row{booked}, listed: []string{"ch_2"}}, "twice"},
		"a row without money":   {evidence{rows: []row{booked}}, "the provider has nothing"},
		"a row of another":      {evidence{objects: []provider.Object{charge("ch_1", "b")}, rows: []row{booked}}, "is about"},
		"another amount":        {evidence{objects: one, rows: []row{with(func(r *row) { r.Amount = 99 })}}, "is about"},
		"a row that is pending": {evidence{objects: one, rows: []row{with(func(r *row) { r.Status = "pending" })}}, "is about"},
		// Two rows of one charge: the account was credited twice for money that moved once.
		"booked by two rows":      {evidence{objects: one, rows: []row{booked, second}}, "is booked by 2 rows"},
		"two rows of a request":   {evidence{objects: one, rows: []row{booked, with(func(r *row) { r.ID, r.Status, r.Provider = "pay_2", "pending", "" })}}, "more than one row"},
		"both not what was asked": {evidence{asked: map[string]int64{"a": 101}, objects: one, rows: []row{booked}}, "ch_1 moved 100 for a, and the client asked for 101"},
		"booked, not as asked":    {evidence{objects: one, rows: []row{with(func(r *row) { r.Amount = 99 })}}, "is of 99, and the client asked for 100"},
		"nobody asked for it":     {evidence{asked: map[string]int64{}, objects: one, listed: []string{"ch_1"}}, "the client asked for 0"},
		"a row nobody asked for":  {evidence{asked: map[string]int64{}, rows: []row{with(func(r *row) { r.Status = "pending" })}}, "the client asked for 0"},
		"not done, and no money":  {evidence{rows: []row{with(func(r *row) { r.Status, r.Provider = "pending", "" })}}, ""},
	} {
		if c.asked == nil {
			c.asked = map[string]int64{"a": 100, "b": 100}
		}
		var m Money
		wrong := m.count(c.evidence)
		if c.want == "" && len(wrong) > 0 || c.want != "" && !slices.ContainsFunc(wrong, func(w string) bool { return strings.Contains(w, c.want) }) {
			t.Errorf("%s: %q, want %q", name, wrong, c.want)
		}
	}
}

// A request has one row, which succeeded where it was answered 201, and only there.
func TestEveryAnswerHasOneRow(t *testing.T) {
	paid, declined := row{ID: "pay_1", Status: "succeeded", Intent: "a"}, row{ID: "pay_1", Status: "declined", Intent: "a"}
	for name, c := range map[string]struct {
		status int
		rows   []row
		want   string
	}{
		"paid and booked":     {201, []row{paid}, ""},
		"declined and booked": {402, []row{declined}, ""},
		"paid, no row":        {201, nil, "has 0 rows"},
		"declined, no row":    {402, nil, "has 0 rows"},
		"paid, two rows":      {201, []row{paid, {ID: "pay_2", Status: "declined", Intent: "a"}}, "has 2 rows"},
		"paid, not booked":    {201, []row{declined}, "its row is"},
		"declined, booked":    {402, []row{paid}, "its row is"},
	} {
		wrong := strings.Join(unbooked([]*story{{intent: "a", answer: answer{status: c.status}}}, c.rows), "; ")
		if (c.want == "") != (wrong == "") || !strings.Contains(wrong, c.want) {
			t.Errorf("%s: %q, want %q", name, wrong, c.want)
		}
	}
}

// No two requests ask for the same amount, and what was asked for is known by intent.
func TestEachRequestHasItsOwnAmount(t *testing.T) {
	r := &run{Rehearsals: &Rehearsals{}, id: "x"}
	r.stories = append(r.wave("a"), r.underWay("a")...)
	r.younger = r.payment("card_x_younger", nil)
	asked, seen := r.asked(), map[int64]string{}
	if len(asked) != len(r.stories)+1 {
		t.Fatalf("%d amounts of %d requests", len(asked), len(r.stories)+1)
	}
	for _, s := range append(r.stories, r.younger) {
		if other, ok := seen[s.amount]; ok || asked[s.intent] != s.amount || !strings.Contains(s.body, fmt.Sprintf(`"amount":%d,`, s.amount)) {
			t.Errorf("%s asks for %d as %q does: %s", s.intent, s.amount, other, s.body)
		}
		seen[s.amount] = s.intent
	}
}

func TestTheTableHasARowForEachRehearsal(t *testing.T) {
	var out strings.Builder
	if err := WriteTable(&out, []Money{{Name: "restore", Requests: 20, Twice: 1}, {Name: "anew"}}); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 3 || !strings.Contains(lines[0], "charged twice") || !strings.Contains(lines[1], "restore") {
		t.Error(out.String())
	}
}
