package codec

import (
	"bytes"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

const bytesMax = 3584 << 10

func codecOf(t *testing.T) *Codec {
	t.Helper()
	c, err := New(bytesMax)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A body is compressed where that saves at least a tenth, and never changes on the way.
func TestCompressionOnlyWhereItPays(t *testing.T) {
	noise := make([]byte, 64<<10)
	rand.Read(noise)
	c := codecOf(t)
	zipped, _ := c.Compress(bytes.Repeat([]byte(`{"amount":500,"currency":"EUR"},`), 4<<10))
	for name, row := range map[string]struct {
		body     []byte
		encoding string
	}{
		"empty":                    {nil, Raw},
		"below the threshold":      {[]byte(strings.Repeat("a", CompressFrom-1)), Raw},
		"at the threshold":         {[]byte(strings.Repeat("a", CompressFrom)), Zstd},
		"JSON":                     {bytes.Repeat([]byte(`{"amount":500,"currency":"EUR"},`), 320), Zstd},
		"noise":                    {noise, Raw},
		"what is compressed":       {append(zipped, noise[:2<<10]...), Raw},
		"a twentieth of a saving":  {append(bytes.Clone(noise[:60<<10]), make([]byte, 3<<10)...), Raw},
		"the largest body, zeroes": {make([]byte, bytesMax), Zstd},
		"the largest body, noise":  {bytes.Repeat(noise, bytesMax/len(noise)), Zstd},
	} {
		stored, encoding := c.Compress(row.body)
		if encoding != row.encoding {
			t.Errorf("%s: the encoding is %q, want %q (%d of %d bytes)", name, encoding, row.encoding, len(stored), len(row.body))
		}
		again, _ := c.Compress(row.body)
		if !bytes.Equal(stored, again) {
			t.Errorf("%s: compressed twice it differs", name)
		}
		back, err := c.Decompress(stored, encoding)
		if err != nil || !bytes.Equal(back, row.body) {
			t.Errorf("%s: it comes back as %d bytes, %v", name, len(back), err)
		}
	}
}

// A few stored bytes must not fill the memory.
func TestADecompressedBodyIsBounded(t *testing.T) {
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	bomb := encoder.EncodeAll(make([]byte, 64<<20), nil)
	if body, err := codecOf(t).Decompress(bomb, Zstd); err == nil {
		t.Errorf("%d bytes became %d", len(bomb), len(body))
	}
	for _, damaged := range [][]byte{{}, []byte("x"), bomb[:len(bomb)/2]} {
		if body, err := codecOf(t).Decompress(damaged, Zstd); err == nil && len(body) > 0 {
			t.Errorf("%d damaged bytes became %d", len(damaged), len(body))
		}
	}
}

func TestNewAndAnUnknownEncodingAreRefused(t *testing.T) {
	if _, err := New(0); err == nil {
		t.Error("a codec without room was made")
	}
	if _, err := codecOf(t).Decompress([]byte("body"), "br"); err == nil {
		t.Error("an unknown encoding was taken")
	}
}
