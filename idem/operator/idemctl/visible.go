package idemctl

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// What is shown to a person may be somebody else's text: a tenant's name, a provider's reference, the text of an error. A terminal would
// act on some runes of it, clear the screen, or show one id as another one. They are written as Go writes them in a string.

// acted says that a terminal acts on a rune instead of showing it: control characters, and what turns the direction of a text.
func acted(r rune) bool {
	return unicode.IsControl(r) || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// visible is a text in one line.
func visible(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd") // a byte alone may be a control character to a terminal
	if !strings.ContainsFunc(text, acted) {
		return text
	}
	var all strings.Builder
	for _, r := range text {
		if acted(r) {
			all.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
			continue
		}
		all.WriteRune(r)
	}
	return all.String()
}

// visibleLines is a text of several lines.
func visibleLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = visible(line)
	}
	return strings.Join(lines, "\n")
}

// visibleJSON is JSON that says the same. The encoder escapes some of these runes; the rest can only stand within strings, where JSON
// admits an escape. The ends of lines are the encoder's own.
func visibleJSON(text string) string {
	var all strings.Builder
	for _, r := range text {
		if acted(r) && r != '\n' {
			fmt.Fprintf(&all, `\u%04x`, r)
			continue
		}
		all.WriteRune(r)
	}
	return all.String()
}
