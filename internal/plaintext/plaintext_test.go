package plaintext

import (
	"encoding/json"
	"testing"
)

// directions are all runes that turn the direction of a text (UAX #9, 2: marks, embeddings, overrides, isolates).
var directions = []rune{'\u061c', '\u200e', '\u200f', '\u202a', '\u202b', '\u202c', '\u202d', '\u202e', '\u2066', '\u2067', '\u2068', '\u2069'}

// A terminal shows what a text is made of, and acts on nothing of it.
func TestATerminalActsOnNothing(t *testing.T) {
	for text, want := range map[string]string{
		"acme": "acme", "ä€😀 “x”": "ä€😀 “x”", "a\tb\nc\r": `a\tb\nc\r`, "\x1b[2J\x07\x00": `\x1b[2J\a\x00`, "\u009b\x7f": `\u009b\x7f`, "a\xff": "a\ufffd", "'": "'", "": "",
	} {
		if got := Line(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if got := Lines("a\x1b\nb\u202e"); got != `a\x1b`+"\n"+`b\u202e` {
		t.Errorf("%q", got)
	}
	if got := Table("A\tB\na\x1b\tb\u202e\n"); got != "A\tB\n"+`a\x1b`+"\t"+`b\u202e`+"\n" {
		t.Errorf("%q", got)
	}
	for _, r := range directions {
		text := "op_" + string(r) + "1"
		raw, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		shown := JSON(string(raw))
		var read string
		if err := json.Unmarshal([]byte(shown), &read); err != nil || read != text || acts(shown) || acts(Line(text)) {
			t.Errorf("%+q is %q, and %q as JSON, which reads %+q: %v", text, Line(text), shown, read, err)
		}
	}
}

// acts says that a text still turns a direction.
func acts(text string) bool {
	for _, r := range text {
		for _, turns := range directions {
			if r == turns {
				return true
			}
		}
	}
	return false
}
