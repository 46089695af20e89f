// Package codec compresses bodies with zstd before they are stored. Package dynamo uses it for the responses and
// payloads that it stores, and package seal for what it encrypts, because encrypted bytes cannot be compressed
// afterwards.
//
// Applications do not need this package. An author of a store can use it, so that stored bodies cost less; bodies
// that would not become smaller are stored as they are. The encoding is stored beside each body, and
// [Codec.Decompress] needs it.
package codec

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// The encodings of a body, as they stand beside it; the raw bytes have none.
const (
	Raw  = ""
	Zstd = "z"
)

// CompressFrom is the size from which a body is worth trying: a smaller one and the record around it, of 300 to 500
// bytes, are billed as one unit anyway.
const CompressFrom = 512

// pays says whether compression does: a replay pays for decompressing with time, so it should save a tenth. What is
// compressed already never passes.
func pays(compressed, raw int) bool { return compressed <= raw-raw/10 }

// Codec compresses bodies. It is shared by all calls, because building its tables costs more than using them, and is safe
// for concurrent use.
type Codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// New returns a codec that decompresses to at most bytesMax bytes, so that a damaged or hostile item can't fill the memory.
// It returns zstd's error for a bound that it does not take.
func New(bytesMax int) (*Codec, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("codec: zstd encoder: %w", err)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(uint64(max(bytesMax, 0))), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("codec: zstd decoder: %w", err)
	}
	return &Codec{encoder, decoder}, nil
}

// Compress returns the bytes to store and their encoding. What it returns raw is the body itself.
func (c *Codec) Compress(body []byte) (stored []byte, encoding string) {
	if len(body) < CompressFrom {
		return body, Raw
	}
	compressed := c.encoder.EncodeAll(body, nil)
	if !pays(len(compressed), len(body)) {
		return body, Raw
	}
	return compressed, Zstd
}

// Decompress undoes Compress. It returns an error for an unknown encoding, and for what is damaged or would exceed the
// bound; raw bytes are returned as they are.
func (c *Codec) Decompress(stored []byte, encoding string) ([]byte, error) {
	switch encoding {
	case Raw:
		return stored, nil
	case Zstd:
		body, err := c.decoder.DecodeAll(stored, nil)
		if err != nil {
			return nil, fmt.Errorf("codec: decompress: %w", err)
		}
		return body, nil
	}
	return nil, fmt.Errorf("codec: unknown encoding %q", encoding)
}
