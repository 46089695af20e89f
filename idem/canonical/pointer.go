package canonical

import (
	"strings"
	"unicode/utf8"
)

// tokenEscapes are the escape sequences of JSON pointers (RFC 6901 section 3).
var tokenEscapes = strings.NewReplacer("~0", "~", "~1", "/")

// PointerTokens returns the unescaped reference tokens of a JSON pointer (RFC 6901): those of "/a~1b/0" are "a/b" and "0".
// The empty pointer, which names the whole document, has none. It returns false for what is not a pointer.
func PointerTokens(pointer string) ([]string, bool) {
	if pointer == "" {
		return nil, true
	}
	if pointer[0] != '/' || !utf8.ValidString(pointer) {
		return nil, false
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, token := range tokens {
		// Without the sequences that there are, no tilde is left.
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(token), "~") {
			return nil, false
		}
		tokens[i] = tokenEscapes.Replace(token)
	}
	return tokens, true
}
