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
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/idem-go/idem-aws/idem"
)

// FileJournal is a journal in a directory. It survives the process and, as far as the disk does what fsync asks for, the
// machine. Several processes on one machine may share a directory; a network file system must rename directories
// atomically, and have a working fsync. The files hold operation ids and keys in the clear, for their owner alone to read.
//
// Each operation is a directory in the journal's, and its entry is the one file in that, named after the key. So an entry is removed by
// its key, and a directory that has an entry is neither replaced nor removed. A line break at a file's end, or the zero that a power
// cut left of it, says that a second caller has the entry, too.
type FileJournal struct {
	dir        string
	entriesMax int
	// rename is syscall.Rename, list os.ReadDir, and sync syncDirectory, unless a test does something before. os.Rename replaces no
	// directory, not even an empty one.
	rename func(from, to string) error
	list   func(dir string) ([]os.DirEntry, error)
	sync   func(dir string) error
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

// OpenFileJournal opens the journal in the directory, for at most that many operations, 0 meaning [EntriesMaxDefault]. It makes the
// directory if need be, but none above it: another, empty journal is a new key for what was sent before. Put a journal on a volume into
// a directory that you made there, so that opening it is an error while the volume is not mounted. For the same reason the path must be
// absolute, since a relative one is another journal where the process starts elsewhere, and have no "..", which programs read in two
// ways behind a symbolic link. It returns an [*idem.ConfigError] or the file system's error.
func OpenFileJournal(dir string, most int) (*FileJournal, error) {
	most, err := entriesMax(most)
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(dir) || slices.Contains(strings.Split(filepath.ToSlash(dir), "/"), "..") {
		return nil, &idem.ConfigError{Field: "dir", Value: dir, Rule: "must be an absolute path without \"..\": any other one may be another journal, where the process starts elsewhere or behind a link"}
	}
	j := &FileJournal{dir: filepath.Clean(dir), entriesMax: most, rename: syscall.Rename, list: os.ReadDir, sync: syncDirectory}
	if err := j.open(); err != nil {
		return nil, fmt.Errorf("client: open the journal: %w", err)
	}
	return j, nil
}

func (j *FileJournal) open() error {
	if err := j.makeDurable(); err != nil {
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
	file, err := os.Open(j.file(operation, key))
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
func (j *FileJournal) Done(_ context.Context, operation, key string) error {
	err := os.Remove(j.file(operation, key))
	if err == nil || errors.Is(err, fs.ErrNotExist) { // the one who removed it may not have got to the rest
		err = os.Remove(j.path(operation))
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) { // the next operation may have its entry there
		err = j.sync(j.dir)
	}
	if err != nil {
		return fmt.Errorf("client: journal: %w", err)
	}
	return nil
}

// path is the operation's directory. It has the name that earlier commits gave to a file: a client that meets what another one left
// there fails, and does not take the operation for a new one.
func (j *FileJournal) path(operation string) string { return filepath.Join(j.dir, nameOf(operation)) }

// file is the operation's entry with the key.
func (j *FileJournal) file(operation, key string) string {
	return filepath.Join(j.path(operation), nameOf(key))
}

const suffix = ".json"

// nameOf hashes an id or a key: any one is a file's name then.
func nameOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:]) + suffix
}

// find returns the operation's entry, whatever its key is, and fs.ErrNotExist where there is none.
func (j *FileJournal) find(operation string) (string, error) {
	files, err := os.ReadDir(j.path(operation))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		if strings.HasSuffix(file.Name(), suffix) { // NFS has others, of what was removed while it was open
			return filepath.Join(j.path(operation), file.Name()), nil
		}
	}
	return "", fs.ErrNotExist // it was ended, and its directory is there still
}

// resume reads an entry that is there, and tells its first caller that there is a second one. The mark is not synced: the
// first caller does not outlive the machine either.
func (j *FileJournal) resume(operation string) (Entry, error) {
	name, err := j.find(operation)
	if err != nil {
		return Entry{}, err
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND, 0) //nolint:gosec // the name is a hash
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
	text := bytes.TrimRight(raw, marks)
	var kept fileEntry
	if err := json.Unmarshal(text, &kept); err != nil || kept.Operation != operation || kept.Key == "" {
		return Entry{}, false, fmt.Errorf("%s is not the operation's entry", filepath.Base(file.Name()))
	}
	return Entry{Key: kept.Key, FirstSent: kept.FirstSent, GivenAt: kept.GivenAt}, len(text) < len(raw), nil
}

// marks are what may stand at a file's end for a second caller: the line break that was written, and the zero that a power cut may leave
// in its place, because a file system makes a file longer before it has what is in it.
const marks = "\n\x00"

// errNotText: JSON would keep another id, or another key, and that one would be sent after a restart.
var errNotText = errors.New("a file keeps operation ids and keys in UTF-8 only")

// write keeps an entry that is not there yet: its directory is made and synced beside, then renamed into place. That replaces an
// empty directory, and fails with fs.ErrExist where another process has an entry.
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
	beside, err := os.MkdirTemp(j.dir, besidePrefix+"*") // mode 0700
	if err != nil {
		return err
	}
	if err = j.fill(beside, nameOf(entry.Key), raw); err == nil {
		err = j.rename(beside, j.path(operation))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(beside)) //nolint:gosec // it was made here
	}
	return j.sync(j.dir)
}

// fill writes the only file of a new directory, durably.
func (j *FileJournal) fill(dir, name string, raw []byte) error {
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the name is a hash
	if err != nil {
		return err
	}
	_, err = file.Write(raw)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return j.sync(dir)
}

// room returns ErrJournalFull where there is no place for another entry. The directory that a crash inside Done left takes a place, so
// a full journal is cleaned and counted again.
func (j *FileJournal) room() error {
	entries, err := j.count()
	if err == nil && entries >= j.entriesMax {
		if err = j.clean(); err == nil {
			entries, err = j.count()
		}
	}
	if err == nil && entries >= j.entriesMax {
		return ErrJournalFull
	}
	return err
}

// count counts the operations' directories. What a crash left beside them does not count.
func (j *FileJournal) count() (int, error) {
	files, err := j.list(j.dir)
	entries := 0
	for _, file := range files {
		if !strings.HasPrefix(file.Name(), besidePrefix) {
			entries++
		}
	}
	return entries, err
}

const (
	// besidePrefix begins the names of directories that are not renamed into place yet.
	besidePrefix = "begin-"
	// goneSuffix ends the names of those that are being removed.
	goneSuffix = "-gone"
	// besideAgeMax is more than a write takes. A process that was stopped for longer finds its directory gone when it renames it;
	// nothing is sent then.
	besideAgeMax = time.Hour
)

// clean removes what crashes left: directories beside the entries, and those of operations that were ended.
func (j *FileJournal) clean() error {
	files, err := os.ReadDir(j.dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		// Its writer, or another process, removed it, or it has an entry.
		if err := j.remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// remove removes a directory that a crash may have left, unless it has an entry or is too young. One beside the entries gets another
// name first: were its writer only stopped, it would rename a directory without its file into place.
func (j *FileJournal) remove(file os.DirEntry) error {
	name := filepath.Join(j.dir, file.Name())
	if file.IsDir() && strings.HasSuffix(name, suffix) {
		return os.Remove(name) //nolint:gosec // it is in the journal's directory
	}
	if !strings.HasPrefix(file.Name(), besidePrefix) {
		return nil
	}
	info, err := file.Info()
	if err != nil || time.Since(info.ModTime()) <= besideAgeMax {
		return err
	}
	gone := strings.TrimSuffix(name, goneSuffix) + goneSuffix
	if err := j.rename(name, gone); err != nil {
		return err
	}
	return os.RemoveAll(gone) //nolint:gosec // it is in the journal's directory
}

// makeDurable makes the directory if it is missing, but none above it: where those are missing a volume may not be mounted. The name of
// one that is there is synced all the same: the one who made it may not have got to this.
func (j *FileJournal) makeDurable() error {
	above := filepath.Dir(j.dir)
	_, err := os.Stat(j.dir)
	if err == nil {
		return j.syncName(j.dir)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = os.Mkdir(j.dir, 0o700)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &idem.ConfigError{Field: "dir", Value: j.dir, Rule: "must be in a directory that is there: if a volume is not mounted, a journal made in its place has new keys for what was sent before"}
	case err != nil && !errors.Is(err, fs.ErrExist):
		return err
	}
	if err := j.syncName(above); err != nil {
		return err
	}
	return j.sync(above)
}

// syncName makes the name of a directory durable. Where the one above it may not be read somebody else made it.
func (j *FileJournal) syncName(dir string) error {
	if err := j.sync(filepath.Dir(dir)); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// syncDirectory makes the directory's names durable.
func syncDirectory(name string) error {
	dir, err := os.Open(name) //nolint:gosec // the journal's own, or one above it
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
