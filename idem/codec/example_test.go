package codec_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/idem-go/idem-aws/idem/codec"
)

// The encoding is stored beside the bytes, because Decompress needs it.
func Example() {
	c, err := codec.New(1 << 20)
	if err != nil {
		log.Fatal(err)
	}
	body := bytes.Repeat([]byte(`{"item":"book"}`), 100)
	stored, encoding := c.Compress(body)
	restored, err := c.Decompress(stored, encoding)
	fmt.Println(encoding == codec.Zstd, len(stored) < len(body), bytes.Equal(restored, body), err)
	// Output: true true true <nil>
}
