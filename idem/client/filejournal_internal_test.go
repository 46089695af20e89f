package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// journalOfSecond is the variable that makes this test binary a second process: it begins an operation in the journal there.
const journalOfSecond = "IDEM_TEST_JOURNAL_OF_SECOND"

func TestMain(m *testing.M) {
	dir := os.Getenv(journalOfSecond)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := beginSecond(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func beginSecond(dir string) error {
	j, err := OpenFileJournal(dir, 0)
	if err != nil {
		return err
	}
	entry, resumed, err := j.Begin(context.Background(), "order-17", Entry{Key: "second"})
	if err == nil && (resumed || entry.Key != "second") {
		err = fmt.Errorf("%+v, resumed %v", entry, resumed)
	}
	return err
}

// A process that comes between another's look and its rename has begun the operation: both get its key.
func TestTwoProcessesGetOneKeyBetweenLookAndRename(t *testing.T) {
	j, err := OpenFileJournal(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	j.rename = func(from, to string) error {
		second := exec.CommandContext(t.Context(), os.Args[0])
		second.Env = append(os.Environ(), journalOfSecond+"="+j.dir)
		if said, err := second.CombinedOutput(); err != nil {
			t.Errorf("the second process: %v\n%s", err, said)
		}
		return syscall.Rename(from, to)
	}
	entry, resumed, err := j.Begin(t.Context(), "order-17", Entry{Key: "first"})
	if err != nil || !resumed || entry.Key != "second" {
		t.Errorf("%+v, resumed %v, %v", entry, resumed, err)
	}
	if alone, err := j.Alone(t.Context(), "order-17", "second"); err != nil || alone {
		t.Errorf("the second process has it alone: %v, %v", alone, err)
	}
}

// A caller that takes the last place between another's look and its count has begun the operation: there is no room, but an entry. A
// full journal that said otherwise would prove that an operation which is under way was never sent.
func TestAJournalThatIsFilledWithTheOperationHasItsEntry(t *testing.T) {
	dir := t.TempDir()
	j, err := OpenFileJournal(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	j.list = func(dir string) ([]os.DirEntry, error) {
		j.list = os.ReadDir
		if err := beginSecond(dir); err != nil {
			t.Error(err)
		}
		return os.ReadDir(dir)
	}
	entry, resumed, err := j.Begin(t.Context(), "order-17", Entry{Key: "first"})
	if err != nil || !resumed || entry.Key != "second" {
		t.Errorf("%+v, resumed %v, %v", entry, resumed, err)
	}
	if alone, err := j.Alone(t.Context(), "order-17", "second"); err != nil || alone {
		t.Errorf("the second caller has it alone: %v, %v", alone, err)
	}
	if _, _, err := j.Begin(t.Context(), "order-18", Entry{Key: "third"}); !errors.Is(err, ErrJournalFull) {
		t.Errorf("an operation that is not there: %v", err)
	}
}

// A directory whose maker died before its name was durable is made durable by whoever opens it: the entries in it would be lost
// with it. The same is true of an entry that was removed.
func TestWhatAnotherProcessDidNotSyncIsSynced(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made")
	if err := os.Mkdir(made, 0o700); err != nil {
		t.Fatal(err)
	}
	var synced []string
	record := func(dir string) error {
		synced = append(synced, dir)
		return syncDirectory(dir)
	}
	for _, dir := range []string{made, filepath.Join(made, "journal")} {
		synced = nil
		j := &FileJournal{dir: dir, entriesMax: 1, rename: syscall.Rename, list: os.ReadDir, sync: record}
		if err := j.open(); err != nil || !slices.Contains(synced, filepath.Dir(made)) {
			t.Errorf("%s: synced %v, %v", dir, synced, err)
		}
		synced = nil
		if err := j.Done(t.Context(), "order-17", "k"); err != nil || !slices.Equal(synced, []string{dir}) {
			t.Errorf("%s: done synced %v, %v", dir, synced, err)
		}
	}
}

// JSON replaces what is not UTF-8, so after a restart another key would be sent.
func TestAFileJournalKeepsWhatIsNotUTF8Never(t *testing.T) {
	j, err := OpenFileJournal(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for operation, key := range map[string]string{"order-17": "k\xff", "order-\xff": "k"} {
		if entry, _, err := j.Begin(t.Context(), operation, Entry{Key: key}); !errors.Is(err, errNotText) {
			t.Errorf("%q, %q: %+v, %v", operation, key, entry, err)
		}
	}
}

// A monotonic reading does not count the time for which a machine was suspended.
func TestTheAgeOfAKeyIsCountedByTheDate(t *testing.T) {
	journal, err := NewMemoryJournal(0)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := New(Config{Journal: journal})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := journal.Begin(t.Context(), "order-18", Entry{Key: "k", FirstSent: time.Now()}); err != nil {
		t.Fatal(err)
	}
	for _, ctx := range []context.Context{
		t.Context(), WithKey(t.Context(), "k"), WithOperation(t.Context(), "order-17"), WithOperation(t.Context(), "order-18"),
	} {
		op, err := transport.name(httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil))
		if err != nil || op.seen.IsZero() || op.seen != op.seen.Round(0) {
			t.Errorf("seen %v, %v", op.seen, err)
		}
	}
	if date := transport.date(); date != date.Round(0) {
		t.Errorf("the date is %v", date)
	}
}

// What crashes left beside the entries neither fills the journal nor stays; what another process is writing does.
func TestWhatACrashLeftDoesNotFillTheJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j, err := OpenFileJournal(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	left, removed, live := filepath.Join(dir, "begin-1"), filepath.Join(dir, "begin-2-gone"), filepath.Join(dir, "begin-3")
	for _, name := range []string{left, removed, live} {
		if err := errors.Join(os.Mkdir(name, 0o700), os.WriteFile(filepath.Join(name, nameOf("a")), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{left, removed} {
		if err := os.Chtimes(name, time.Time{}, time.Now().Add(-besideAgeMax-time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := j.Begin(t.Context(), "order-17", Entry{Key: "a"}); err != nil {
		t.Error(err)
	}
	if _, _, err := j.Begin(t.Context(), "order-18", Entry{Key: "b"}); err == nil {
		t.Error("a second of one operation")
	}
	if _, err := OpenFileJournal(dir, 1); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 || files[0].Name() != filepath.Base(j.path("order-17")) && files[1].Name() != filepath.Base(j.path("order-17")) {
		t.Errorf("%v, %v, want the entry and what is being written", files, err)
	}
	if _, err := os.Stat(live); err != nil {
		t.Errorf("what is being written: %v", err)
	}
}

// A process that dies while it ends an operation leaves the operation's directory without its entry. The name and the place are free
// then, whether somebody opens the journal meanwhile or not.
func TestACrashWhileAnOperationEndsLeavesItsNameFree(t *testing.T) {
	for _, opens := range []bool{false, true} {
		j, err := OpenFileJournal(t.TempDir(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := j.Begin(t.Context(), "order-17", Entry{Key: "a"}); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(j.file("order-17", "a")); err != nil {
			t.Fatal(err)
		}
		if opens {
			if _, err := OpenFileJournal(j.dir, 1); err != nil {
				t.Fatal(err)
			}
			if files, err := os.ReadDir(j.dir); err != nil || len(files) != 0 {
				t.Errorf("left %v, %v", files, err)
			}
		}
		if _, _, err := j.Begin(t.Context(), "order-18", Entry{Key: "c"}); err != nil {
			t.Errorf("another operation in its place: %v", err)
		}
		if err := j.Done(t.Context(), "order-18", "c"); err != nil {
			t.Error(err)
		}
		if entry, resumed, err := j.Begin(t.Context(), "order-17", Entry{Key: "b"}); err != nil || resumed || entry.Key != "b" {
			t.Errorf("%+v, resumed %v, %v", entry, resumed, err)
		}
		if err := j.Done(t.Context(), "order-17", "a"); err != nil {
			t.Error(err)
		}
		if alone, err := j.Alone(t.Context(), "order-17", "b"); err != nil || !alone {
			t.Errorf("the next operation: %v, %v", alone, err)
		}
	}
}

// What a writer makes beside the entries is removed where it was stopped for long. It is moved away first: half removed and renamed into
// place by its writer, it would be an operation without a key, of which the next caller makes another one.
func TestAWriterThatWasStoppedFindsItsDirectoryGone(t *testing.T) {
	j, err := OpenFileJournal(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	j.rename = func(from, to string) error {
		j.rename = syscall.Rename
		if err := os.Chtimes(from, time.Time{}, time.Now().Add(-besideAgeMax-time.Minute)); err != nil {
			t.Error(err)
		}
		remover := &FileJournal{dir: j.dir, list: os.ReadDir, sync: syncDirectory}
		moved := ""
		remover.rename = func(beside, gone string) error {
			moved = beside
			return syscall.Rename(beside, gone)
		}
		if err := remover.clean(); err != nil || moved != from {
			t.Errorf("moved %q away, %v, want %q", moved, err, from)
		}
		return syscall.Rename(from, to)
	}
	if entry, resumed, err := j.Begin(t.Context(), "order-17", Entry{Key: "a"}); err == nil {
		t.Errorf("%+v, resumed %v, want an error", entry, resumed)
	}
	if files, err := os.ReadDir(j.dir); err != nil || len(files) != 0 {
		t.Errorf("left %v, %v", files, err)
	}
}

// Earlier commits kept an entry in a file of the name that the operation's directory has. It is none, and not the absence of one.
func TestAFileInTheOperationsPlaceIsAnError(t *testing.T) {
	j, err := OpenFileJournal(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(j.path("order-17"), []byte(`{"operation":"order-17","key":"a"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if entry, _, err := j.Begin(t.Context(), "order-17", Entry{Key: "b"}); err == nil {
		t.Errorf("%+v, want an error", entry)
	}
	if alone, err := j.Alone(t.Context(), "order-17", "a"); err == nil {
		t.Errorf("alone %v, want an error", alone)
	}
	if err := j.Done(t.Context(), "order-17", "a"); err == nil {
		t.Error("it was ended")
	}
	if err := j.clean(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(j.path("order-17")); err != nil {
		t.Error(err)
	}
}
