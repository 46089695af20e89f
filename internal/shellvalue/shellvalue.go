// Package shellvalue writes values into files of lines NAME=value that a shell can read, and reads them back: the local stack's
// .local/run.env, and what idemctl --env-file reads.
package shellvalue

import (
	"regexp"
	"strings"
)

// plain are values that mean themselves to a shell.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:%@+,=-]*$`)

// Quote is what stands for a value behind NAME=. Most values mean themselves to a shell, and stay as they are: other programs read such
// files too, and not all of them know quotes. Any other one is in single quotes.
func Quote(value string) string {
	if plain.MatchString(value) {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

// Unquote is the value that stands behind NAME=. What is not a whole text in single quotes, as Quote writes it, is the value itself.
func Unquote(text string) string {
	inner, opened := strings.CutPrefix(text, "'")
	inner, closed := strings.CutSuffix(inner, "'")
	if !opened || !closed || strings.Contains(strings.ReplaceAll(inner, `'\''`, ""), "'") {
		return text
	}
	return strings.ReplaceAll(inner, `'\''`, "'")
}
