package idemctl

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// look is how tables look.
type look struct {
	now time.Time
	// utc has times as they are stored, and not as "3 m ago"; wide cuts nothing; colour is for a terminal.
	utc, wide, colour bool
}

func (s *session) look() look {
	return look{now: s.app.Now(), utc: s.cli.UTC, wide: s.cli.Wide, colour: coloured(s.cli.Color, s.out)}
}

// coloured says whether there is colour: on a terminal, unless NO_COLOR is set (no-color.org) or the terminal has none.
func coloured(choice string, out io.Writer) bool {
	switch choice {
	case "always":
		return true
	case "never":
		return false
	}
	file, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// at is a time: "3 m ago", "in 2 h", or with --utc as it is stored.
func (l look) at(when time.Time) string {
	switch ago := l.now.Sub(when); {
	case when.IsZero():
		return "-"
	case l.utc:
		return when.UTC().Format(time.RFC3339)
	case ago >= time.Second:
		return span(ago) + " ago"
	case ago <= -time.Second:
		return "in " + span(-ago)
	}
	return "now"
}

// moment is a time within a sentence: "12:01:12Z (in 3 m)", with the day where that is not today, or with --utc as it is stored.
func (l look) moment(when time.Time) string {
	const day, clock = time.DateOnly, "15:04:05Z07:00"
	when = when.UTC()
	switch {
	case l.utc:
		return l.at(when)
	case when.Format(day) == l.now.UTC().Format(day):
		return fmt.Sprintf("%s (%s)", when.Format(clock), l.at(when))
	}
	return fmt.Sprintf("%s (%s)", when.Format(time.RFC3339), l.at(when))
}

// span is a duration in its largest unit, rounded down. Days begin at two.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d m", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d d", d/(24*time.Hour))
}

// The codes of a terminal.
const (
	plain  = "\x1b[0m"
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
)

// hues are the colours of states. The words say the same without them.
var hues = map[string]string{
	"dead": red, "failed": red, "refused": red,
	"unknown": yellow, "intended": yellow, "evidenced": yellow,
	"delivered": green, "completed": green, "done": green,
}

// hue paints a state, or what was seen, which begins with one.
func (l look) hue(text string) string {
	state, _, _ := strings.Cut(strings.TrimSpace(text), ".")
	return l.paint(hues[state], text)
}

func (l look) paint(code, text string) string {
	if !l.colour || code == "" {
		return text
	}
	return code + text + plain
}
