package canonical

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// member is one name and value of an object; objects are slices of them, so that their order can be drawn.
type member struct {
	name  string
	value any
}

type object []member

// treeDepth is the depth of drawn bodies; they are arrays or objects at the top, so that there is something in them.
const treeDepth = 4

// drawValue draws a JSON value: nil, bool, json.Number, string, []any or object.
func drawValue(t *rapid.T, depth int) any {
	low, high := 0, 5
	switch depth {
	case treeDepth:
		low = 4
	case 0:
		high = 3
	}
	switch rapid.IntRange(low, high).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return json.Number(fmt.Sprint(rapid.Int64().Draw(t, "int")))
	case 3:
		return rapid.String().Draw(t, "string")
	case 4:
		list := make([]any, rapid.IntRange(0, 4).Draw(t, "length"))
		for i := range list {
			list[i] = drawValue(t, depth-1)
		}
		return list
	}
	var members object
	for _, name := range rapid.SliceOfNDistinct(rapid.String(), 0, 4, rapid.ID[string]).Draw(t, "names") {
		members = append(members, member{name, drawValue(t, depth-1)})
	}
	return members
}

// spell writes the value with drawn order of members, white space and escapes.
func spell(t *rapid.T, value any) string {
	space := func() string { return rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "space") }
	switch value := value.(type) {
	case string:
		return spellString(t, value)
	case []any:
		elements := make([]string, len(value))
		for i, element := range value {
			elements[i] = space() + spell(t, element)
		}
		return "[" + strings.Join(elements, ",") + space() + "]"
	case object:
		members := make([]string, len(value))
		order := rapid.Permutation([]member(value)).Draw(t, "order")
		for i, m := range order {
			members[i] = space() + spellString(t, m.name) + space() + ":" + space() + spell(t, m.value)
		}
		return "{" + strings.Join(members, ",") + space() + "}"
	case json.Number:
		return string(value) + rapid.SampledFrom([]string{"", ".0", "e0", ".000E+0"}).Draw(t, "number")
	}
	return fmt.Sprint(map[any]string{nil: "null", true: "true", false: "false"}[value])
}

func spellString(t *rapid.T, s string) string {
	escapeAll := rapid.Bool().Draw(t, "escape")
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r > 0xffff:
			b.WriteRune(r)
		case escapeAll || r < 0x20 || r == '"' || r == '\\':
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func TestBodyProperties(t *testing.T) {
	f := newFingerprinter(t, Config{})
	sumOf := func(t *rapid.T, body string) Fingerprint {
		got, err := f.Sum(jsonInput(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		return got
	}
	t.Run("one value, one fingerprint, however it is spelled", rapid.MakeCheck(func(t *rapid.T) {
		value := drawValue(t, treeDepth)
		a, b := spell(t, value), spell(t, value)
		if !sumOf(t, a).Equal(sumOf(t, b)) {
			t.Fatalf("%s and %s differ", a, b)
		}
	}))
	t.Run("another value, another fingerprint", rapid.MakeCheck(func(t *rapid.T) {
		value := drawValue(t, treeDepth)
		changed := change(t, value)
		a, b := spell(t, value), spell(t, changed)
		if sumOf(t, a).Equal(sumOf(t, b)) {
			t.Fatalf("%s and %s are equal", a, b)
		}
	}))
	t.Run("the canonical form is the same value, and its own canonical form", rapid.MakeCheck(func(t *rapid.T) {
		body := spell(t, drawValue(t, treeDepth))
		got, err := canonicalJSON([]byte(body), DepthMaxDefault)
		if err != nil {
			t.Fatal(err)
		}
		again, err := canonicalJSON(got, DepthMaxDefault)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%s became %s, then %s (%v)", body, got, again, err)
		}
		var before, after any
		if err := json.Unmarshal([]byte(body), &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(got, &after); err != nil || !reflect.DeepEqual(before, after) {
			t.Fatalf("%s became %s (%v)", body, got, err)
		}
	}))
}

// change returns the value with one thing in it changed.
func change(t *rapid.T, value any) any {
	switch value := value.(type) {
	case nil:
		return false
	case bool:
		return !value
	case json.Number:
		if rapid.Bool().Draw(t, "to string") {
			return string(value)
		}
		if value == "0" {
			return json.Number("1")
		}
		return json.Number(string(value) + "1")
	case string:
		return value + "x"
	case []any:
		if len(value) == 0 {
			return []any{nil}
		}
		i := rapid.IntRange(0, len(value)-1).Draw(t, "element")
		changed := append([]any(nil), value...)
		changed[i] = change(t, value[i])
		return changed
	case object:
		if len(value) == 0 {
			return object{{"x", nil}}
		}
		i := rapid.IntRange(0, len(value)-1).Draw(t, "member")
		changed := append(object(nil), value...)
		changed[i].value = change(t, value[i].value)
		return changed
	}
	panic(fmt.Sprintf("not a JSON value: %T", value))
}
