// Package logview makes the functions' log lines readable by a person: one line for each, with time, level, function,
// operation, outcome and ids, and the number of the fields that are not shown. It reads and writes nothing. The package
// belongs to this repository's tools and has no compatibility promise.
package logview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// clock is how times are shown.
const clock = "15:04:05.000"

// foldWithin is how long after a line others may count as its repetitions.
const foldWithin = 2 * time.Second

// Entry is one log event as it was collected.
type Entry struct {
	// Function is the short name of the function that logged.
	Function string
	// At is the log event's own time. A JSON line's member "time" is preferred to it.
	At time.Time
	// Text is what was logged; it may hold several lines.
	Text string
}

// View renders entries. The zero value writes no colour, and times in UTC.
type View struct {
	// Colour marks levels with ANSI escape sequences.
	Colour bool
	// Location is where times are shown. Default UTC.
	Location *time.Location
	// traced are the stack traces that have not ended, by function: a trace may be spread over entries and rounds.
	traced map[string]*trace
}

// Round renders what was collected since the last call, oldest first. JSON lines that repeat one of the last two seconds, but for
// their times, are shown once with their number: "× 12". So is text that repeats the line before it.
func (v *View) Round(entries []Entry) []string {
	var shown []string
	for _, l := range folded(sorted(entries)) {
		shown = append(shown, v.shown(l.line, l.times)...)
	}
	return append(shown, v.notes()...)
}

// counted is a line and how often it is there.
type counted struct {
	line
	times int
}

// folded counts lines that repeat an earlier one. Requests run at once, so other lines may stand between JSON lines.
func folded(lines []line) []counted {
	var kept []counted
	begun := map[string]int{} // where in kept the repetitions of what a line says are counted
	for _, l := range lines {
		says := l.says()
		at, repeats := begun[says]
		switch {
		case !repeats:
		case l.fields == nil:
			repeats = at == len(kept)-1 && !isTrace(l.raw) && !isFrame(l.raw)
		default:
			repeats = l.at.Sub(kept[at].at) < foldWithin
		}
		if repeats {
			kept[at].times++
			continue
		}
		begun[says] = len(kept)
		kept = append(kept, counted{l, 1})
	}
	return kept
}

// sorted parses the entries and puts their lines into the order of their times. A line that has no time of its own keeps its
// place behind the one before it of the same function: the event's time is when the invocation began.
func sorted(entries []Entry) []line {
	last := map[string]time.Time{}
	var lines []line
	for _, entry := range entries {
		for _, text := range strings.Split(strings.TrimRight(entry.Text, "\r\n"), "\n") {
			l := parse(entry.Function, strings.TrimRight(text, "\r"))
			if l.at.IsZero() {
				l.at = entry.At
				if before := last[entry.Function]; before.After(l.at) {
					l.at = before
				}
			}
			last[entry.Function] = l.at
			lines = append(lines, l)
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	return lines
}

func (v *View) shown(l line, times int) []string {
	if l.fields != nil {
		return append(v.endTrace(l.function), v.record(l, times)...)
	}
	if v.traces(l) {
		return v.traceLine(l)
	}
	return append(v.endTrace(l.function), v.text(l, times))
}

// record renders a JSON line, and below it its stack trace, if it has one.
func (v *View) record(l line, times int) []string {
	parts := slices.Concat([]string{v.head(l), column(l.operation(), 20), column(l.outcome(), 12)}, l.named(idMembers), l.details())
	if rest := l.rest(); rest > 0 {
		parts = append(parts, fmt.Sprintf("(+%d)", rest))
	}
	return append([]string{strings.TrimRight(strings.Join(parts, "  "), " ") + repeated(times)}, l.stack()...)
}

// text renders a line that is no JSON object: a crash of the runtime, a library that prints, half a line.
func (v *View) text(l line, times int) string {
	return v.head(l) + "  " + cut(printable(l.raw), textMax) + repeated(times)
}

func repeated(times int) string {
	if times == 1 {
		return ""
	}
	return fmt.Sprintf("  × %d", times)
}

// head is time, level and function.
func (v *View) head(l line) string {
	at, level := strings.Repeat("-", len(clock)), "-"
	if !l.at.IsZero() {
		at = l.at.In(cmp.Or(v.Location, time.UTC)).Format(clock)
	}
	if l.fields != nil {
		level = l.short(memberLevel)
	}
	return at + "  " + v.coloured(level, column(level, 5)) + "  " + column(l.function, 10)
}

// coloured marks what somebody should look at.
func (v *View) coloured(level, text string) string {
	sequence, marked := map[string]string{"ERROR": "\x1b[31m", "WARN": "\x1b[33m", "DEBUG": "\x1b[2m"}[level]
	if !v.Colour || !marked {
		return text
	}
	return sequence + text + "\x1b[0m"
}
