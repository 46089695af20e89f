package dynamo

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// The encodings of a stored body: the values of the attribute; the raw bytes have none.
const (
	encodingRaw  = ""
	encodingZstd = "z"
)

// compressFrom is the size from which a body is worth trying: a smaller one and the record around it, of 300 to 500
// bytes, are billed as one unit anyway.
const compressFrom = 512

// keepCompressed says whether compression pays: a replay pays for decompressing with time, so it should save a tenth.
// What is compressed already never passes.
func keepCompressed(compressed, raw int) bool { return compressed <= raw-raw/10 }

// codec compresses bodies. It is shared by all calls: building its tables costs more than using them.
type codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

func newCodec() (codec, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return codec{}, fmt.Errorf("dynamo: zstd encoder: %w", err)
	}
	// The bound keeps a damaged or hostile item from filling the memory.
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(responseBytesBound), zstd.WithDecoderLowmem(true))
	if err != nil {
		return codec{}, fmt.Errorf("dynamo: zstd decoder: %w", err)
	}
	return codec{encoder, decoder}, nil
}

// compress returns the bytes to store and their encoding.
func (c codec) compress(body []byte) (stored []byte, encoding string) {
	if len(body) < compressFrom {
		return body, encodingRaw
	}
	compressed := c.encoder.EncodeAll(body, nil)
	if !keepCompressed(len(compressed), len(body)) {
		return body, encodingRaw
	}
	return compressed, encodingZstd
}

// decompress undoes compress. It never returns more than responseBytesBound bytes of compressed data.
func (c codec) decompress(stored []byte, encoding string) ([]byte, error) {
	switch encoding {
	case encodingRaw:
		return stored, nil
	case encodingZstd:
		body, err := c.decoder.DecodeAll(stored, nil)
		if err != nil {
			return nil, fmt.Errorf("decompress a body: %w", err)
		}
		return body, nil
	}
	return nil, fmt.Errorf("a body has the unknown encoding %q", encoding)
}
