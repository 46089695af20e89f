package idemtest

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
)

// random is a source of randomness that repeats, for any number of goroutines.
type random struct {
	mu     sync.Mutex
	source *rand.ChaCha8
}

func newRandom(seed uint64) *random {
	var key [32]byte
	binary.BigEndian.PutUint64(key[:], seed)
	return &random{source: rand.NewChaCha8(key)}
}

// Read implements io.Reader; it never fails.
func (r *random) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source.Read(p)
}
