package outbox

import (
	"encoding/binary"
	"io"
	"time"
)

// backoff draws the pause after the n-th attempt, n from 1: full jitter over [least, min(most, least·2ⁿ)].
func backoff(n int, least, most time.Duration, random uint64) time.Duration {
	return between(least, doubled(least, most, n), random)
}

// doubled doubles d n times, up to most, without overflow.
func doubled(d, most time.Duration, n int) time.Duration {
	for ; n > 0 && d < most; n-- {
		if d > most/2 {
			return most
		}
		d *= 2
	}
	return min(d, most)
}

// between maps a random number onto [low, high].
func between(low, high time.Duration, random uint64) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(random%uint64(high-low+1))
}

// random draws 64 bits for jitter. If reading randomness fails, it returns 0: no jitter. Owners, which need randomness, have their
// own error.
func (d *desk) random() uint64 {
	var raw [8]byte
	if _, err := io.ReadFull(d.cfg.Random, raw[:]); err != nil {
		return 0
	}
	return binary.BigEndian.Uint64(raw[:])
}
