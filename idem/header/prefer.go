package header

import (
	"strings"
	"time"
)

// waitSecondsMax is what a longer wait is read as (RFC 9111 section 1.2.2 has it for delta-seconds too large to hold).
const waitSecondsMax = 1 << 31

// ParseWait returns how long the Prefer header asks the server to wait (RFC 7240 section 4.3), and whether it does. The
// first wait counts (section 2); where that one is malformed there is none. Other preferences and all parameters are
// ignored. The caller bounds the result.
func ParseWait(lines []string) (time.Duration, bool) {
	for _, line := range lines {
		for rest := line; rest != ""; {
			var preference string
			preference, rest = cutUnquoted(rest, ',')
			preference, _ = cutUnquoted(preference, ';')
			name, value, _ := strings.Cut(preference, "=")
			if strings.EqualFold(strings.Trim(name, " \t"), "wait") {
				return parseSeconds(strings.Trim(value, " \t"))
			}
		}
	}
	return 0, false
}

// cutUnquoted cuts s around the first separator outside of quoted strings (RFC 9110 section 5.6.4).
func cutUnquoted(s string, separator byte) (before, after string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == separator && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// parseSeconds reads delta-seconds, quoted or not.
func parseSeconds(value string) (time.Duration, bool) {
	if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
		value = value[1 : len(value)-1]
	}
	if value == "" {
		return 0, false
	}
	seconds := 0
	for i := range len(value) {
		if value[i] < '0' || value[i] > '9' {
			return 0, false
		}
		seconds = min(seconds*10+int(value[i]-'0'), waitSecondsMax)
	}
	return time.Duration(seconds) * time.Second, true
}
