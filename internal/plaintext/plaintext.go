// Package plaintext writes somebody else's text so that a terminal shows it and does nothing else: a tenant's name, a provider's reference,
// the text of an error. A terminal would act on some runes of it, clear the screen, or show one id as another one. They are written as Go
// writes them in a string.
package plaintext

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Acted says that a terminal acts on a rune instead of showing it: control characters, and what turns the direction of a text (UAX #9:
// marks, embeddings, overrides and isolates).
func Acted(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// Line is a text in one line.
func Line(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd") // a byte alone may be a control character to a terminal
	if !strings.ContainsFunc(text, Acted) {
		return text
	}
	var all strings.Builder
	for _, r := range text {
		if Acted(r) {
			all.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
			continue
		}
		all.WriteRune(r)
	}
	return all.String()
}

// Lines is a text of several lines.
func Lines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Line(line)
	}
	return strings.Join(lines, "\n")
}

// Table is a text of several lines, whose columns may be set apart by tabs.
func Table(text string) string {
	cells := strings.Split(text, "\t")
	for i, cell := range cells {
		cells[i] = Lines(cell)
	}
	return strings.Join(cells, "\t")
}

// JSON is JSON that says the same. The encoder escapes some of these runes; the rest can only stand within strings, where JSON admits an
// escape. The ends of lines are the encoder's own.
func JSON(text string) string {
	var all strings.Builder
	for _, r := range text {
		if Acted(r) && r != '\n' {
			fmt.Fprintf(&all, `\u%04x`, r)
			continue
		}
		all.WriteRune(r)
	}
	return all.String()
}
