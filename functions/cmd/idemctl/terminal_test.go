package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/internal/terminal"
	"github.com/idem-go/idem-aws/localstack/provider"
)

var update = flag.Bool("update", false, "record testdata/terminal.txt, and draw docs/assets/idemctl.svg")

// recorded is a session at a terminal with colours.
type recorded struct {
	*desk
	app  idemctl.App
	text strings.Builder
}

// types runs a command, and records what the terminal shows. log says that stderr goes to a file, as the line says.
func (r *recorded) types(log bool, args ...string) {
	r.Helper()
	line := "$ idemctl"
	for _, arg := range args {
		if strings.Contains(arg, " ") {
			arg = "'" + arg + "'"
		}
		line += " " + arg
	}
	var out, errs strings.Builder
	stderr := &out
	if log {
		line, stderr = line+" 2>>idemctl.log", &errs
	}
	if code := idemctl.Run(r.Context(), r.app, append(args, "--color", "always"), &out, stderr); code != idemctl.ExitOK {
		r.Fatalf("%s exits with %d: %s%s", line, code, &out, &errs)
	}
	fmt.Fprintf(&r.text, "%s\n%s", line, &out)
}

// What differs from run to run.
var (
	volatileAt    = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	volatileClock = regexp.MustCompile(`(\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\dZ \(`) // within an advice: the day is there around midnight
	volatileMade  = regexp.MustCompile(`("created_at": )"[^"]*"`)
	volatileID    = regexp.MustCompile(`(op_[0-9A-Za-z_-]{42}|pay_)[0-9A-Za-z_-]{22}`)
	volatileToken = regexp.MustCompile(`(unknown\.\d+\.|pending\.\d+\.|au_|ch_)[0-9a-z]{16,}\b`)
)

// stable replaces what differs from run to run. Tables are as wide as what stands in them, so tokens are replaced by others of the same
// width.
func stable(text string) string {
	text = volatileClock.ReplaceAllString(text, "12:01:12Z (")
	text = volatileAt.ReplaceAllString(text, "2026-11-23T12:01:12Z")
	text = volatileMade.ReplaceAllString(text, `$1"2026-11-23T12:00:00.000Z"`)
	text = volatileID.ReplaceAllString(text, "${1}bb5YguJXloNDLBv8UlRUrd")
	const digits = "0123456789abcdef"
	return volatileToken.ReplaceAllStringFunc(text, func(token string) string {
		cut := strings.LastIndexAny(token, "._") + 1
		length := len(token) - cut
		return token[:cut] + strings.Repeat(digits, length/len(digits)+1)[:length]
	})
}

// session is what an operator types about a charge whose answer was lost: it is listed, inspected, and settled by what the provider has.
func session(t *testing.T) string {
	t.Helper()
	d := newDesk(t)
	d.faults(provider.Rule{On: provider.LegacyCharge, Fault: provider.DropAfter, Times: 1})
	id := d.pay("order-18", "legacy_ok")
	d.deliver(id.Message(1))
	s := d.inspect(string(id))
	r := &recorded{desk: d, app: app()}
	r.app.Now = func() time.Time { return s.Messages[0].OpenSince.Add(100500 * time.Millisecond) }
	short := shortOf(id.Message(1))
	r.types(false, "list", "unknown")
	r.types(false, "inspect", short)
	resolve := []string{
		"resolve", short, "--seen", string(s.Messages[0].Seen), "--delivered", s.Application.Provider[id.Message(1)][0].ID, "--reason", "ticket 17",
	}
	r.types(false, resolve...)
	r.types(true, append(slices.Clone(resolve), "--write")...)
	return stable(r.text.String())
}

// The picture that docs/operator.md shows is drawn from what idemctl answers on a real endpoint.
func TestTerminalPictureIsWhatIdemctlShows(t *testing.T) {
	docs := filepath.Join("..", "..", "..", "docs")
	record, picture := filepath.Join("testdata", "terminal.txt"), filepath.Join(docs, "assets", "idemctl.svg")
	text := session(t)
	page, err := os.ReadFile(filepath.Join(docs, "operator.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`!\[([^\]]+)\]\(assets/idemctl\.svg\)`).FindSubmatch(page)
	if shown == nil {
		t.Fatal("docs/operator.md does not show the picture")
	}
	drawn, err := terminal.SVG(string(shown[1]), text)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{record: text, picture: string(drawn)} {
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s is not what idemctl shows now (%v); with -update it is written anew. It shows\n%s", path, err, text)
		}
	}
}

// What is replaced in tables is as wide as what was there, and everything else stays.
func TestStableTextHasTheSameWidth(t *testing.T) {
	text := "from 2026-11-21T09:08:37Z on 2026-11-21T23:59:59Z (3 s ago) 09:08:37Z (3 s ago) \x1b[33munknown.1.35e04e177b64e2cd\x1b[0m ch_sgfshhvgmsnzcvcqjcwlrz7ppm op_OgdvUAsKu.1 pay_0123456789012345678901 \"created_at\": \"2026-11-21T09:08:37.12Z\""
	want := "from 2026-11-23T12:01:12Z on 12:01:12Z (3 s ago) 12:01:12Z (3 s ago) \x1b[33munknown.1.0123456789abcdef\x1b[0m ch_0123456789abcdef0123456789 op_OgdvUAsKu.1 pay_bb5YguJXloNDLBv8UlRUrd \"created_at\": \"2026-11-23T12:00:00.000Z\""
	if got := stable(text); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
