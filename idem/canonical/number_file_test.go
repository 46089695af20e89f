package canonical

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math"
	"strconv"
	"strings"
	"testing"
)

// publishedNumberFile says which SHA-256 the first lines of the official number file have.
var publishedNumberFile = map[int]string{
	1_000:     "be18b62b6f69cdab33a7e0dae0d9cfa869fda80ddc712221570f9f40a5878687",
	10_000:    "b9f7a8e75ef22a835685a52ccba7f7d6bdc99e34b010992cbc5864cd12be6892",
	100_000:   "22776e6d4b49fa294a0d0f349268e5c28808fe7e0cb2bcbe28f63894e494d4c7",
	1_000_000: "49415fee2c56c77864931bd3624faad425c3c577d6d74e89a83bc725506dad16",
}

// officialDoubles yields the doubles of the number file: those of numbers.txt, 2,000 from the smallest normal one up, then
// whatever finite doubles, zero excepted, a chain of SHA-256 has in it.
type officialDoubles struct {
	fixed  []string
	serial uint64
	block  [sha256.Size]byte
	unread []byte
}

func (d *officialDoubles) next(t *testing.T) float64 {
	if len(d.fixed) > 0 {
		bits, err := strconv.ParseUint(d.fixed[0], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		d.fixed = d.fixed[1:]
		return math.Float64frombits(bits)
	}
	if d.serial < 2000 {
		d.serial++
		return math.Float64frombits(math.Float64bits(normalMin) + d.serial - 1)
	}
	for {
		if len(d.unread) == 0 {
			d.block = sha256.Sum256(d.block[:])
			d.unread = d.block[:]
		}
		double := math.Float64frombits(binary.LittleEndian.Uint64(d.unread))
		if d.unread = d.unread[8:]; double != 0 && !math.IsNaN(double) && !math.IsInf(double, 0) {
			return double
		}
	}
}

// The official number file has one line a double: its bits and its form under RFC 8785 section 3.2.2.3. Here each double
// comes in one of the spellings that serialisers use.
func TestOfficialNumberFileRFC8785(t *testing.T) {
	doubles := officialDoubles{fixed: strings.Fields(readFile(t, "testdata/rfc8785/numbers.txt"))}
	file := sha256.New()
	var spelling, line []byte
	for n := 1; n <= 1_000_000; n++ {
		double := doubles.next(t)
		spelling = strconv.AppendFloat(spelling[:0], double, "eEf"[n%3], -1, 64)
		form, err := canonicalJSON(spelling, DepthMaxDefault)
		if err != nil {
			t.Fatalf("line %d: %s: %v", n, spelling, err)
		}
		line = append(strconv.AppendUint(line[:0], math.Float64bits(double), 16), ',')
		line = append(append(line, form...), '\n')
		file.Write(line)
		if want := publishedNumberFile[n]; want != "" && want != sumOfLines(file) {
			t.Fatalf("%d lines have the SHA-256 %s, want %s", n, sumOfLines(file), want)
		}
	}
}

func sumOfLines(h hash.Hash) string { return fmt.Sprintf("%x", h.Sum(nil)) }
