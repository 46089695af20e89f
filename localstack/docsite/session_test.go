package docsite

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// Every session of the documents that needs no stack runs as a reader would run it.
func TestDocumentsHaveCommandsThatWork(t *testing.T) {
	t.Parallel()
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, d := range documents(t, root) {
		if !checkedFolder(d.Name) {
			continue
		}
		sessions, err := d.Sessions()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sessions {
			if slices.Contains(slices.Concat(OnStack, Alone, ofStandIn), s.Name) {
				continue
			}
			ran++
			t.Run(d.Name+" "+s.Name, func(t *testing.T) {
				in := func() Shell {
					address, file, home := freeAddress(t), filepath.Join(t.TempDir(), "dynamodb.env"), t.TempDir()
					return Shell{
						Directory: root, Environment: []string{"LISTEN=" + address, "DYNAMODB_ENV=" + file},
						Replace: strings.NewReplacer("127.0.0.1:8080", address, "127.0.0.1:4580", address, ".local/dynamodb.env", file, "../shop", filepath.Join(t.TempDir(), "shop"),
							"~/", home+"/"), // what a reader puts into their home
					}
				}
				if err := runPatiently(t.Context(), s, in); err != nil {
					t.Error(err)
				}
			})
		}
	}
	if ran < 16 {
		t.Errorf("%d sessions ran", ran)
	}
}

// runPatiently runs a session in a shell of its own. It runs it from its start again, up to twice, where a program says that its store did not
// answer: an emulator that stands still for two seconds is no fault of the document's.
func runPatiently(ctx context.Context, s *Session, in func() Shell) (err error) {
	for range 3 {
		if err = s.Run(ctx, in()); err == nil || !strings.Contains(err.Error(), "idempotency_store_unavailable") {
			break
		}
	}
	return err
}

func TestASessionIsRunAgainOnlyWhereAStoreDidNotAnswer(t *testing.T) {
	t.Parallel()
	const text = "<!-- run: s -->\n```sh\necho SAID\n```\n<!-- output: s -->\n```text\nfine\n```\n"
	const unavailable = "idempotency_store_unavailable"
	for name, c := range map[string]struct {
		said []string // by each run that there may be
		well bool
	}{
		"it is as shown":                   {[]string{"fine"}, true},
		"a store does not answer at first": {[]string{unavailable, "fine"}, true},
		"a store never answers":            {[]string{unavailable, unavailable, unavailable}, false},
		"something else is not as shown":   {[]string{"idempotency_no_time"}, false},
	} {
		sessions, err := Document{"a.md", text}.Sessions()
		if err != nil {
			t.Fatal(err)
		}
		runs := 0
		err = runPatiently(t.Context(), sessions[0], func() Shell {
			runs++
			return Shell{Directory: t.TempDir(), Replace: strings.NewReplacer("SAID", c.said[min(runs, len(c.said))-1])}
		})
		if runs != len(c.said) || (err == nil) != c.well {
			t.Errorf("%s: %d runs, %v", name, runs, err)
		}
	}
}

// usedBy matches the reason of a block of commands that have a module use the checkout: the package that they are for.
var usedBy = regexp.MustCompile(`TestAModuleOfYourOwnUsesTheCheckout runs them, for (\S+)$`)

// What the pages have a reader put into the go.mod of their own module makes a build of it, and no line is too much.
func TestAModuleOfYourOwnUsesTheCheckout(t *testing.T) {
	t.Parallel()
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	commands := map[string]string{}
	for _, d := range documents(t, root) {
		if !checkedFolder(d.Name) {
			continue
		}
		blocks, err := d.Blocks()
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			if used := usedBy.FindStringSubmatch(b.Argument); used != nil {
				commands[used[1]] += b.Text
			}
		}
	}
	if len(commands) != 3 {
		t.Fatalf("commands for %d packages: %q", len(commands), commands)
	}
	for used, script := range commands {
		t.Run(used, func(t *testing.T) {
			t.Parallel()
			if said, err := buildWith(t, root, used, script); err != nil {
				t.Errorf("%v\n%s", err, said)
			}
			for line := range strings.Lines(script) {
				if !strings.Contains(line, "-replace") {
					continue
				}
				if _, err := buildWith(t, root, used, strings.ReplaceAll(script, line, "")); err == nil {
					t.Errorf("it builds without %s", line)
				}
			}
		})
	}
}

// buildWith builds a package that imports one of the checkout's in a module of its own, whose go.mod the script has written.
// Nothing is downloaded.
func buildWith(t *testing.T, root, used, script string) (said []byte, err error) {
	t.Helper()
	above := t.TempDir()
	own := filepath.Join(above, "my-shop")
	if !strings.Contains(script, "mkdir ../my-shop") {
		script = "mkdir ../my-shop\ncd ../my-shop\ngo mod init example.com/my-shop\n" + script
	}
	if err := os.Mkdir(filepath.Join(above, "idem-aws"), 0o755); err != nil { // where the reader's checkout is
		t.Fatal(err)
	}
	script = strings.ReplaceAll(script, "=../idem-aws", "="+root)
	program := "package shop\n\nimport _ \"github.com/idem-go/idem-aws/" + used + "\"\n"
	script = "cd idem-aws\n" + script + "cd " + own + "\nprintf '%s' \"$PROGRAM\" > shop.go\ngo mod tidy\ngo build .\n"
	command := exec.CommandContext(t.Context(), "bash", "-euc", script)
	command.Dir = above
	command.Env = append(os.Environ(), "PROGRAM="+program, "GOWORK=off", "GOFLAGS=", "GOPROXY=off", "GOSUMDB=off")
	return command.CombinedOutput()
}

// freeAddress is an address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestSessionDefectsAreFound(t *testing.T) {
	t.Parallel()
	const commands, output = "<!-- run: s -->\n```sh\n", "<!-- output: s -->\n```text\n"
	const behind = "<!-- run: s, in another terminal -->\n```sh\n"
	cases := map[string]struct{ text, want string }{
		"what is printed":            {commands + "echo one; echo two\n```\n" + output + "one\ntwo\n```", ""},
		"parts of lines":             {commands + "echo one two three\n```\n" + output + "one … three\n```", ""},
		"lines left out":             {commands + "seq 9\n```\n" + output + "1\n…\n9\n```", ""},
		"variables of before":        {commands + "x=7\n```\n" + commands + "echo $x\n```\n" + output + "7\n```", ""},
		"what has a placeholder":     {commands + "echo PLACE\n```\n" + output + "PLACE\n```", ""},
		"commands that go on":        {behind + "echo ready >ready; echo ready; sleep 600\n```\n" + output + "ready\n```\n" + commands + "cat ready\n```", ""},
		"commands that fail":         {commands + "echo one\nfalse\n```", "a.md:2: the commands failed: exit status 1\none"},
		"that fail in a pipe":        {commands + "false | true\n```", "a.md:2: the commands failed"},
		"the second ones fail":       {commands + "true\n```\n" + commands + "false\n```", "a.md:6: the commands failed"},
		"a variable that is not set": {commands + "echo $none\n```", "a.md:2: the commands failed"},
		"something else is printed":  {commands + "echo one\n```\n" + output + "two\n```", "a.md:6: the commands did not print \"two\", but\none"},
		"a line in between":          {commands + "seq 3\n```\n" + output + "1\n3\n```", "a.md:6: the commands did not print \"3\""},
		"in another order":           {commands + "seq 3\n```\n" + output + "3\n…\n1\n```", "a.md:6: the commands did not print \"1\""},
		"a part of a line":           {commands + "echo one\n```\n" + output + "on\n```", "a.md:6: the commands did not print \"on\""},
		"they end at once":           {behind + "echo oh\n```\n" + output + "ready\n```", "a.md:6: the commands did not print \"ready\", but\noh"},
		"output of nothing":          {output + "one\n```", "a.md:2: output of commands that nobody runs"},
		"output twice":               {commands + "echo one\n```\n" + output + "one\n```\n" + output + "one\n```", "a.md:10: a second output of the same commands"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sessions, err := Document{"a.md", c.text}.Sessions()
			for _, s := range sessions {
				err = s.Run(t.Context(), Shell{Directory: t.TempDir(), Replace: strings.NewReplacer("PLACE", "here")})
			}
			if c.want == "" && (err != nil || len(sessions) != 1) || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
