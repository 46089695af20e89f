package screenshot_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"testing"

	"github.com/idem-go/idem-aws/internal/screenshot"
)

// A picture of few colours stays what it is; of many, the frequent ones stay, and the others come near.
func TestSmall(t *testing.T) {
	for name, shades := range map[string]int{"few": 100, "many": 2000} {
		t.Run(name, func(t *testing.T) {
			page := image.NewRGBA(image.Rect(0, 0, 200, 100))
			for i := range 200 * 100 {
				page.SetRGBA(i%200, i/200, color.RGBA{255, 255, 255, 255})
				if i < shades {
					page.SetRGBA(i%200, i/200, color.RGBA{uint8(i), uint8(i / 8), 0, 255})
				}
			}
			var full bytes.Buffer
			if err := png.Encode(&full, page); err != nil {
				t.Fatal(err)
			}
			small, err := screenshot.Small(full.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			got, err := png.Decode(bytes.NewReader(small))
			if err != nil || got.Bounds() != page.Bounds() {
				t.Fatalf("%v, %v", got, err)
			}
			if paper := color.RGBAModel.Convert(got.At(199, 99)); paper != (color.RGBA{255, 255, 255, 255}) {
				t.Errorf("the paper is %v", paper)
			}
			for x := range min(shades, 200) {
				if want := page.RGBAAt(x, 0); shades < 200 && color.RGBAModel.Convert(got.At(x, 0)) != want {
					t.Errorf("at %d %v, want %v", x, got.At(x, 0), want)
				}
			}
		})
	}
	if _, err := screenshot.Small([]byte("no picture")); err == nil {
		t.Error("what is no picture is taken for one")
	}
}
