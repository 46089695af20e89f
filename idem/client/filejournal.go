package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// FileJournal is a journal in a directory, one file for each operation. It survives the process and, as far as the disk
// does what fsync asks for, the machine. Several processes on one machine may share a directory; one on a network file
// system must have hard links and a working fsync. The files hold operation ids and keys in the clear, for their owner
// alone to read.
type FileJournal struct {
	dir        string
	entriesMax int
}

// fileEntry is a file's content.
type fileEntry struct {
	Operation string    `json:"operation"`
	Key       string    `json:"key"`
	FirstSent time.Time `json:"first_sent,omitzero"`
	GivenAt   time.Time `json:"given_at,omitzero"`
}

// fileBytesMax is more than an operation id and a key of the largest sizes need, escaped.
const fileBytesMax = 8 << 10

// OpenFileJournal opens the journal in the directory, which it makes if need be, for at most that many operations, 0 meaning
// [EntriesMaxDefault]. It returns an [*idem.ConfigError] or the file system's error.
func OpenFileJournal(dir string, most int) (*FileJournal, error) {
	most, err := entriesMax(most)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("client: open the journal: %w", err)
	}
	j := &FileJournal{dir: dir, entriesMax: most}
	if err := j.sync(); err != nil {
		return nil, fmt.Errorf("client: open the journal: %w", err)
	}
	return j, nil
}

// Begin implements [Journal]. A file that can't be read is an error: a new key might execute again what the old one did.
func (j *FileJournal) Begin(ctx context.Context, operation string, fresh Entry) (Entry, bool, error) {
	if err := ctx.Err(); err != nil {
		return Entry{}, false, err
	}
	entry, err := j.read(operation)
	if errors.Is(err, fs.ErrNotExist) {
		err = j.write(operation, fresh)
		if err == nil {
			return fresh, false, nil
		}
		if errors.Is(err, fs.ErrExist) { // another process was faster
			entry, err = j.read(operation)
		}
	}
	if err != nil {
		return Entry{}, false, fmt.Errorf("client: journal: %w", err)
	}
	return entry, true, nil
}

// Done implements [Journal].
func (j *FileJournal) Done(_ context.Context, operation string) error {
	err := os.Remove(j.path(operation))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = j.sync()
	}
	if err != nil {
		return fmt.Errorf("client: journal: %w", err)
	}
	return nil
}

// path hashes the id: any id is a file name then.
func (j *FileJournal) path(operation string) string {
	sum := sha256.Sum256([]byte(operation))
	return filepath.Join(j.dir, hex.EncodeToString(sum[:])+".json")
}

func (j *FileJournal) read(operation string) (Entry, error) {
	file, err := os.Open(j.path(operation))
	if err != nil {
		return Entry{}, err
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, fileBytesMax))
	if err != nil {
		return Entry{}, err
	}
	var kept fileEntry
	if err := json.Unmarshal(raw, &kept); err != nil || kept.Operation != operation || kept.Key == "" {
		return Entry{}, fmt.Errorf("%s is not the operation's entry", filepath.Base(file.Name()))
	}
	// The one who wrote it may not have got to this: what is used must be durable.
	return Entry{Key: kept.Key, FirstSent: kept.FirstSent, GivenAt: kept.GivenAt}, j.sync()
}

// write keeps an entry that is not there yet: written and synced beside, then linked into place. A rename would overwrite
// the entry of another process; a link fails with fs.ErrExist.
func (j *FileJournal) write(operation string, entry Entry) error {
	if err := j.room(); err != nil {
		return err
	}
	raw, err := json.Marshal(fileEntry{Operation: operation, Key: entry.Key, FirstSent: entry.FirstSent.UTC(), GivenAt: entry.GivenAt.UTC()})
	if err != nil {
		return err
	}
	beside, err := os.CreateTemp(j.dir, "begin-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(beside.Name())
	_, err = beside.Write(raw)
	if err == nil {
		err = beside.Sync()
	}
	if err = errors.Join(err, beside.Close()); err != nil {
		return err
	}
	if err := os.Link(beside.Name(), j.path(operation)); err != nil {
		return err
	}
	return j.sync()
}

// room counts what is in the directory, with what a crash may have left half-written.
func (j *FileJournal) room() error {
	dir, err := os.Open(j.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(j.entriesMax)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(names) >= j.entriesMax {
		return ErrJournalFull
	}
	return nil
}

// sync makes the directory's names durable.
func (j *FileJournal) sync() error {
	dir, err := os.Open(j.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
