package jsonpage_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/internal/jsonpage"
)

const text = "## List\n| field | type | there | meaning |\n|---|---|---|---|\n" +
	"| `rows` | array of [row](#row) | always | the rows |\n| `next` | string | if any | the next |\n| `by` | object of integer | if any | counts |\n" +
	"\n### Row\n| field | type | there | meaning |\n|---|---|---|---|\n" +
	"| `at` | time | always | when it was |\n| `of` | [row](#row) or null | always | what it is of |\n| `units` | number | if any | read units |\n"

type row struct {
	At    time.Time `json:"at"`
	Of    *row      `json:"of"`
	Units float64   `json:"units,omitempty"`
}

type rows struct {
	Rows []row `json:"rows"`
}

type list struct {
	rows
	Next   string         `json:"next,omitempty"`
	By     map[string]int `json:"by,omitempty"`
	Hidden string         `json:"-"`
}

func page(t *testing.T) jsonpage.Page {
	t.Helper()
	page, err := jsonpage.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// A type's fields, those of an embedded struct too, are the page's rows.
func TestFieldsOfATypeAreThePagesRows(t *testing.T) {
	types := jsonpage.Types{"list": reflect.TypeFor[list](), "row": reflect.TypeFor[row]()}
	for name, typ := range types {
		if got, want := types.Fields(typ), page(t)[name]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nhas  %v\nwant %v", name, got, want)
		}
	}
}

func TestMismatchesAreFound(t *testing.T) {
	const at = `"at":"2026-11-21T12:00:00Z"`
	for value, want := range map[string]int{
		`{"rows":[]}`: 0, `{"rows":[],"next":"x"}`: 0, `{}`: 1, `[]`: 1, `{"rows":null}`: 1, `{"rows":[],"more":1}`: 1, `{"rows":[],"next":1}`: 1,
		`{"rows":[],"by":{"a":1,"b":2}}`: 0, `{"rows":[],"by":{"a":1.5}}`: 1, `{"rows":[],"by":[]}`: 1,
		`{"rows":[{"at":"noon","of":null}]}`: 1, `{"rows":[{` + at + `,"of":null,"units":0.5}]}`: 0, `{"rows":[{` + at + `}]}`: 1,
		`{"rows":[{` + at + `,"of":{` + at + `,"of":null}}]}`: 0, `{"rows":[{` + at + `,"of":{` + at + `}}]}`: 1,
		`{"rows":[{"at":"2026-11-21T13:00:00+01:00","of":null}]}`: 1,
	} {
		var read any
		if err := json.Unmarshal([]byte(value), &read); err != nil {
			t.Fatal(err)
		}
		if wrong := page(t).Mismatches("list", read); len(wrong) != want {
			t.Errorf("%s: %v, want %d", value, wrong, want)
		}
	}
}

// A row in another form than a field's is not passed over.
func TestARowThatIsNoFieldIsFound(t *testing.T) {
	for _, wrong := range []string{"| `next` | string | sometimes | the next |\n", "| next | string | always | the next |\n", "| `next` | string | always | |\n"} {
		if _, err := jsonpage.Parse(strings.Replace(text, "| `next` | string | if any | the next |\n", wrong, 1)); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}
