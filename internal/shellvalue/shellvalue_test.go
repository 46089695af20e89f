package shellvalue_test

import (
	"os/exec"
	"testing"

	"github.com/idem-go/idem-aws/internal/shellvalue"
)

// A shell has every value as it was, and so has a program that reads it back. What means itself to a shell is not changed.
func TestAShellHasTheValue(t *testing.T) {
	for value, want := range map[string]string{
		"": "", "8": "8", "http://127.0.0.1:4566/x/%24default": "http://127.0.0.1:4566/x/%24default", "a=b": "a=b",
		"arn:aws:kms:eu-west-1:1:key/a-b_c+d,e@f": "arn:aws:kms:eu-west-1:1:key/a-b_c+d,e@f",
		"/home/a b/c":      "'/home/a b/c'",
		"it's":             `'it'\''s'`,
		"'":                `''\'''`,
		"''":               `''\'''\'''`,
		`'\''`:             `''\''\'\'''\'''`,
		"$HOME `id` \\ \"": "'$HOME `id` \\ \"'",
		"http://a/?b=c&d":  "'http://a/?b=c&d'",
		"~":                "'~'",
		"# no comment":     "'# no comment'",
		"Ω":                "'Ω'",
	} {
		text := shellvalue.Quote(value)
		if text != want || shellvalue.Unquote(text) != value {
			t.Errorf("%q is %q, and read back %q, want %q", value, text, shellvalue.Unquote(text), want)
		}
		said, err := exec.CommandContext(t.Context(), "sh", "-eu", "-c", "VALUE="+text+"\nprintf %s \"$VALUE\"").Output()
		if err != nil || string(said) != value {
			t.Errorf("%q is %q in a shell: %v", value, said, err)
		}
	}
}

// What was written by hand and is not in single quotes as a whole is the value.
func TestOtherTextsAreTheValue(t *testing.T) {
	for _, text := range []string{"'", "'a", "a'", `"a b"`, "a b", "'a'b'c'", "'a' 'b'", "http://127.0.0.1/q?a=b"} {
		if got := shellvalue.Unquote(text); got != text {
			t.Errorf("%s is %q", text, got)
		}
	}
}
