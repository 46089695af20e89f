package idemctl

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// show writes an answer as JSON, or as the table says.
func (s *session) show(answer any, as func(*table)) error {
	t := &table{out: s.out, look: s.look()}
	if s.cli.Output == "json" {
		t.json(answer)
	} else {
		as(t)
	}
	return t.err
}

// table writes for people, and keeps the first error.
type table struct {
	out io.Writer
	look
	err error
}

func (t *table) json(answer any) {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(answer)
	if err == nil {
		_, err = io.WriteString(t.out, visibleJSON(text.String()))
	}
	if t.err == nil {
		t.err = err
	}
}

func (t *table) line(format string, args ...any) {
	if _, err := fmt.Fprintf(t.out, format+"\n", args...); t.err == nil {
		t.err = err
	}
}

const (
	// widthMax is how many columns of a terminal a table has at most, without --wide.
	widthMax = 100
	// cutMin is what a cut column keeps at least, and besideTokenMin what one of a list keeps where that does not fit beside a long token.
	cutMin, besideTokenMin = 8, 4
	gap                    = "  "
)

// column is one of a table.
type column struct {
	name string
	// cut says that its texts may be cut where the table is too wide: they are for reading, and not for copying.
	cut bool
}

// columns writes rows below their header; there is nothing to see where there are none.
func (t *table) columns(header []column, rows [][]string) { t.columnsOf(header, rows, cutMin) }

// columnsOf is columns, where each keeps so much, if the table does not fit with more.
func (t *table) columnsOf(header []column, rows [][]string, least int) {
	if len(rows) == 0 {
		return
	}
	rows = slices.Clone(rows)
	for i, row := range rows {
		rows[i] = allVisible(row)
	}
	widths := make([]int, len(header))
	for i, c := range header {
		widths[i] = utf8.RuneCountInString(c.name)
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	if !t.wide {
		narrow(header, widths, least)
	}
	names := make([]string, len(header))
	for i, c := range header {
		names[i] = c.name
	}
	t.row(names, widths, func(text string) string { return t.paint(bold, text) })
	for _, row := range rows {
		t.row(row, widths, t.hue)
	}
}

func allVisible(cells []string) []string {
	shown := make([]string, len(cells))
	for i, text := range cells {
		shown[i] = visible(text)
	}
	return shown
}

// row writes a row. What is painted has its width already.
func (t *table) row(cells []string, widths []int, paint func(string) string) {
	var line strings.Builder
	for i, text := range cells {
		text = clip(text, widths[i])
		line.WriteString(paint(text))
		if i < len(cells)-1 {
			line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)) + gap)
		}
	}
	t.line("%s", strings.TrimRight(line.String(), " "))
}

// narrow makes the widest columns that may be cut narrower, until the table fits or nothing is left to cut. Only a table that does not fit
// otherwise has columns of less than cutMin.
func narrow(header []column, widths []int, least int) {
	total := len(gap) * (len(widths) - 1)
	for _, width := range widths {
		total += width
	}
	for _, least := range []int{cutMin, least} {
		total = narrowed(header, widths, total, least)
	}
}

// narrowed cuts no column to less than so much, and returns how wide the table is then.
func narrowed(header []column, widths []int, total, least int) int {
	for ; total > widthMax; total-- {
		widest := -1
		for i, c := range header {
			if c.cut && widths[i] > least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return total
		}
		widths[widest]--
	}
	return total
}

// clip is the text in so many columns: what is cut ends with "…".
func clip(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

// field is a name and what it is.
type field struct{ name, value string }

// fields writes what is there, one below the other: a line is as long as its value. Long texts wrap without --wide.
func (t *table) fields(all ...field) {
	all = slices.DeleteFunc(all, func(f field) bool { return f.value == "" || f.value == "-" })
	width := 0
	for _, f := range all {
		width = max(width, utf8.RuneCountInString(f.name))
	}
	for _, f := range all {
		f.value = visible(f.value)
		before := "  " + f.name + strings.Repeat(" ", width-utf8.RuneCountInString(f.name)) + gap
		lines := []string{f.value}
		if !t.wide {
			lines = wrap(f.value, widthMax-utf8.RuneCountInString(before))
		}
		t.line("%s%s", before, t.hue(lines[0]))
		for _, line := range lines[1:] {
			t.line("%s%s", strings.Repeat(" ", utf8.RuneCountInString(before)), line)
		}
	}
}

// wrap breaks a text between words into lines of a width. A word that is longer stays whole.
func wrap(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}

func or(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// number is a count; none is not worth telling.
func number(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}
