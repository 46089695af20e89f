package canonical

import (
	"strings"
	"testing"
)

func TestFields(t *testing.T) {
	tests := []struct {
		clause           string
		include, exclude []string
		body, want       string
	}{
		{"exclude a member", nil, []string{"/at"}, `{"at":1,"amount":2}`, `{"amount":2}`},
		{"exclude first, middle, last", nil, []string{"/a", "/c", "/e"}, `{"a":1,"b":2,"c":3,"d":4,"e":5}`, `{"b":2,"d":4}`},
		{"exclude everything", nil, []string{"/a"}, `{"a":1}`, `{}`},
		{"exclude what is missing", nil, []string{"/x/y"}, `{"a":1}`, `{"a":1}`},
		{"exclude below", nil, []string{"/a/b"}, `{"a":{"b":1,"c":[true,null,"x"]},"b":1}`, `{"a":{"c":[true,null,"x"]},"b":1}`},
		{"exclude an element", nil, []string{"/a/1"}, `{"a":[1,2,3]}`, `{"a":[1,3]}`},
		{"exclude below an element", nil, []string{"/0/at"}, `[{"at":1,"b":2},{"at":1}]`, `[{"b":2},{"at":1}]`},
		{"exclude an index is also a name", nil, []string{"/1"}, `{"1":1,"2":2}`, `{"2":2}`},
		{"include a member", []string{"/amount"}, nil, `{"at":1,"amount":2}`, `{"amount":2}`},
		{"include several", []string{"/a/x", "/c", "/a/z"}, nil, `{"a":{"x":1,"y":2,"z":3},"b":1,"c":[1]}`, `{"a":{"x":1,"z":3},"c":[1]}`},
		{"include what is missing", []string{"/x"}, nil, `{"a":1}`, `{}`},
		{"include below a scalar keeps the scalar", []string{"/a/b"}, nil, `{"a":5}`, `{"a":5}`},
		{"include below a scalar body keeps it", []string{"/a"}, nil, `5`, `5`},
		{"include an element", []string{"/a/0"}, nil, `{"a":[1,2]}`, `{"a":[1]}`},
		{"include, then exclude within", []string{"/a"}, []string{"/a/at"}, `{"a":{"at":1,"b":2},"c":3}`, `{"a":{"b":2}}`},
		{"a shorter pointer wins", []string{"/a", "/a/b"}, nil, `{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":2}}`},
		{"RFC 6901 3 escapes", nil, []string{"/a~1b", "/m~0n"}, `{"a/b":1,"m~n":2,"x":3}`, `{"x":3}`},
		{"RFC 6901 5 empty name", nil, []string{"/"}, `{"":1,"a":2}`, `{"a":2}`},
		{"names are compared unescaped", nil, []string{"/a\"b"}, `{"\u0061\"b":1,"c":2}`, `{"c":2}`},
		{"digits of what is left stay", nil, []string{"/at"}, `{"at":1,"n":9007199254740993}`, `{"n":9007199254740993}`},
	}
	for _, test := range tests {
		t.Run(test.clause, func(t *testing.T) {
			fields, err := NewFields(test.include, test.exclude)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(fields.apply([]byte(canonicalize(t, test.body)))); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestFieldsAreRejected(t *testing.T) {
	for _, pointer := range []string{"", "a", "/a~2", "/~", "/\xff", "#/a"} {
		if _, err := NewFields(nil, []string{pointer}); err == nil {
			t.Errorf("exclude %q accepted", pointer)
		}
		if _, err := NewFields([]string{pointer}, nil); err == nil || !strings.Contains(err.Error(), "include") {
			t.Errorf("include %q: %v", pointer, err)
		}
	}
}

func TestNoFieldsMeansTheWholeBody(t *testing.T) {
	fields, err := NewFields(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*Fields{nil, fields} {
		if got := string(f.apply([]byte(`{"a":1}`))); got != `{"a":1}` {
			t.Errorf("got %s", got)
		}
	}
}
