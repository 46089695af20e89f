package client

import (
	"encoding/binary"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem/header"
)

// backoff draws the pause after the n-th attempt, n from 1: full jitter over [0, min(most, base·2ⁿ⁻¹)].
func backoff(n int, base, most time.Duration, random uint64) time.Duration {
	ceiling := base
	for ; n > 1 && ceiling < most; n-- {
		if ceiling > most/2 {
			ceiling = most
			break
		}
		ceiling *= 2
	}
	return time.Duration(random % uint64(min(ceiling, most)+1))
}

// retryAfterMax is what a longer Retry-After is read as, so that it can't overflow (RFC 9111 section 1.2.2).
const retryAfterMax = (1 << 31) * time.Second

// retryAfter reads Retry-After, seconds or an HTTP date (RFC 9110 section 10.2.3). It is 0 where the header is absent,
// malformed, or no longer ahead, and the longest one where servers behind one another have each told.
func retryAfter(h http.Header, now time.Time) time.Duration {
	longest := time.Duration(0)
	pieces := values(h, header.NameRetryAfter)
	for i, piece := range pieces {
		longest = max(longest, wait(piece, now))
		if i > 0 { // a date has a comma itself
			longest = max(longest, wait(pieces[i-1]+", "+piece, now))
		}
	}
	return longest
}

// wait reads one value of Retry-After.
func wait(value string, now time.Time) time.Duration {
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 32)
		if err != nil {
			return retryAfterMax // digits only: it is too large
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), retryAfterMax)
}

// retryBudget says when to ask again, and when to stop.
type retryBudget struct {
	cfg         *Config
	started     time.Time
	attemptsMax int // 0: no bound
	elapsedMax  time.Duration
	attempts    int
}

func (b *retryBudget) elapsed() time.Duration { return b.cfg.Now().Sub(b.started) }

// next returns how long to pause before the next attempt, or why there is none: a pause that would end too late is not
// begun.
func (b *retryBudget) next(retryAfter time.Duration) (time.Duration, Reason) {
	if b.attemptsMax > 0 && b.attempts >= b.attemptsMax {
		return 0, ReasonAttempts
	}
	pause := retryAfter
	if pause <= 0 {
		pause = backoff(b.attempts, b.cfg.BackoffBase, b.cfg.BackoffMax, random(b.cfg.Random))
	}
	if pause > b.cfg.RetryAfterMax && retryAfter > 0 {
		return 0, ReasonRetryAfter
	}
	if b.elapsed()+pause > b.elapsedMax {
		return 0, ReasonElapsed
	}
	return pause, ""
}

// random draws 64 bits for jitter. If reading randomness fails, it returns 0: no jitter. Keys, which need randomness, have their own
// error.
func random(source io.Reader) uint64 {
	var raw [8]byte
	if _, err := io.ReadFull(source, raw[:]); err != nil {
		return 0
	}
	return binary.BigEndian.Uint64(raw[:])
}
