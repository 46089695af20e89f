// Package terminal draws what a terminal shows as a picture in SVG, from the recorded text of a session. The documents show such
// pictures; a test draws each one anew and compares it.
package terminal

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Columns is the width of the terminal. A longer line goes on in the next row, as in a terminal.
const Columns = 100

// A picture has paper of its own, so that it is read on a light page as on a dark one.
const (
	paper  = "#0d1117"
	frame  = "#6e7681"
	ink    = "#e6edf3"
	bright = "#ffffff"
	prompt = "#79c0ff"
)

// The size of a character and of the margin, in pixels.
const (
	charWidth = 8
	rowHeight = 18
	fontSize  = 13
	margin    = 16
)

// style is how characters look.
type style struct {
	colour string
	bold   bool
}

// styles are the codes of a terminal that are known.
var styles = map[string]style{
	"0": {ink, false}, "1": {bright, true}, "31": {"#ff7b72", false}, "32": {"#7ee787", false}, "33": {"#e3b341", false},
}

// run is a part of a row in one style. at is its first column, from 0.
type run struct {
	style
	at   int
	text string
}

// SVG draws a session: lines of text, with the codes of a terminal for its colours. A line that begins with "$ " was typed. title is what
// the picture shows, for those who do not see it. A code or a character that can't be drawn is an error.
func SVG(title, session string) ([]byte, error) {
	var rows [][]run
	for line := range strings.Lines(session) {
		drawn, err := rowsOf(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("terminal: line %q: %w", line, err)
		}
		rows = append(rows, drawn...)
	}
	width, height := Columns*charWidth+2*margin, len(rows)*rowHeight+2*margin
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-labelledby="title">`+"\n", width, height, width, height)
	fmt.Fprintf(&out, "<title id=\"title\">%s</title>\n", escaped(title))
	fmt.Fprintf(&out, `<rect x="0.5" y="0.5" width="%d" height="%d" rx="8" fill="%s" stroke="%s"/>`+"\n", width-1, height-1, paper, frame)
	fmt.Fprintf(&out, `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace" font-size="%d">`+"\n", fontSize)
	for i, row := range rows {
		for _, r := range row {
			r.draw(&out, margin+i*rowHeight+fontSize)
		}
	}
	out.WriteString("</g>\n</svg>\n")
	return out.Bytes(), nil
}

// phrase is what stands between wide spaces: a reader of SVG makes one space of several, so each phrase has a place of its own.
var phrase = regexp.MustCompile(`[^ ]+( [^ ]+)*`)

// draw writes a run. The length of each phrase is given, so that columns stand below each other in whichever font the reader has.
func (r run) draw(out *bytes.Buffer, y int) {
	weight := ""
	if r.bold {
		weight = ` font-weight="bold"`
	}
	for _, at := range phrase.FindAllStringIndex(r.text, -1) {
		before, text := utf8.RuneCountInString(r.text[:at[0]]), r.text[at[0]:at[1]]
		fmt.Fprintf(out, `<text x="%d" y="%d" textLength="%d" fill="%s"%s>%s</text>`+"\n",
			margin+(r.at+before)*charWidth, y, utf8.RuneCountInString(text)*charWidth, r.colour, weight, escaped(text))
	}
}

// code is a colour of a terminal.
var code = regexp.MustCompile(`\x1b\[([0-9;]*)m`)

// rowsOf are the rows of a line.
func rowsOf(line string) ([][]run, error) {
	now, rows, column := styles["0"], [][]run{nil}, 0
	if strings.HasPrefix(line, "$ ") {
		now = style{prompt, false}
	}
	for line != "" {
		text, next := line, ""
		if at := code.FindStringSubmatchIndex(line); at != nil {
			text, next, line = line[:at[0]], line[at[2]:at[3]], line[at[1]:]
		} else {
			line = ""
		}
		if bad := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); bad >= 0 {
			return nil, fmt.Errorf("%q can't be drawn", text[bad:])
		}
		for _, r := range text {
			if column == Columns {
				rows, column = append(rows, nil), 0
			}
			last := &rows[len(rows)-1]
			if n := len(*last); n == 0 || (*last)[n-1].style != now {
				*last = append(*last, run{style: now, at: column})
			}
			(*last)[len(*last)-1].text += string(r)
			column++
		}
		if next != "" {
			known, ok := styles[next]
			if !ok {
				return nil, fmt.Errorf("the code %q is not known", next)
			}
			now = known
		}
	}
	return rows, nil
}

func escaped(text string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(text)) // a buffer takes everything
	return out.String()
}
