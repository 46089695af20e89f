package terminal

import (
	"encoding/xml"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
)

// texts are the texts of a picture, as a reader of XML has them.
func texts(t *testing.T, svg []byte) (all []string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("%v: %s", err, svg)
		}
		if start, ok := token.(xml.StartElement); ok && (start.Name.Local == "text" || start.Name.Local == "title") {
			var text string
			if err := decoder.DecodeElement(&text, &start); err != nil {
				t.Fatal(err)
			}
			all = append(all, text)
		}
	}
}

// What was typed, each colour, and characters that XML gives a meaning are drawn as they are.
func TestASessionIsDrawn(t *testing.T) {
	svg, err := SVG("a <title>", "$ idemctl list\n\x1b[1mWHEN\x1b[0m  <a&b> \x1b[31mdead\x1b[0m.\n\n→ next  to it\n")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(texts(t, svg), "|"), "a <title>|$ idemctl list|WHEN|<a&b>|dead|.|→ next|to it"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, want := range []string{
		`fill="#79c0ff">$ idemctl list<`, `fill="#ffffff" font-weight="bold">WHEN<`, `fill="#ff7b72">dead<`, `fill="#e6edf3">.<`, `<title id="title">`, `role="img"`,
		`<text x="112" y="47"`, // the word dead is in column 12 of the second row
		`<text x="16" y="83"`,  // after an empty row
		`<text x="80" y="83"`,  // after two spaces
	} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("%s is not in\n%s", want, svg)
		}
	}
}

// A line that is wider than the terminal goes on in the next row, in its colour.
func TestALongLineGoesOn(t *testing.T) {
	long := strings.Repeat("ä", Columns)
	svg, err := SVG("t", "\x1b[32m"+long+"bc\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := texts(t, svg); len(got) != 3 || got[1] != long || got[2] != "bc" || strings.Count(string(svg), `fill="#7ee787"`) != 2 {
		t.Errorf("%q:\n%s", got, svg)
	}
}

func TestWhatCanNotBeDrawnIsAnError(t *testing.T) {
	for _, text := range []string{"\x1b[2J", "\x1b[7mx", "a\tb", "\x00", "a\r\n"} {
		if svg, err := SVG("t", text); err == nil {
			t.Errorf("%q is drawn as\n%s", text, svg)
		}
	}
}

// WCAG 2 wants a contrast of 4.5 for text, and of 3 for the frame that parts the paper from a dark page.
func TestColoursCanBeRead(t *testing.T) {
	colours := map[string]float64{prompt: 4.5, frame: 3}
	for _, s := range styles {
		colours[s.colour] = 4.5
	}
	for colour, want := range colours {
		if got := contrast(t, colour, paper); got < want {
			t.Errorf("%s on %s has a contrast of %.1f, want %v", colour, paper, got, want)
		}
	}
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// luminance is WCAG 2's.
func luminance(t *testing.T, colour string) (sum float64) {
	t.Helper()
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
