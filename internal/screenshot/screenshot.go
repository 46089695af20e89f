// Package screenshot makes pictures of pages small enough to be committed.
package screenshot

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"slices"
)

// colours are as many as a picture with a palette has.
const colours = 256

// Small is the PNG with a palette of its most frequent colours: a page has few, and shades at the edges of its letters, of which the
// rare ones become the nearest that is kept.
func Small(full []byte) ([]byte, error) {
	decoded, err := png.Decode(bytes.NewReader(full))
	if err != nil {
		return nil, fmt.Errorf("screenshot: %w", err)
	}
	bounds := decoded.Bounds()
	seen := map[color.RGBA]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			seen[at(decoded, x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(seen), func(a, b color.RGBA) int {
		return cmp.Or(seen[b]-seen[a], cmp.Compare(number(a), number(b)))
	})
	palette := color.Palette{}
	for _, c := range frequent[:min(colours, len(frequent))] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	small := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := at(decoded, x, y)
			index, known := nearest[c]
			if !known {
				index = uint8(palette.Index(c))
				nearest[c] = index
			}
			small.SetColorIndex(x, y, index)
		}
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, small); err != nil {
		return nil, fmt.Errorf("screenshot: %w", err)
	}
	return out.Bytes(), nil
}

func at(from image.Image, x, y int) color.RGBA {
	r, g, b, a := from.At(x, y).RGBA() // of 16 bits
	return color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), uint8(a >> 8)}
}

func number(c color.RGBA) int { return int(c.R)<<16 | int(c.G)<<8 | int(c.B) }
