package client

import (
	"bytes"
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
	"strings"
	"time"
	"unicode/utf8"

	"github.com/idem-go/idem-aws/idem"
)

// FileJournal is a journal in a directory, one file for each operation. It survives the process and, as far as the disk
// does what fsync asks for, the machine. Several processes on one machine may share a directory; one on a network file
// system must have hard links and a working fsync. The files hold operation ids and keys in the clear, for their owner
// alone to read. A line break at a file's end says that a second caller has the entry, too.
type FileJournal struct {
	dir        string
	entriesMax int
	// link is os.Link, list os.ReadDir, and sync syncDirectory, unless a test does something before.
	link func(from, to string) error
	list func(dir string) ([]os.DirEntry, error)
	sync func(dir string) error
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
// [EntriesMaxDefault]. The path must be absolute: a relative one is another, empty journal where the process starts elsewhere, and
// a new key for what was sent before. It returns an [*idem.ConfigError] or the file system's error.
func OpenFileJournal(dir string, most int) (*FileJournal, error) {
	most, err := entriesMax(most)
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(dir) {
		return nil, &idem.ConfigError{Field: "dir", Value: dir, Rule: "must be an absolute path: a relative one is another journal where the process starts elsewhere"}
	}
	j := &FileJournal{dir: filepath.Clean(dir), entriesMax: most, link: os.Link, list: os.ReadDir, sync: syncDirectory}
	if err := j.open(); err != nil {
		return nil, fmt.Errorf("client: open the journal: %w", err)
	}
	return j, nil
}

func (j *FileJournal) open() error {
	if err := j.makeDurable(j.dir); err != nil {
		return err
	}
	if err := j.sync(j.dir); err != nil {
		return err
	}
	return j.clean()
}

// Begin implements [Journal]. A file that can't be read is an error: a new key might execute again what the old one did.
func (j *FileJournal) Begin(ctx context.Context, operation string, fresh Entry) (Entry, bool, error) {
	entry, err := j.resume(operation)
	if errors.Is(err, fs.ErrNotExist) {
		if ctx.Err() != nil {
			return Entry{}, false, ErrNoEntry
		}
		err = j.write(operation, fresh)
		switch {
		case err == nil:
			return fresh, false, nil
		case errors.Is(err, fs.ErrExist): // another process was faster
			entry, err = j.resume(operation)
		case errors.Is(err, ErrJournalFull):
			// The last place may have been taken for this operation, since it was looked for.
			if kept, again := j.resume(operation); !errors.Is(again, fs.ErrNotExist) {
				entry, err = kept, again
			}
		}
	}
	if err != nil {
		return Entry{}, false, fmt.Errorf("client: journal: %w", err)
	}
	return entry, true, nil
}

// Alone implements [Journal].
func (j *FileJournal) Alone(_ context.Context, operation, key string) (bool, error) {
	file, err := os.Open(j.path(operation))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // another caller has ended it
	}
	if err != nil {
		return false, fmt.Errorf("client: journal: %w", err)
	}
	defer file.Close()
	entry, shared, err := readEntry(file, operation)
	if err != nil {
		return false, fmt.Errorf("client: journal: %w", err)
	}
	return entry.Key == key && !shared, nil
}

// Done implements [Journal].
func (j *FileJournal) Done(_ context.Context, operation string) error {
	err := os.Remove(j.path(operation))
	if err == nil || errors.Is(err, fs.ErrNotExist) { // the one who removed it may not have got to the sync
		err = j.sync(j.dir)
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

// resume reads an entry that is there, and tells its first caller that there is a second one. The mark is not synced: the
// first caller does not outlive the machine either.
func (j *FileJournal) resume(operation string) (Entry, error) {
	file, err := os.OpenFile(j.path(operation), os.O_RDWR|os.O_APPEND, 0) //nolint:gosec // the name is a hash
	if err != nil {
		return Entry{}, err
	}
	defer file.Close()
	entry, shared, err := readEntry(file, operation)
	if err == nil && !shared {
		_, err = file.WriteString("\n")
	}
	if err != nil {
		return Entry{}, err
	}
	// The one who wrote it may not have got to this: what is used must be durable.
	return entry, j.sync(j.dir)
}

// readEntry reads a file's entry, and whether a second caller has it.
func readEntry(file *os.File, operation string) (Entry, bool, error) {
	raw, err := io.ReadAll(io.LimitReader(file, fileBytesMax))
	if err != nil {
		return Entry{}, false, err
	}
	var kept fileEntry
	if err := json.Unmarshal(raw, &kept); err != nil || kept.Operation != operation || kept.Key == "" {
		return Entry{}, false, fmt.Errorf("%s is not the operation's entry", filepath.Base(file.Name()))
	}
	return Entry{Key: kept.Key, FirstSent: kept.FirstSent, GivenAt: kept.GivenAt}, bytes.HasSuffix(raw, []byte("\n")), nil
}

// errNotText: JSON would keep another id, or another key, and that one would be sent after a restart.
var errNotText = errors.New("a file keeps operation ids and keys in UTF-8 only")

// write keeps an entry that is not there yet: written and synced beside, then linked into place. A rename would overwrite
// the entry of another process; a link fails with fs.ErrExist.
func (j *FileJournal) write(operation string, entry Entry) error {
	if !utf8.ValidString(operation) || !utf8.ValidString(entry.Key) {
		return errNotText
	}
	if err := j.room(); err != nil {
		return err
	}
	raw, err := json.Marshal(fileEntry{Operation: operation, Key: entry.Key, FirstSent: entry.FirstSent.UTC(), GivenAt: entry.GivenAt.UTC()})
	if err != nil {
		return err
	}
	beside, err := os.CreateTemp(j.dir, besidePrefix+"*") // mode 0600
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
	if err := j.link(beside.Name(), j.path(operation)); err != nil {
		return err
	}
	return j.sync(j.dir)
}

// room counts the entries. What a crash left beside them does not count.
func (j *FileJournal) room() error {
	files, err := j.list(j.dir)
	if err != nil {
		return err
	}
	entries := 0
	for _, file := range files {
		if !strings.HasPrefix(file.Name(), besidePrefix) {
			entries++
		}
	}
	if entries >= j.entriesMax {
		return ErrJournalFull
	}
	return nil
}

const (
	// besidePrefix begins the names of files that are not linked into place yet.
	besidePrefix = "begin-"
	// besideAgeMax is more than a write takes. A process that was stopped for longer finds its file gone when it links it;
	// nothing is sent then.
	besideAgeMax = time.Hour
)

// clean removes what crashes left beside the entries.
func (j *FileJournal) clean() error {
	files, err := os.ReadDir(j.dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		if !strings.HasPrefix(file.Name(), besidePrefix) {
			continue
		}
		info, err := file.Info()
		if err == nil && time.Since(info.ModTime()) > besideAgeMax {
			err = os.Remove(filepath.Join(j.dir, file.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // its writer, or another process, removed it
			return err
		}
	}
	return nil
}

// makeDurable makes a directory and those above it that are missing. Each name is synced in the directory above, and so is
// that of the last one that is there: the one who made it may not have got to this.
func (j *FileJournal) makeDurable(dir string) error {
	above := filepath.Dir(dir)
	_, err := os.Stat(dir)
	if err == nil {
		if err = j.sync(above); errors.Is(err, fs.ErrPermission) {
			return nil // somebody else made it
		}
		return err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := j.makeDurable(above); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return j.sync(above)
}

// syncDirectory makes the directory's names durable.
func syncDirectory(name string) error {
	dir, err := os.Open(name) //nolint:gosec // the journal's own, or one above it
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
