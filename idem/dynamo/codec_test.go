package dynamo

import (
	"bytes"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// A body is compressed where that saves at least a tenth, and never changes on the way.
func TestCompressionOnlyWhereItPays(t *testing.T) {
	noise := make([]byte, 64<<10)
	rand.Read(noise)
	c := offline(t).codec
	zipped, _ := c.compress(bytes.Repeat([]byte(`{"amount":500,"currency":"EUR"},`), 4<<10))
	for name, row := range map[string]struct {
		body     []byte
		encoding string
	}{
		"empty":                    {nil, encodingRaw},
		"below the threshold":      {[]byte(strings.Repeat("a", compressFrom-1)), encodingRaw},
		"at the threshold":         {[]byte(strings.Repeat("a", compressFrom)), encodingZstd},
		"JSON":                     {bytes.Repeat([]byte(`{"amount":500,"currency":"EUR"},`), 320), encodingZstd},
		"noise":                    {noise, encodingRaw},
		"what is compressed":       {append(zipped, noise[:2<<10]...), encodingRaw},
		"a twentieth of a saving":  {append(bytes.Clone(noise[:60<<10]), make([]byte, 3<<10)...), encodingRaw},
		"the largest body, zeroes": {make([]byte, responseBytesBound), encodingZstd},
		"the largest body, noise":  {bytes.Repeat(noise, responseBytesBound/len(noise)), encodingZstd},
	} {
		stored, encoding := c.compress(row.body)
		if encoding != row.encoding {
			t.Errorf("%s: the encoding is %q, want %q (%d of %d bytes)", name, encoding, row.encoding, len(stored), len(row.body))
		}
		again, _ := c.compress(row.body)
		if !bytes.Equal(stored, again) {
			t.Errorf("%s: compressed twice it differs", name)
		}
		back, err := c.decompress(stored, encoding)
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
	if body, err := offline(t).codec.decompress(bomb, encodingZstd); err == nil {
		t.Errorf("%d bytes became %d", len(bomb), len(body))
	}
	for _, damaged := range [][]byte{{}, []byte("x"), bomb[:len(bomb)/2]} {
		if body, err := offline(t).codec.decompress(damaged, encodingZstd); err == nil && len(body) > 0 {
			t.Errorf("%d damaged bytes became %d", len(damaged), len(body))
		}
	}
}
