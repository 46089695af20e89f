package canonical

import (
	"bytes"
	"math"
	"strconv"
)

const (
	// digitsAlwaysHeld is how many significant digits every double holds: such a number is its own shortest form.
	digitsAlwaysHeld = 15
	// digitsMax is how many significant digits the shortest form of a double can have.
	digitsMax = 17
	// pointMax is the decimal point up to which no number overflows a double.
	pointMax = 308
	// integersExact is 2^53: from there on neighbouring integers share a double.
	integersExact = 1 << 53
	// normalMin is 2^-1022: below it a double holds fewer digits.
	normalMin = 0x1p-1022
	// plainDigitsMax is how many digits before the point ECMAScript writes without an exponent.
	plainDigitsMax = 21
	// plainPointMin is the smallest decimal point that ECMAScript writes without an exponent: 0.000001.
	plainPointMin = -5
)

// isCanonicalInteger says whether a JSON integer is its own canonical form: short enough to be written without an
// exponent, and not "-0".
func isCanonicalInteger(literal []byte) bool {
	return len(literal) <= plainDigitsMax && string(literal) != "-0"
}

// appendCanonicalNumber appends the canonical form of a JSON number, in the layout of RFC 8785 section 3.2.2.3. It
// returns false for a number beyond a double: RFC 8785 has none, and clamping would make it equal to another.
//
// RFC 8785 rounds every number to a double first, so numbers that differ only in digits beyond a double are equal. Two
// requests that differ in such digits are different requests. Therefore only a number of 16 or 17 significant digits is
// rounded, where its magnitude is below 2^53 and not subnormal; there serialisers disagree on the last digits of one
// double. Any other number keeps all of its digits, which up to 15 are RFC 8785's form anyway, and beyond 17 or from 2^53
// on are more than it keeps. So 1, 1.0 and 1e0 are equal, 1e21 and 1000000000000000000000 are, and so are 9007199254740993,
// 9007199254740993.0 and 9.007199254740993e15, but none of those three equals 9007199254740992. Negative zero is zero.
func appendCanonicalNumber(dst, literal []byte) ([]byte, bool) {
	var buffer [32]byte
	number, ok := parseDecimal(buffer[:0], literal)
	if !ok {
		return dst, false
	}
	if len(number.digits) == 0 {
		return append(dst, '0'), true
	}
	rounded := len(number.digits) > digitsAlwaysHeld && len(number.digits) <= digitsMax
	if !rounded && number.point <= pointMax {
		return number.append(dst), true
	}
	// The layout, not the literal: strconv misreads a literal with more than 10,000 zeros and an exponent that undoes them.
	double, err := strconv.ParseFloat(string(number.append(nil)), 64)
	if err != nil {
		return dst, false
	}
	if magnitude := math.Abs(double); rounded && normalMin <= magnitude && magnitude < integersExact {
		var shortest [32]byte
		number, _ = parseDecimal(buffer[:0], strconv.AppendFloat(shortest[:0], double, 'e', -1, 64))
	}
	return number.append(dst), true
}

// decimal is the exact value of a number: ±0.digits × 10^point.
type decimal struct {
	negative bool
	// digits begins and ends with a digit other than '0'; it is empty for zero.
	digits []byte
	point  int
}

// parseDecimal reads a JSON number. It returns false where the exponent alone puts a number that is not zero far beyond
// any double. The digits are appended to buffer.
func parseDecimal(buffer, literal []byte) (decimal, bool) {
	number := decimal{negative: literal[0] == '-'}
	mantissa := bytes.TrimPrefix(literal, []byte("-"))
	var exponent []byte
	if i := bytes.IndexAny(mantissa, "eE"); i >= 0 {
		mantissa, exponent = mantissa[:i], mantissa[i+1:]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	digits := append(append(buffer, whole...), fraction...)
	significant := bytes.TrimLeft(digits, "0")
	number.point = len(whole) - (len(digits) - len(significant))
	number.digits = bytes.TrimRight(significant, "0")
	if len(number.digits) == 0 {
		return decimal{}, true
	}
	if len(exponent) > 0 {
		shift, err := strconv.ParseInt(string(exponent), 10, 32)
		if err != nil {
			return decimal{}, false
		}
		number.point += int(shift)
	}
	return number, true
}

// append writes the number as ECMAScript's Number::toString lays out digits (ECMA-262 section 6.1.6.1.20).
func (d decimal) append(dst []byte) []byte {
	if d.negative {
		dst = append(dst, '-')
	}
	switch {
	case len(d.digits) <= d.point && d.point <= plainDigitsMax:
		return appendZeros(append(dst, d.digits...), d.point-len(d.digits))
	case 0 < d.point && d.point <= plainDigitsMax:
		dst = append(append(dst, d.digits[:d.point]...), '.')
		return append(dst, d.digits[d.point:]...)
	case plainPointMin <= d.point && d.point <= 0:
		dst = appendZeros(append(dst, "0."...), -d.point)
		return append(dst, d.digits...)
	}
	dst = append(dst, d.digits[0])
	if len(d.digits) > 1 {
		dst = append(append(dst, '.'), d.digits[1:]...)
	}
	dst = append(dst, 'e')
	exponent := d.point - 1
	if exponent > 0 {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, int64(exponent), 10)
}

func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
