package idemctl

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

type manual struct{}

// Run implements the command.
func (*manual) Run(s *session, app *kong.Kong) error {
	_, err := io.WriteString(s.out, roff(app.Model))
	return err
}

// roff is the manual page, in the macros of man(7).
func roff(app *kong.Application) string {
	var page strings.Builder
	line := func(macro string, text string) { fmt.Fprintf(&page, "%s %s\n", macro, text) }
	all := parts(app)
	page.WriteString(".TH IDEMCTL 1 \"\" idem \"Operator's commands\"\n.SH NAME\nidemctl \\- read and change operations that have to be done once\n")
	page.WriteString(".SH SYNOPSIS\n.B idemctl\n.I command\n[\\fIargument\\fR ...] [\\fB\\-\\-flag\\fR ...]\n")
	page.WriteString(".SH DESCRIPTION\n" + escaped(app.Help) + "\n")
	page.WriteString(".PP\nNothing changes without \\fB\\-\\-write\\fR. Each change needs a reason and who you are, and is in the audit log.\n")
	page.WriteString(".SH OPTIONS\nEach command takes these.\n")
	common := all[0].flags
	for _, f := range common {
		option(&page, f)
	}
	page.WriteString(".SH COMMANDS\n")
	for _, p := range all[1:] {
		line(".SS", "\"idemctl "+escaped(strings.Join(append(p.path, arguments(p)...), " "))+"\"")
		page.WriteString(escaped(p.help) + "\n")
		for _, arg := range p.args {
			fmt.Fprintf(&page, ".TP\n.I %s\n%s\n", escaped(arg.Name), escaped(arg.Help))
		}
		for _, f := range p.flags[len(common):] {
			option(&page, f)
		}
	}
	page.WriteString(".SH EXIT STATUS\n")
	for _, code := range exitCodes {
		fmt.Fprintf(&page, ".TP\n.B %d\n%s\n", code.code, escaped(code.means))
	}
	page.WriteString(".SH ENVIRONMENT\n.TP\n.B IDEMCTL_ACTOR\nWho you are, where \\fB\\-\\-actor\\fR is not given. Default: \\fBUSER\\fR.\n")
	page.WriteString(".TP\n.B NO_COLOR\nNo colour in tables, unless \\fB\\-\\-color\\fR always.\n")
	page.WriteString(".PP\nThe application's own variables are listed in its documentation.\n")
	return page.String()
}

// exitCodes are what each code means.
var exitCodes = []struct {
	code  int
	means string
}{
	{ExitOK, "Read, done, or nothing to do."},
	{ExitRefused, "Refused by the fence or the contract and nothing was changed; or nothing is there, several ids begin alike, there is drift, or letters stay in the queue."},
	{ExitUsage, "The command line, a file, or the environment can't be used. Nothing was changed."},
	{ExitTrouble, "A table, a queue or the provider could not be reached. After a change, the audit log says what was begun."},
}

// arguments are a command's arguments as its heading has them.
func arguments(p part) []string {
	var all []string
	for _, arg := range p.args {
		name := "<" + arg.Name + ">"
		if !arg.Required {
			name = "[" + name + "]"
		}
		all = append(all, name)
	}
	return all
}

func option(page io.Writer, f *kong.Flag) {
	name := "\\fB" + escaped("--"+f.Name) + "\\fR"
	if f.Short != 0 {
		name = "\\fB" + escaped("-"+string(f.Short)) + "\\fR, " + name
	}
	if !f.IsBool() {
		name += "=\\fI" + escaped(f.FormatPlaceHolder()) + "\\fR"
	}
	fmt.Fprintf(page, ".TP\n%s\n%s\n", name, escaped(f.Help))
}

// escaped is a text that roff reads as itself: a line that begins with a dot or an apostrophe would be a request.
func escaped(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...", "\n", " ").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
