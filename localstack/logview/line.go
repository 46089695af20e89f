package logview

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The most characters that are shown of a line that is no JSON object, and of one field.
const (
	textMax  = 400
	fieldMax = 160
)

// Members that are shown in a place of their own. Everything else is counted only.
const (
	memberTime      = "time"
	memberLevel     = "level"
	memberMessage   = "msg"
	memberOperation = "operation"
	memberTopic     = "topic"
	memberOutcome   = "outcome"
	memberStack     = "stack"
	memberTook      = "took_ms"
)

// requestMembers say in which invocation, for which request of the gateway and in which trace a line was written: for programs that
// follow one of them. They are not shown, and lines that differ by nothing else are one.
var requestMembers = []string{"request_id", "gateway_request_id", "trace_id", "span_id"}

// idMembers name an operation or a message; detailMembers say what came of it. Both are shown in this order.
var (
	idMembers     = []string{"operation_id", "message", "key_hash", "record"}
	detailMembers = []string{"error", "reason", "last_outcome", "differing", "report", "alarm"}
)

// metricMetadata is what CloudWatch reads of a line (package telemetry), and no person; metricService is its dimension.
const (
	metricMetadata = "_aws"
	metricService  = "service"
)

// reserveEvents begin the messages of a request, whose outcome says the same.
const reserveEvents = "idempotency.reserve."

// line is one line of a function's log. fields is nil where it is no JSON object with a message.
type line struct {
	function string
	at       time.Time
	raw      string
	fields   map[string]any
}

func parse(function, text string) line {
	l := line{function: function, raw: text}
	var fields map[string]any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber() // an id must not come out as 1.8e+19
	if decoder.Decode(&fields) != nil || decoder.More() || fields[memberMessage] == nil {
		return l
	}
	l.fields = fields
	if at, err := time.Parse(time.RFC3339Nano, l.value(memberTime)); err == nil {
		l.at = at
	}
	return l
}

// says is what lines have in common that tell the same of the same. What differs may be when it was, how long it took, and in which
// trace it was recorded.
func (l line) says() string {
	if l.fields == nil {
		return l.function + " " + l.raw
	}
	kept := maps.Clone(l.fields)
	for _, name := range append([]string{memberTime, memberTook, metricMetadata}, requestMembers...) {
		delete(kept, name)
	}
	return l.function + " " + encoded(kept)
}

// value is a member as text; "" where there is none.
func (l line) value(name string) string {
	switch v := l.fields[name].(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return encoded(v)
	}
}

func encoded(v any) string {
	text, err := json.Marshal(v)
	if err != nil { // what was decoded can be encoded
		return fmt.Sprint(v)
	}
	return string(text)
}

// short is a member as it is shown.
func (l line) short(name string) string { return cut(printable(l.value(name)), fieldMax) }

func (l line) operation() string {
	for _, name := range []string{memberOperation, memberTopic} {
		if l.fields[name] != nil {
			return l.short(name)
		}
	}
	return "-"
}

// outcome is the message, with the outcome where it does not tell the same.
func (l line) outcome() string {
	message, outcome := l.short(memberMessage), l.short(memberOutcome)
	switch {
	case outcome == "":
		return message
	case strings.HasPrefix(message, reserveEvents):
		return outcome
	}
	return message + ": " + outcome
}

// details are errors and reasons, and how long it took.
func (l line) details() []string {
	shown := l.named(detailMembers)
	if took := l.short(memberTook); took != "" {
		shown = append(shown, took+" ms")
	}
	return shown
}

func (l line) named(names []string) []string {
	var shown []string
	for _, name := range names {
		if l.fields[name] != nil && !l.repeats(name) {
			shown = append(shown, name+"="+l.short(name))
		}
	}
	return shown
}

// repeats says that a member is told by another: an operation's id begins with its record's key, but for the bits of the last
// character, which it shares with what follows.
func (l line) repeats(name string) bool {
	id, begins := strings.CutPrefix(l.value("operation_id"), "op_")
	hash := l.value(name)
	return name == "key_hash" && begins && hash != "" && strings.HasPrefix(id, hash[:len(hash)-1])
}

// rest is how many members are not shown, the metric's own left out.
func (l line) rest() int {
	placed := slices.Concat(idMembers, detailMembers, requestMembers, []string{
		memberTime, memberLevel, memberMessage, memberOperation, memberOutcome, memberStack, memberTook, metricMetadata,
	})
	if l.fields[memberOperation] == nil {
		placed = append(placed, memberTopic)
	}
	if l.fields[metricMetadata] != nil { // the line is the metric
		placed = append(placed, metricService, l.value(memberMessage))
	}
	rest := 0
	for name := range l.fields {
		if !slices.Contains(placed, name) {
			rest++
		}
	}
	return rest
}

// column pads text to a width.
func column(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

// cut shortens text, and says by how much.
func cut(text string, most int) string {
	if n := utf8.RuneCountInString(text); n > most {
		return fmt.Sprintf("%s… (+%d characters)", string([]rune(text)[:most]), n-most)
	}
	return text
}

// printable replaces what a terminal would obey: a request may have put it there.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
