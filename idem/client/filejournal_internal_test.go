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

// A process that comes between another's look and its link has begun the operation: both get its key.
func TestTwoProcessesGetOneKeyBetweenReadAndLink(t *testing.T) {
	j, err := OpenFileJournal(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	j.link = func(from, to string) error {
		second := exec.CommandContext(t.Context(), os.Args[0])
		second.Env = append(os.Environ(), journalOfSecond+"="+j.dir)
		if said, err := second.CombinedOutput(); err != nil {
			t.Errorf("the second process: %v\n%s", err, said)
		}
		return os.Link(from, to)
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
		j := &FileJournal{dir: dir, entriesMax: 1, link: os.Link, list: os.ReadDir, sync: record}
		if err := j.open(); err != nil || !slices.Contains(synced, filepath.Dir(made)) {
			t.Errorf("%s: synced %v, %v", dir, synced, err)
		}
		synced = nil
		if err := j.Done(t.Context(), "order-17"); err != nil || !slices.Equal(synced, []string{dir}) {
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
	dir := filepath.Join(t.TempDir(), "made", "with", "journal")
	j, err := OpenFileJournal(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	left, live := filepath.Join(dir, "begin-1"), filepath.Join(dir, "begin-2")
	for _, name := range []string{left, live} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(left, time.Time{}, time.Now().Add(-besideAgeMax-time.Minute)); err != nil {
		t.Fatal(err)
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
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what a crash left: %v", err)
	}
	if _, err := os.Stat(live); err != nil {
		t.Errorf("what is being written: %v", err)
	}
}
