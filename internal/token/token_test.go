package token_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/token"
)

func TestANewKeyIsWellFormedAndNoOther(t *testing.T) {
	scanned := regexp.MustCompile(`\bidem_(live|test)_[0-9A-Za-z]{49}\b`)
	seen := map[string]bool{}
	for _, prefix := range []string{token.Live, token.Test} {
		for range 100 {
			key := token.New(prefix)
			if !token.WellFormed(key) || !strings.HasPrefix(key, prefix) || scanned.FindString("key="+key+";") != key {
				t.Fatalf("%s is not in the form that scanners look for", key)
			}
			if id := token.ID(key); !token.IsID(id) || seen[id] {
				t.Fatalf("%s has the id %s", key, id)
			}
			seen[token.ID(key)] = true
		}
	}
}

func TestWhatIsNoKey(t *testing.T) {
	key := token.New(token.Live)
	other := byte('0')
	if key[20] == other {
		other = '1'
	}
	for name, text := range map[string]string{
		"nothing": "", "the prefix": token.Live, "an id": token.ID(key), "a space after": key + " ", "a line after": key + "\n",
		"a character more": key + "0", "a character less": key[:len(key)-1], "another character": key[:20] + string(other) + key[21:],
		"the other prefix": token.Test + strings.TrimPrefix(key, token.Live), "another script": key[:len(key)-2] + "é",
	} {
		if token.WellFormed(text) {
			t.Errorf("%s, %q, passes for a key", name, text)
		}
	}
	for _, text := range []string{"", key, strings.ToUpper(token.ID(key)), token.ID(key) + "0"} {
		if token.IsID(text) {
			t.Errorf("%q passes for an id", text)
		}
	}
}

// Keys are out there, and rows: neither the form nor the id may change.
func TestFormStays(t *testing.T) {
	const key = "idem_test_00000000000000000000000000000EXAMPLEtenantA1hN7E2"
	const id = "key_9e67230ea8a0c8d8fd684d704e06fa1bd77485a8f0aab47074f709b75f9bf0c8"
	if !token.WellFormed(key) || token.ID(key) != id {
		t.Errorf("%v, %s; want %s", token.WellFormed(key), token.ID(key), id)
	}
}
