package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/client"
)

// eachJournal runs a test on both journals. again opens the journal anew: after a restart, where there is such a thing.
func eachJournal(t *testing.T, entriesMax int, test func(t *testing.T, again func() client.Journal)) {
	t.Run("memory", func(t *testing.T) {
		j, err := client.NewMemoryJournal(entriesMax)
		if err != nil {
			t.Fatal(err)
		}
		test(t, func() client.Journal { return j })
	})
	t.Run("file", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "journal")
		test(t, func() client.Journal {
			j, err := client.OpenFileJournal(dir, entriesMax)
			if err != nil {
				t.Fatal(err)
			}
			return j
		})
	})
}

func TestJournal(t *testing.T) {
	eachJournal(t, 2, func(t *testing.T, again func() client.Journal) {
		ctx := t.Context()
		begin := func(operation, key string, at time.Time) (client.Entry, bool) {
			t.Helper()
			entry, resumed, err := again().Begin(ctx, operation, client.Entry{Key: key, FirstSent: at})
			if err != nil {
				t.Fatal(err)
			}
			return entry, resumed
		}
		later := epoch.Add(time.Hour + time.Millisecond)
		if entry, resumed := begin("../order 17", "a", epoch); entry.Key != "a" || resumed {
			t.Errorf("%+v, %v", entry, resumed)
		}
		if entry, resumed := begin("../order 17", "b", later); entry.Key != "a" || !entry.FirstSent.Equal(epoch) || !resumed {
			t.Errorf("%+v, %v", entry, resumed)
		}
		if entry, resumed := begin("order 18", "c", later); entry.Key != "c" || resumed {
			t.Errorf("%+v, %v", entry, resumed)
		}
		if entry, _ := begin("order 18", "d", epoch); !entry.FirstSent.Equal(later) {
			t.Errorf("%+v", entry)
		}
		if _, _, err := again().Begin(ctx, "order 19", client.Entry{Key: "e"}); !errors.Is(err, client.ErrJournalFull) {
			t.Errorf("a third of two: %v", err)
		}
		for range 2 {
			if err := again().Done(ctx, "../order 17", "a"); err != nil {
				t.Error(err)
			}
		}
		if entry, resumed := begin("../order 17", "f", epoch); entry.Key != "f" || resumed {
			t.Errorf("after Done: %+v, %v", entry, resumed)
		}
	})
}

// However many begin an operation at once, from however many processes, they get one key.
// A call whose context has ended sends nothing. An entry that it left would make the first call that sends a resumed one, which
// takes no refusal for an answer, and would fill the journal.
func TestAnEndedContextLeavesNoEntry(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	const name = "order-17/charge"
	eachJournal(t, 1, func(t *testing.T, again func() client.Journal) {
		sent := 0
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			sent++
			return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		})
		call := func(ctx context.Context) (*http.Response, error) {
			req, err := http.NewRequestWithContext(client.WithOperation(ctx, name), http.MethodPost, "http://api.example/orders", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			return open(t).transport(client.Config{Base: base, Journal: again()}).RoundTrip(req)
		}
		if _, err := call(ended); !errors.Is(err, context.Canceled) || errors.Is(err, client.ErrUnknown) {
			t.Errorf("in an ended context: %v", err)
		}
		var gaveUp *client.GaveUpError
		if _, err := call(client.WithKey(ended, "k")); !errors.As(err, &gaveUp) || gaveUp.Key != "k" || !errors.Is(err, context.Canceled) {
			t.Errorf("in an ended context, with a given key: %v", err)
		}
		if sent != 0 {
			t.Errorf("%d requests were sent", sent)
		}
		if _, resumed, err := again().Begin(ended, name, client.Entry{Key: "a"}); !errors.Is(err, client.ErrNoEntry) || resumed {
			t.Errorf("the journal in an ended context: %v, %v", resumed, err)
		}
		if _, _, err := again().Begin(t.Context(), "another", client.Entry{Key: "b"}); err != nil {
			t.Errorf("the journal is not empty: %v", err)
		}
		if _, resumed, err := again().Begin(ended, "another", client.Entry{Key: "c"}); err != nil || !resumed {
			t.Errorf("the entry that is there, in an ended context: %v, %v", resumed, err)
		}
		if err := again().Done(t.Context(), "another", "b"); err != nil {
			t.Fatal(err)
		}
		res, err := call(t.Context())
		if err != nil || res.StatusCode != http.StatusForbidden {
			t.Errorf("%v, want the 403 as an answer", err)
		}
	})
}

func TestJournalHasOneWinner(t *testing.T) {
	eachJournal(t, 0, func(t *testing.T, again func() client.Journal) {
		for round := range 20 {
			var mu sync.Mutex
			keys, fresh := map[string]bool{}, 0
			var wg sync.WaitGroup
			for i := range 8 {
				j := again()
				wg.Go(func() {
					entry, resumed, err := j.Begin(context.Background(), fmt.Sprint("order-", round), client.Entry{Key: fmt.Sprint("key-", i), FirstSent: epoch})
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					keys[entry.Key] = true
					if !resumed {
						fresh++
					}
				})
			}
			wg.Wait()
			if len(keys) != 1 || fresh != 1 {
				t.Fatalf("keys %v, %d fresh", keys, fresh)
			}
		}
	})
}

// A relative directory is another one where the process starts elsewhere: an empty journal, and a new key for what was sent. So is one
// with ".." behind a symbolic link, to clients that read it otherwise.
func TestARelativeJournalIsRefused(t *testing.T) {
	here := t.TempDir()
	t.Chdir(here)
	for _, dir := range []string{"keys", "./keys", "~/keys", "", here + "/link/../keys", here + "/keys/..", "/../" + here + "/keys"} {
		var refused *idem.ConfigError
		if _, err := client.OpenFileJournal(dir, 0); !errors.As(err, &refused) || refused.Field != "dir" {
			t.Errorf("%q: %v", dir, err)
		}
	}
	if made, err := os.ReadDir("."); err != nil || len(made) > 0 {
		t.Errorf("made %v, %v", made, err)
	}
}

// A volume that is not mounted leaves the journal's path missing. An empty journal in its place would have a new key for what was sent.
func TestAJournalIsMadeInADirectoryThatIsThere(t *testing.T) {
	volume := filepath.Join(t.TempDir(), "volume")
	dir := filepath.Join(volume, "shop", "keys")
	for _, made := range []string{"", volume} {
		if made != "" {
			if err := os.Mkdir(made, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		var refused *idem.ConfigError
		if _, err := client.OpenFileJournal(dir, 0); !errors.As(err, &refused) || !strings.Contains(refused.Rule, "not mounted") {
			t.Errorf("where %q is the last directory that is there: %v", made, err)
		}
		if _, err := os.Stat(filepath.Join(volume, "shop")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it made a directory: %v", err)
		}
	}
	if err := os.Mkdir(filepath.Join(volume, "shop"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := client.OpenFileJournal(dir, 0); err != nil {
			t.Error(err)
		}
	}
}

// A file that is not what was written fails closed: a new key could execute again.
func TestDamagedJournalIsAnError(t *testing.T) {
	dir := t.TempDir()
	j, err := client.OpenFileJournal(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := j.Begin(t.Context(), "order-17", client.Entry{Key: "a", FirstSent: epoch}); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(names) != 1 {
		t.Fatalf("%q, %v", names, err)
	}
	if info, err := os.Stat(names[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for _, content := range []string{"", `{"operation":"order-17","k`, `{"operation":"order-18","key":"a"}`, `{"operation":"order-17"}`} {
		if err := os.WriteFile(names[0], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		c := &capture{}
		transport, err := client.New(client.Config{Base: c, Journal: j})
		if err != nil {
			t.Fatal(err)
		}
		w := open(t)
		_, err = w.post(client.WithOperation(t.Context(), "order-17"), transport, "/orders", "{}")
		var refused *client.KeyError
		if !errors.As(err, &refused) || c.n != 0 {
			t.Errorf("%q: %v, %d sent", content, err, c.n)
		}
	}
	var refused *idem.ConfigError
	if _, err := client.OpenFileJournal(dir, -1); !errors.As(err, &refused) || refused.Field != "entriesMax" {
		t.Errorf("%v", err)
	}
	if _, err := client.NewMemoryJournal(-1); !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
}

// A power cut right after a second caller's mark may leave zeroes in the mark's place: a file system may make a file longer before it
// has what is in it. The entry is durable, and the second caller was there.
func TestAMarkThatAPowerCutErasedIsAMark(t *testing.T) {
	for _, mark := range []string{"\x00", "\n\x00", "\x00\n", "\x00\x00"} {
		dir := t.TempDir()
		j, err := client.OpenFileJournal(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := j.Begin(t.Context(), "order-17", client.Entry{Key: "a", FirstSent: epoch}); err != nil {
			t.Fatal(err)
		}
		names, err := filepath.Glob(filepath.Join(dir, "*", "*"))
		if err != nil || len(names) != 1 {
			t.Fatalf("%q, %v", names, err)
		}
		raw, err := os.ReadFile(names[0])
		if err == nil {
			err = os.WriteFile(names[0], append(raw, mark...), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if alone, err := j.Alone(t.Context(), "order-17", "a"); err != nil || alone {
			t.Errorf("%q: alone %v, %v", mark, alone, err)
		}
		if entry, resumed, err := j.Begin(t.Context(), "order-17", client.Entry{Key: "b"}); err != nil || !resumed || entry.Key != "a" || !entry.FirstSent.Equal(epoch) {
			t.Errorf("%q: %+v, resumed %v, %v", mark, entry, resumed, err)
		}
	}
}

// A process that ends between sending and answer, or before it kept the answer, goes on with
// the same key.
func TestRestartKeepsTheKey(t *testing.T) {
	eachJournal(t, 0, func(t *testing.T, again func() client.Journal) {
		w := open(t)
		ctx := client.WithOperation(t.Context(), "order-17/charge")
		w.proxy.spoil(dropAfter)
		_, err := w.post(ctx, w.transport(client.Config{Journal: again(), AttemptsMax: 1}), "/orders", "{}")
		if !errors.Is(err, client.ErrUnknown) {
			t.Fatal(err)
		}
		key := ""
		for range 2 { // the second process ends before it kept the answer
			res, err := w.post(ctx, w.transport(client.Config{Journal: again()}), "/orders", "{}")
			if err != nil || res.body != `{"run":1}` || res.Header.Get("Idempotent-Replayed") != "true" {
				t.Fatalf("%v, %v", res, err)
			}
			key = client.KeyOf(res.Response)
		}
		w.ran(1)
		if err := w.transport(client.Config{Journal: again()}).Done(t.Context(), "order-17/charge", key); err != nil {
			t.Fatal(err)
		}
		if res, err := w.post(ctx, w.transport(client.Config{Journal: again()}), "/orders", "{}"); err != nil || res.body != `{"run":2}` {
			t.Errorf("a new operation: %v, %v", res, err)
		}
	})
}

// A key older than the server's record would execute anew: it is not sent.
func TestOldKeysAreNotSent(t *testing.T) {
	w := open(t)
	journal, err := client.NewMemoryJournal(0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, transport := client.WithOperation(t.Context(), "order-17"), w.transport(client.Config{Journal: journal})
	for range 2 {
		if _, err := w.post(ctx, transport, "/orders", "{}"); err != nil {
			t.Fatal(err)
		}
		w.clock.advance(23 * time.Hour)
	}
	w.clock.advance(time.Millisecond)
	_, err = w.post(ctx, transport, "/orders", "{}")
	var expired *client.ExpiredError
	if !errors.As(err, &expired) || expired.Age != 46*time.Hour+time.Millisecond || !errors.Is(err, client.ErrUnknown) || len(w.proxy.arrived()) != 2 {
		t.Errorf("%+v: %v", expired, err)
	}
	w.ran(1)
}

// A machine is suspended while it connects, and wakes when the server's record may be gone: what was going to be sent is held back.
// Before its body a request is none.
func TestAKeyThatGrowsTooOldWhileItConnectsIsNotSent(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		for name, body := range map[string]func() io.Reader{
			"a body that can be made again": func() io.Reader { return strings.NewReader("{}") },
			"a stream":                      func() io.Reader { return io.NopCloser(strings.NewReader("{}")) },
		} {
			t.Run(protocol+" "+name, func(t *testing.T) {
				w := open(t)
				var complete atomic.Int64
				server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if raw, err := io.ReadAll(r.Body); err == nil && string(raw) == "{}" && r.Proto == protocol {
						complete.Add(1)
					}
					panic(http.ErrAbortHandler) // the answer is lost
				}))
				server.EnableHTTP2 = protocol == "HTTP/2.0"
				server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
				server.StartTLS()
				defer server.Close()
				base := server.Client().Transport.(*http.Transport)
				dials, dial := 0, base.DialContext
				base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
					if dials++; dials > 1 {
						w.clock.advance(25 * time.Hour)
					}
					return dial(ctx, network, address)
				}
				base.ForceAttemptHTTP2 = server.EnableHTTP2
				w.clock.meanwhile = func(int, time.Duration) { base.CloseIdleConnections() }
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/orders", body())
				if err != nil {
					t.Fatal(err)
				}
				_, err = w.transport(client.Config{Base: base}).RoundTrip(req)
				var expired *client.ExpiredError
				if !errors.As(err, &expired) || expired.Age < 25*time.Hour || expired.Age > 26*time.Hour || complete.Load() != 1 || dials != 2 {
					t.Errorf("%v after %d complete requests and %d connections, want an ExpiredError after one and 2", err, complete.Load(), dials)
				}
			})
		}
	}
}

// The machine started with its date three days ahead. Its clock was set before the operation was resumed, so nobody knows how old
// the key is: it is not sent.
func TestAKeyFromTheFutureIsNotSent(t *testing.T) {
	w := open(t)
	journal, err := client.NewMemoryJournal(0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, transport := client.WithOperation(t.Context(), "order-17"), w.transport(client.Config{Journal: journal})
	for _, back := range []time.Duration{0, idem.FirstSentSkew} { // as far as the clocks of two machines differ
		w.clock.advance(-back)
		if _, err := w.post(ctx, transport, "/orders", "{}"); err != nil {
			t.Fatal(err)
		}
	}
	w.clock.advance(idem.FirstSentSkew - 72*time.Hour)
	_, err = w.post(ctx, transport, "/orders", "{}")
	var expired *client.ExpiredError
	if !errors.As(err, &expired) || expired.Age != -72*time.Hour || !errors.Is(err, client.ErrUnknown) || len(w.proxy.arrived()) != 2 {
		t.Errorf("%+v: %v", expired, err)
	}
	if err == nil || !strings.Contains(err.Error(), "72h0m0s from now") {
		t.Errorf("the error says %v", err)
	}
	w.ran(1)
}

// The journal's key, the caller's own and the operation's id must fit together; without a journal there is nothing to end.
func TestJournalContradictions(t *testing.T) {
	w := open(t)
	journal, err := client.NewMemoryJournal(0)
	if err != nil {
		t.Fatal(err)
	}
	transport := w.transport(client.Config{Journal: journal})
	operation := client.WithOperation(t.Context(), "order-17")
	if _, err := w.post(client.WithKey(operation, "a"), transport, "/orders", "{}"); err != nil {
		t.Fatal(err)
	}
	if res, err := w.post(operation, transport, "/orders", "{}"); err != nil || client.KeyOf(res.Response) != "a" {
		t.Errorf("%v, %v", res, err)
	}
	var refused *client.KeyError
	if _, err := w.post(client.WithKey(operation, "b"), transport, "/orders", "{}"); !errors.As(err, &refused) {
		t.Errorf("another key: %v", err)
	}
	for _, id := range []string{"", string(make([]byte, 257))} {
		if _, err := w.post(client.WithOperation(t.Context(), id), transport, "/orders", "{}"); !errors.As(err, &refused) {
			t.Errorf("an id of %d bytes: %v", len(id), err)
		}
	}
	if err := w.transport(client.Config{}).Done(t.Context(), "order-17", "a"); !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
	if err := transport.Done(t.Context(), "order-17", ""); !errors.As(err, &refused) {
		t.Errorf("without a key: %v", err)
	}
	w.ran(1)
}

// The first caller learns of a second one, also of one that has ended the operation.
func TestJournalTellsOfASecondCaller(t *testing.T) {
	eachJournal(t, 0, func(t *testing.T, again func() client.Journal) {
		ctx := t.Context()
		begin := func(key string) {
			t.Helper()
			if _, _, err := again().Begin(ctx, "order-17", client.Entry{Key: key}); err != nil {
				t.Fatal(err)
			}
		}
		alone := func(key string, want bool) {
			t.Helper()
			if got, err := again().Alone(ctx, "order-17", key); err != nil || got != want {
				t.Errorf("alone with %s: %v, %v, want %v", key, got, err, want)
			}
		}
		alone("a", false)
		begin("a")
		alone("a", true)
		alone("b", false)
		for range 3 {
			begin("b")
			alone("a", false)
		}
		if err := again().Done(ctx, "order-17", "a"); err != nil {
			t.Fatal(err)
		}
		alone("a", false)
		begin("c")
		alone("a", false)
		alone("c", true)
	})
}

// Two callers had one operation, and both end it. Between the two the name is used again: the second one's end is not that of the
// next operation, whose request may be under way.
func TestALateDoneLeavesTheNextOperation(t *testing.T) {
	eachJournal(t, 0, func(t *testing.T, again func() client.Journal) {
		const name = "order-17/charge"
		begin := func(key, want string, was bool) {
			t.Helper()
			if entry, resumed, err := again().Begin(t.Context(), name, client.Entry{Key: key}); err != nil || entry.Key != want || resumed != was {
				t.Errorf("%s got %s, resumed %v, %v", key, entry.Key, resumed, err)
			}
		}
		done := func(key string) {
			t.Helper()
			if err := again().Done(t.Context(), name, key); err != nil {
				t.Error(err)
			}
		}
		begin("k1", "k1", false)
		begin("another", "k1", true)
		done("k1")
		begin("k2", "k2", false)
		done("k1")
		if alone, err := again().Alone(t.Context(), name, "k2"); err != nil || !alone {
			t.Errorf("the next operation is there: %v, %v", alone, err)
		}
		begin("k3", "k2", true)
		done("k2")
		begin("k3", "k3", false)
	})
}

// However late callers end operations that were ended before, the one that has the name now stays until its own end.
func TestLateDonesMeetNextOperations(t *testing.T) {
	eachJournal(t, 0, func(t *testing.T, again func() client.Journal) {
		const name = "order-17/charge"
		var mu sync.Mutex
		var ended []string
		var wg sync.WaitGroup
		for worker := range 4 {
			j := again()
			wg.Go(func() {
				for n := range 10 {
					entry, resumed, err := j.Begin(context.Background(), name, client.Entry{Key: fmt.Sprint(worker, "-", n)})
					mu.Lock()
					late := append([]string(nil), ended...)
					mu.Unlock()
					for _, key := range late[max(0, len(late)-3):] {
						err = errors.Join(err, j.Done(context.Background(), name, key))
					}
					if !resumed && err == nil {
						kept, again, looked := j.Begin(context.Background(), name, client.Entry{Key: "none"})
						if kept.Key != entry.Key || !again {
							t.Errorf("%s has the place of %s, resumed %v", kept.Key, entry.Key, again)
						}
						err = errors.Join(looked, j.Done(context.Background(), name, entry.Key))
						mu.Lock()
						ended = append(ended, entry.Key)
						mu.Unlock()
					}
					if err != nil && !errors.Is(err, fs.ErrNotExist) { // it was ended between two looks: nothing is sent
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if len(ended) == 0 {
			t.Error("no operation began")
		}
	})
}
