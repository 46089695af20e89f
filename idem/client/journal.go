package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// Journal keeps the keys of named operations from before their first request until the caller is done with the answer.
// [FileJournal] survives a restart, [MemoryJournal] a retry; another one may live in the caller's database, best in the
// transaction that decides on the operation. It is safe for concurrent use.
type Journal interface {
	// Begin returns the operation's entry: the one that is there already, or else the fresh one, kept durably before it
	// returns. Of several callers at once, in several processes too, all get the same entry. resumed says that it was
	// there already. An error means that the request is not sent: [ErrJournalFull] that the operation has no entry and there is no
	// room for one, so look for the entry once more when there is none: another caller may have taken the last place for it.
	// Any other one proves nothing about earlier calls. Where the context has ended, Begin only looks, if it can: it
	// returns the entry that is there, so that the caller learns the key, else [ErrNoEntry], and makes none. Nothing is sent then,
	// and an entry would say that something may have been.
	Begin(ctx context.Context, operation string, fresh Entry) (entry Entry, resumed bool, err error)
	// Alone says whether the operation's entry still has the key, and no Begin has returned it as resumed. The caller that
	// made the entry asks before it takes an answer to say that nothing happened: a second caller may have sent the key,
	// too. An error counts as a no.
	Alone(ctx context.Context, operation, key string) (bool, error)
	// Done removes the operation's entry if it has the key, durably. One that is not there is no error, nor is one with another key: that
	// is the next operation of the same name, which another caller has begun, and it stays.
	Done(ctx context.Context, operation, key string) error
}

// Entry is what a journal keeps of an operation.
type Entry struct {
	// Key is the operation's key, without quotes.
	Key string
	// FirstSent is when the key was first used, at a resolution of milliseconds or finer; zero where that is not known.
	FirstSent time.Time
	// GivenAt is when the journal got a key that the caller gave, whose first use may be earlier: the key is at least that old.
	// It is zero for a key that the client made.
	GivenAt time.Time
}

// seen is the first time at which the key is known to have been there; zero where none is.
func (e Entry) seen() time.Time {
	if e.FirstSent.IsZero() {
		return e.GivenAt
	}
	return e.FirstSent
}

// ErrJournalFull is returned by a journal that keeps as many operations as it may. It never forgets one by itself.
var ErrJournalFull = errors.New("client: the journal is full")

// ErrNoEntry is returned by a journal that was asked in a context that has ended: the operation has no entry, and none was made.
var ErrNoEntry = errors.New("client: the journal has no entry for the operation, and made none in a context that has ended")

// EntriesMaxDefault is how many operations a journal keeps unless told otherwise.
const EntriesMaxDefault = 4096

func entriesMax(n int) (int, error) {
	if n == 0 {
		return EntriesMaxDefault, nil
	}
	if n < 0 {
		return 0, &idem.ConfigError{Field: "entriesMax", Value: n, Rule: fmt.Sprintf("must be positive, or 0 for %d", EntriesMaxDefault)}
	}
	return n, nil
}

// MemoryJournal is a journal for the life of the process.
type MemoryJournal struct {
	entriesMax int

	mu      sync.Mutex
	entries map[string]memoryEntry
}

type memoryEntry struct {
	Entry
	// shared says that a second caller got it.
	shared bool
}

// NewMemoryJournal returns an empty journal for at most that many operations, 0 meaning [EntriesMaxDefault]. It returns an
// [*idem.ConfigError].
func NewMemoryJournal(most int) (*MemoryJournal, error) {
	most, err := entriesMax(most)
	if err != nil {
		return nil, err
	}
	return &MemoryJournal{entriesMax: most, entries: make(map[string]memoryEntry)}, nil
}

// Begin implements [Journal].
func (j *MemoryJournal) Begin(ctx context.Context, operation string, fresh Entry) (Entry, bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if kept, ok := j.entries[operation]; ok {
		kept.shared = true
		j.entries[operation] = kept
		return kept.Entry, true, nil
	}
	if ctx.Err() != nil {
		return Entry{}, false, ErrNoEntry
	}
	if len(j.entries) >= j.entriesMax {
		return Entry{}, false, ErrJournalFull
	}
	j.entries[operation] = memoryEntry{Entry: fresh}
	return fresh, false, nil
}

// Alone implements [Journal].
func (j *MemoryJournal) Alone(_ context.Context, operation, key string) (bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	kept := j.entries[operation]
	return kept.Key == key && !kept.shared, nil
}

// Done implements [Journal].
func (j *MemoryJournal) Done(_ context.Context, operation, key string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.entries[operation].Key == key {
		delete(j.entries, operation)
	}
	return nil
}
