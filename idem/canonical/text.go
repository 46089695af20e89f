package canonical

import (
	"bytes"
	"cmp"
	"unicode/utf16"
	"unicode/utf8"
)

// surrogateMin is the first surrogate, and the first rune that is none again follows the last.
const (
	surrogateMin   = 0xd800
	surrogateAfter = 0xe000
	// planeSize is how many runes one UTF-16 unit can tell apart.
	planeSize = 0x10000
)

// unescape returns the rune that the escape sequence at the start of src stands for, and the size of the sequence, or of
// both where two are a surrogate pair. Where there is none, it returns the reason.
func unescape(src []byte) (r rune, size int, reason Reason) {
	if len(src) < 2 {
		return 0, 0, ReasonSyntax
	}
	switch c := src[1]; c {
	case '"', '\\', '/':
		return rune(c), 2, ""
	case 'b':
		return '\b', 2, ""
	case 'f':
		return '\f', 2, ""
	case 'n':
		return '\n', 2, ""
	case 'r':
		return '\r', 2, ""
	case 't':
		return '\t', 2, ""
	}
	r, ok := unit(src)
	if !ok {
		return 0, 0, ReasonSyntax
	}
	if r < surrogateMin || r >= surrogateAfter {
		return r, 6, ""
	}
	low, _ := unit(src[6:])
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, 0, ReasonSurrogate
	}
	return r, 12, ""
}

// unit returns the UTF-16 code unit of a sequence of the form \u0041 at the start of src.
func unit(src []byte) (rune, bool) {
	if len(src) < 6 || src[0] != '\\' || src[1] != 'u' {
		return 0, false
	}
	var u rune
	for _, c := range src[2:6] {
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		u = u<<4 | rune(c)
	}
	return u, true
}

// appendEscaped appends a rune of a string in its canonical form (RFC 8785 section 3.2.2.2): it is escaped only where JSON
// asks for it, by its short form if it has one.
func appendEscaped(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	if r < ' ' {
		const hex = "0123456789abcdef"
		return append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&0xf])
	}
	return utf8.AppendRune(dst, r)
}

// nextRune returns the first rune of the inside of a canonical string, and how many bytes it takes.
func nextRune(inside []byte) (rune, int) {
	if inside[0] == '\\' {
		r, size, _ := unescape(inside)
		return r, size
	}
	return utf8.DecodeRune(inside)
}

// unquote returns what a canonical string says.
func unquote(quoted []byte) string {
	inside := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return string(inside)
	}
	var said []byte
	for len(inside) > 0 {
		r, size := nextRune(inside)
		said = utf8.AppendRune(said, r)
		inside = inside[size:]
	}
	return string(said)
}

// compareNames compares what two canonical strings say by their UTF-16 code units (RFC 8785 section 3.2.3).
func compareNames(a, b []byte) int {
	a, b = a[1:len(a)-1], b[1:len(b)-1]
	for len(a) > 0 && len(b) > 0 {
		runeA, sizeA := nextRune(a)
		runeB, sizeB := nextRune(b)
		if runeA != runeB {
			return cmp.Or(cmp.Compare(firstUnit(runeA), firstUnit(runeB)), cmp.Compare(runeA, runeB))
		}
		a, b = a[sizeA:], b[sizeB:]
	}
	return cmp.Compare(len(a), len(b))
}

// firstUnit returns the first UTF-16 code unit of a rune. Runes with the same one compare by their second as by themselves.
func firstUnit(r rune) rune {
	if r < planeSize {
		return r
	}
	high, _ := utf16.EncodeRune(r)
	return high
}
