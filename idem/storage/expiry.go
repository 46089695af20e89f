package storage

import (
	"time"
)

// Expiry says, besides the retention, how the life of a final record ends. It is copied from the policy when the record
// is reserved. With the zero value the key is free, and the record may be removed, when the retention is over.
type Expiry struct {
	// KeepFor is how long the record is kept after it has expired.
	KeepFor time.Duration
	// Gone says that while it is kept it answers 410; otherwise a new request may replace it.
	Gone bool
	// ResourceBacked says that a success does not expire before it is ended, with the resource that it made.
	ResourceBacked bool
}

// At returns when a record expires whose operation ended with this status; zero if it lives as long as its resource.
func (e Expiry) At(done time.Time, retention time.Duration, status int) time.Time {
	if e.ResourceBacked && status >= 200 && status <= 299 {
		return time.Time{}
	}
	return done.Add(retention)
}

// Expired says whether the record has stopped answering at now. Only final records expire; native TTL removes them later.
func (r Record) Expired(now time.Time) bool {
	return r.State.Final() && !r.ExpiresAt.IsZero() && !now.Before(r.ExpiresAt)
}

// FreeAt returns the time from which a new request may replace a record that expires at the given time; zero if that is
// not known yet.
func (e Expiry) FreeAt(expires time.Time) time.Time {
	if expires.IsZero() || !e.Gone {
		return expires
	}
	return expires.Add(e.KeepFor)
}

// KeyFree says whether a new request may replace the record at now. A record that this release can't judge is never free,
// whatever it seems to say: native TTL removes it, or the release that wrote it replaces it.
func (r Record) KeyFree(now time.Time) bool {
	switch r.State {
	case StateCompleted, StateFailed, StateFailedRetryable:
		return r.Readable() && !r.FreeAt.IsZero() && !now.Before(r.FreeAt)
	case StateInProgress, StatePending, StateUnknown: // never free
	}
	return false
}

// keptUntil is when a final record may go: not before its key is free. One that was ended early stays for its retention
// all the same: a commit without a reply may still be on its way, and must find that it has happened.
func (r Record) keptUntil() time.Time {
	kept := r.FreeAt
	for _, least := range []time.Time{r.ExpiresAt.Add(r.Expiry.KeepFor), r.DoneAt.Add(r.Retention)} {
		if kept.Before(least) {
			kept = least
		}
	}
	return kept
}
