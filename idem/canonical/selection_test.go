package canonical

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func selected(in Input, s Selection) Input { in.Selection = s; return in }

func httpInput() Input {
	return Input{
		Operation: "orders.pay", Method: "POST", Path: "/en/orders/7/pay", Wildcards: []string{"en", "7"},
		Parameters: map[string]string{"locale": "en", "id": "7"},
		Query:      map[string][]string{"amount": {"10"}, "utm_source": {"mail"}, "trace_1": {"x"}},
		MediaType:  "application/json", Body: []byte(`{"a":1,"b":2}`),
	}
}

func TestWhatASelectionLeavesOutDoesNotCountAndAllElseDoes(t *testing.T) {
	f := newFingerprinter(t, Config{})
	fields, err := NewFields(nil, []string{"/b"})
	if err != nil {
		t.Fatal(err)
	}
	changes := map[string]func(*Input){
		"method":     func(in *Input) { in.Method = "PATCH" },
		"fixed path": func(in *Input) { in.Path = "/en/orders/7/refund" },
		"wildcard 1": func(in *Input) { in.Wildcards = []string{"de", "7"} },
		"wildcard 2": func(in *Input) { in.Wildcards = []string{"en", "8"} },
		"locale":     func(in *Input) { in.Parameters = map[string]string{"locale": "de", "id": "7"} },
		"id":         func(in *Input) { in.Parameters = map[string]string{"locale": "en", "id": "8"} },
		"amount": func(in *Input) {
			in.Query = map[string][]string{"amount": {"99"}, "utm_source": {"mail"}, "trace_1": {"x"}}
		},
		"utm_source": func(in *Input) { in.Query = map[string][]string{"amount": {"10"}, "trace_1": {"x"}} },
		"trace_1": func(in *Input) {
			in.Query = map[string][]string{"amount": {"10"}, "utm_source": {"mail"}, "trace_1": {"y"}}
		},
		"field a of a": func(in *Input) { in.Body = []byte(`{"a":2,"b":2}`) },
		"field b of a": func(in *Input) { in.Body = []byte(`{"a":1,"b":3}`) },
	}
	wildcards, parameters := []string{"wildcard 1", "wildcard 2"}, []string{"locale", "id"}
	for _, test := range []struct {
		selection Selection
		ignored   []string
	}{
		{Selection{}, slices.Concat(wildcards, parameters)},
		{Selection{Path: PathWildcards}, append([]string{"fixed path"}, parameters...)},
		{Selection{Path: PathParameters}, append([]string{"fixed path"}, wildcards...)},
		{Selection{Path: PathWildcards, IgnorePath: []string{"1"}}, append([]string{"fixed path", "wildcard 1"}, parameters...)},
		{Selection{Path: PathParameters, IgnorePath: []string{"locale"}}, append([]string{"fixed path", "locale"}, wildcards...)},
		{Selection{IgnoreQuery: []string{"trace_*"}}, slices.Concat(wildcards, parameters, []string{"trace_1"})},
		{Selection{IgnoreQuery: []string{"amount"}}, slices.Concat(wildcards, parameters, []string{"amount"})},
		{Selection{IgnoreTracking: true}, slices.Concat(wildcards, parameters, []string{"utm_source"})},
		{Selection{Fields: fields}, slices.Concat(wildcards, parameters, []string{"field b of a"})},
	} {
		before := sum(t, f, selected(httpInput(), test.selection))
		for name, change := range changes {
			in := selected(httpInput(), test.selection)
			change(&in)
			if ignored := sum(t, f, in).Equal(before); ignored != slices.Contains(test.ignored, name) {
				t.Errorf("%q: a changed %s is ignored: %v", test.selection, name, ignored)
			}
		}
	}
}

// What a release selects may change while records are stored: a retry is compared under the selection of the first request.
func TestARetryIsComparedUnderTheSelectionOfTheFirstRequest(t *testing.T) {
	f := newFingerprinter(t, Config{})
	fields, err := NewFields([]string{"/a"}, []string{"/a/x~1y&=;"})
	if err != nil {
		t.Fatal(err)
	}
	selections := []Selection{
		{}, {Path: PathWildcards}, {Path: PathParameters}, {Path: PathWildcards, IgnorePath: []string{"2", "1"}},
		{IgnoreQuery: []string{"b=&c*", "a"}}, {IgnoreTracking: true}, {Fields: fields},
		{Path: PathParameters, IgnorePath: []string{"locale"}, IgnoreQuery: []string{"x"}, IgnoreTracking: true, Fields: fields},
	}
	for _, before := range selections {
		stored := sum(t, f, selected(httpInput(), before))
		for _, after := range selections {
			again, err := f.SumAs(stored, selected(httpInput(), after))
			if err != nil || !again.Equal(stored) {
				t.Errorf("stored under %q, then selected %q: %v, %v", before, after, again.Equal(stored), err)
			}
			if other := sum(t, f, selected(httpInput(), after)); before.String() != after.String() && other.Alike(stored) {
				t.Errorf("%q and %q are alike", before, after)
			}
		}
		parsed, err := ParseSelection(before.String())
		if err != nil || parsed.String() != before.String() {
			t.Errorf("%q is read as %q, %v", before, parsed, err)
		}
	}
}

func TestASelectionThatCannotBeAppliedIsAnErrorAndNeverAnEmptyValue(t *testing.T) {
	f := newFingerprinter(t, Config{})
	for _, text := range []string{"path=elsewhere", "tracking=2", "newer=1", "ignore_path=id", "%zz", "path=wildcards&path=parameters", "include=a"} {
		if _, err := f.SumAs(Fingerprint{Version: Version, Selection: text}, httpInput()); !errors.Is(err, ErrSelection) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, in := range []Input{
		{Path: "/a", Selection: Selection{Path: PathWildcards}},
		{Path: "/a", Selection: Selection{Path: PathParameters}},
		{Path: "/a", Wildcards: []string{"7"}, Selection: Selection{Path: PathWildcards, IgnorePath: []string{"2"}}},
		{Path: "/a", Parameters: map[string]string{"id": "7"}, Selection: Selection{Path: PathParameters, IgnorePath: []string{"locale"}}},
	} {
		if _, err := f.Sum(in); !errors.Is(err, ErrSelection) {
			t.Errorf("%q: %v", in.Selection, err)
		}
	}
}

func TestASelectionThatContradictsItselfIsRefused(t *testing.T) {
	for _, s := range []Selection{
		{Path: "all"}, {IgnorePath: []string{"id"}}, {IgnoreQuery: []string{""}}, {IgnoreQuery: []string{"*"}}, {IgnoreQuery: []string{"a*b"}},
		{IgnoreQuery: []string{strings.Repeat("a", SelectionBytesMax)}},
	} {
		if s.Validate() == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
}

// A list that changed under its version would turn retries into mismatches.
func TestTheListOfTrackingParametersIsFrozen(t *testing.T) {
	const frozen = "utm_* mtm_* hsa_* gclid gclsrc dclid gbraid wbraid _ga _gl fbclid igshid msclkid ttclid twclid li_fat_id yclid " +
		"mc_cid mc_eid _hsenc _hsmi vero_id oly_anon_id oly_enc_id"
	if got := strings.Join(Tracking(), " "); got != frozen {
		t.Errorf("version %s is now %s", trackingVersion, got)
	}
}

func TestDifferingIsOnlySaidOfFingerprintsThatWereMadeAlike(t *testing.T) {
	f := newFingerprinter(t, Config{})
	a, other := sum(t, f, httpInput()), httpInput()
	other.Body = []byte(`{"a":2,"b":2}`)
	b := sum(t, f, other)
	if got := a.Differing(b); len(got) != 1 || got[0] != PartBody {
		t.Errorf("differs in %v", got)
	}
	older, elsewhere := b, b
	older.Parts, elsewhere.Selection = Parts{}, "path=wildcards"
	for _, unknown := range []Fingerprint{a, older, elsewhere} {
		if got := a.Differing(unknown); got != nil {
			t.Errorf("%+v differs in %v", unknown, got)
		}
	}
}
