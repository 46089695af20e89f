package logview

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// traceLinesMax is how many lines of a stack trace are shown: where it happened, and the callers nearest to it.
const traceLinesMax = 8

// trace counts the lines of a stack trace that goes on. hidden are those that nobody was told of yet.
type trace struct{ lines, hidden int }

// frame is a call of a trace, as "main.handler(0x0, {0xc000…})" or "created by net/http.(*Server).Serve in goroutine 1".
var frame = regexp.MustCompile(`^(created by )?[^\s(]+(\.\(\*?[^\s)]+\))?\.[^\s(]+(\(.*\)| in goroutine [0-9]+)$`)

// isTrace says that a line begins a goroutine's stack trace.
func isTrace(text string) bool {
	return strings.HasPrefix(text, "goroutine ") && strings.HasSuffix(text, ":")
}

func isFrame(text string) bool {
	return text == "" || strings.HasPrefix(text, "\t") || frame.MatchString(text)
}

// traces says that a line belongs to a stack trace, and begins to count where it is the first.
func (v *View) traces(l line) bool {
	if v.traced == nil {
		v.traced = map[string]*trace{}
	}
	if v.traced[l.function] != nil {
		return isTrace(l.raw) || isFrame(l.raw)
	}
	if !isTrace(l.raw) {
		return false
	}
	v.traced[l.function] = &trace{}
	return true
}

func (v *View) traceLine(l line) []string {
	t := v.traced[l.function]
	if t.lines++; t.lines > traceLinesMax {
		t.hidden++
		return nil
	}
	return []string{indented(l.raw)}
}

// endTrace ends a function's stack trace, and returns a line of what was hidden.
func (v *View) endTrace(function string) []string {
	t := v.traced[function]
	delete(v.traced, function)
	return t.note(function)
}

// notes tells what was hidden so far of traces that may go on.
func (v *View) notes() []string {
	var shown []string
	for _, function := range slices.Sorted(maps.Keys(v.traced)) {
		shown = append(shown, v.traced[function].note(function)...)
	}
	return shown
}

func (t *trace) note(function string) []string {
	if t == nil || t.hidden == 0 {
		return nil
	}
	hidden := t.hidden
	t.hidden = 0
	return []string{indented(fmt.Sprintf("… %s: %d more lines of the stack trace; RAW=1 shows them", function, hidden))}
}

// stack is the stack trace that a JSON line carries.
func (l line) stack() []string {
	text := l.value(memberStack)
	if text == "" {
		return nil
	}
	t, shown := &trace{}, []string(nil)
	for _, frame := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if t.lines++; t.lines > traceLinesMax {
			t.hidden++
			continue
		}
		shown = append(shown, indented(frame))
	}
	return append(shown, t.note(l.function)...)
}

// indented places a line below the one that it belongs to.
func indented(text string) string {
	return strings.Repeat(" ", len(clock)+2) + cut(printable(text), textMax)
}
