package rehearsal

import (
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
	for name, c := range map[string]struct {
		evidence
		want string
	}{
		"booked":                {evidence{objects: []provider.Object{charge("ch_1", "a")}, rows: []row{booked}}, ""},
		"missing and listed":    {evidence{objects: []provider.Object{charge("ch_1", "a")}, listed: []string{"ch_1"}}, ""},
		"missing, not listed":   {evidence{objects: []provider.Object{charge("ch_1", "a")}}, "not listed"},
		"charged twice":         {evidence{objects: []provider.Object{charge("ch_1", "a"), charge("ch_2", "a")}, rows: []row{booked}, listed: []string{"ch_2"}}, "twice"},
		"a row without money":   {evidence{rows: []row{booked}}, "the provider has nothing"},
		"a row of another":      {evidence{objects: []provider.Object{charge("ch_1", "b")}, rows: []row{booked}}, "is about"},
		"another amount":        {evidence{objects: []provider.Object{charge("ch_1", "a")}, rows: []row{{ID: "pay_1", Status: "succeeded", Provider: "ch_1", Amount: 99, Intent: "a"}}}, "is about"},
		"a row that is pending": {evidence{objects: []provider.Object{charge("ch_1", "a")}, rows: []row{{ID: "pay_1", Status: "pending", Provider: "ch_1", Amount: 100, Intent: "a"}}}, "is about"},
	} {
		var m Money
		wrong := m.count(c.evidence)
		if c.want == "" && len(wrong) > 0 || c.want != "" && !slices.ContainsFunc(wrong, func(w string) bool { return strings.Contains(w, c.want) }) {
			t.Errorf("%s: %q, want %q", name, wrong, c.want)
		}
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
