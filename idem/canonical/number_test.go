package canonical

import (
	"math"
	"math/big"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func TestNumberVectorsRFC8785AppendixB(t *testing.T) {
	vectors := []struct {
		bits uint64
		want string
	}{
		{0x0000000000000000, "0"},
		{0x8000000000000000, "0"},
		{0x0000000000000001, "5e-324"},
		{0x8000000000000001, "-5e-324"},
		{0x7fefffffffffffff, "1.7976931348623157e+308"},
		{0xffefffffffffffff, "-1.7976931348623157e+308"},
		{0x4340000000000000, "9007199254740992"},
		{0xc340000000000000, "-9007199254740992"},
		{0x4430000000000000, "295147905179352830000"},
		{0x44b52d02c7e14af5, "9.999999999999997e+22"},
		{0x44b52d02c7e14af6, "1e+23"},
		{0x44b52d02c7e14af7, "1.0000000000000001e+23"},
		{0x444b1ae4d6e2ef4e, "999999999999999700000"},
		{0x444b1ae4d6e2ef4f, "999999999999999900000"},
		{0x444b1ae4d6e2ef50, "1e+21"},
		{0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
		{0x3eb0c6f7a0b5ed8d, "0.000001"},
		{0x41b3de4355555553, "333333333.3333332"},
		{0x41b3de4355555554, "333333333.33333325"},
		{0x41b3de4355555555, "333333333.3333333"},
		{0x41b3de4355555556, "333333333.3333334"},
		{0x41b3de4355555557, "333333333.33333343"},
		{0xbecbf647612f3696, "-0.0000033333333333333333"},
		{0x43143ff3c1cb0959, "1424953923781206.2"},
	}
	for _, vector := range vectors {
		double := math.Float64frombits(vector.bits)
		for _, literal := range spellings(double) {
			if got := canonicalize(t, literal); got != vector.want {
				t.Errorf("%016x as %s: got %s, want %s", vector.bits, literal, got, vector.want)
			}
		}
	}
}

// spellings returns JSON numbers that serialisers emit for the double: shortest forms, and where a double holds them
// 17 significant digits.
func spellings(double float64) []string {
	forms := []string{
		strconv.FormatFloat(double, 'e', -1, 64),
		strconv.FormatFloat(double, 'E', -1, 64),
		strconv.FormatFloat(double, 'f', -1, 64),
	}
	if magnitude := math.Abs(double); normalMin <= magnitude && magnitude < integersExact {
		forms = append(forms, strconv.FormatFloat(double, 'e', 16, 64))
	}
	return forms
}

func TestEqualNumbers(t *testing.T) {
	classes := []struct {
		clause    string
		spellings []string
		want      string
	}{
		{"one", []string{"1", "1.0", "1e0", "1E+0", "10e-1", "0.1e1", "1.000000000000000000000000"}, "1"},
		{"zero", []string{"0", "-0", "0.0", "-0.0e5", "0e400", "0e99999999999999999999"}, "0"},
		{"2^53", []string{"9007199254740992", "9007199254740992.0", "9.007199254740992e15"}, "9007199254740992"},
		{"2^53+1", []string{"9007199254740993", "9007199254740993.0", "9.007199254740993e15"}, "9007199254740993"},
		{"-2^53-1", []string{"-9007199254740993", "-9.007199254740993E+15"}, "-9007199254740993"},
		{"largest int64", []string{"9223372036854775807", "9223372036854775807.000"}, "9223372036854775807"},
		{"1e21", []string{"1e21", "1000000000000000000000", "1E+21", "10e20", "1000000000000000000000.0"}, "1e+21"},
		{"30 digits", []string{"123456789012345678901234567890", "1.2345678901234567890123456789e29"}, "1.2345678901234567890123456789e+29"},
		{"same double", []string{"0.1", "0.10000000000000001", "1e-1"}, "0.1"},
		{"small", []string{"0.0000001", "1e-7", "100e-9"}, "1e-7"},
		{"exponent with zeros", []string{"1e5", "1e+00000000000000000000000000000005"}, "100000"},
	}
	for _, class := range classes {
		for _, spelling := range class.spellings {
			if got := canonicalize(t, spelling); got != class.want {
				t.Errorf("%s: %s: got %s, want %s", class.clause, spelling, got, class.want)
			}
		}
	}
}

func TestDifferentNumbers(t *testing.T) {
	different := [][]string{
		{"9007199254740991", "9007199254740992", "9007199254740993", "9007199254740994", "9007199254740992.5", "9007199254740991.7"},
		{"9223372036854775807", "9223372036854775808", "9223372036854775806"},
		{"18446744073709551615", "18446744073709551616"},
		{"1000000000000000000000", "1000000000000000000001", "1.000000000000000000002e21"},
		{"1.000000000000000001", "1.000000000000000002", "1"},
		{"1e-400", "2e-400", "0", "1e-401"},
		{"3e-324", "5e-324"},
		{"1.7976931348623157e308", "1.7976931348623158e308"},
		{"1", "-1", "10", "0.1"},
	}
	for _, numbers := range different {
		seen := map[string]string{}
		for _, number := range numbers {
			form := canonicalize(t, number)
			if other, ok := seen[form]; ok {
				t.Errorf("%s and %s are both %s", number, other, form)
			}
			seen[form] = number
		}
	}
}

// A literal whose zeros and exponent cancel out is read for what it is, although strconv alone takes it for zero.
func TestCancellingExponent(t *testing.T) {
	zeros := make([]byte, 200_000)
	for i := range zeros {
		zeros[i] = '0'
	}
	if got := canonicalize(t, "0."+string(zeros)+"12345678901234567e200001"); got != "1.2345678901234567" {
		t.Errorf("got %s", got)
	}
}

func TestNumberProperties(t *testing.T) {
	t.Run("RFC 8785 3.2.2.3: a double's every spelling has the shortest form", rapid.MakeCheck(func(t *rapid.T) {
		double := rapid.Float64().Draw(t, "double")
		want := ecmaScript(double)
		for _, literal := range spellings(double) {
			got, ok := appendCanonicalNumber(nil, []byte(literal))
			if !ok || string(got) != want {
				t.Fatalf("%s: got %s, want %s", literal, got, want)
			}
		}
	}))
	t.Run("two numbers are equal only as doubles of 17 digits, else by value", rapid.MakeCheck(func(t *rapid.T) {
		number := rapid.StringMatching(`-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,24})?([eE][+-]?[0-9]{1,2})?`)
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		if rapid.Bool().Draw(t, "neighbour") {
			b = "9007199254740993"
			a = "900719925474099" + rapid.StringMatching(`[0-9](\.[0-9]{1,3})?`).Draw(t, "tail")
		}
		formA, okA := appendCanonicalNumber(nil, []byte(a))
		formB, okB := appendCanonicalNumber(nil, []byte(b))
		if !okA || !okB {
			t.Fatalf("%s, %s refused", a, b)
		}
		valueA, valueB := value(a), value(b)
		equal := string(formA) == string(formB)
		if valueA.Cmp(valueB) == 0 && !equal {
			t.Fatalf("%s and %s are one number, but %s and %s", a, b, formA, formB)
		}
		doubleA, _ := valueA.Float64()
		doubleB, _ := valueB.Float64()
		if equal && valueA.Cmp(valueB) != 0 && (doubleA != doubleB || math.Abs(doubleA) >= integersExact) {
			t.Fatalf("%s and %s are two numbers, but both %s", a, b, formA)
		}
	}))
}

func value(literal string) *big.Rat {
	rat, ok := new(big.Rat).SetString(literal)
	if !ok {
		panic("not a number: " + literal)
	}
	return rat
}

// ecmaScript is Number::toString by way of strconv, as encoding/json does it.
func ecmaScript(double float64) string {
	if double == 0 {
		return "0"
	}
	if magnitude := math.Abs(double); magnitude >= 1e-6 && magnitude < 1e21 {
		return strconv.FormatFloat(double, 'f', -1, 64)
	}
	form := []byte(strconv.FormatFloat(double, 'e', -1, 64))
	if n := len(form); form[n-3] == '-' && form[n-2] == '0' { // e-09 is e-9
		form = append(form[:n-2], form[n-1])
	}
	return string(form)
}
