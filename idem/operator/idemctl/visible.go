package idemctl

import "github.com/idem-go/idem-aws/internal/plaintext"

// What is shown to a person may be somebody else's text. The names are short, because nearly every line that is printed has one.

// visible is a text in one line.
func visible(text string) string { return plaintext.Line(text) }

// visibleLines is a text of several lines.
func visibleLines(text string) string { return plaintext.Lines(text) }

// visibleTable is a text of several lines, whose columns may be set apart by tabs.
func visibleTable(text string) string { return plaintext.Table(text) }

// visibleJSON is JSON that says the same.
func visibleJSON(text string) string { return plaintext.JSON(text) }
