package clients

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/client"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// server is an API whose first answers are lost on the way. It counts requests and orders.
type server struct {
	service          http.Handler
	loses            int64
	requests, orders atomic.Int64
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.requests.Add(1) > s.loses {
		s.service.ServeHTTP(w, r)
		return
	}
	s.service.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler) // the connection breaks after the order was placed
}

func newServer(t *testing.T, loses int64) (*server, string) {
	t.Helper()
	s := &server{loses: loses}
	operation := idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}
	mw := check.Get(middleware.New(check.NewWorld(t).Engine, middleware.Config{Identify: func(*http.Request) (middleware.Identity, error) {
		return middleware.Identity{Tenant: "customer-1"}, nil
	}}))(t)
	s.service = check.Get(mw.Handle(operation, middleware.Route{}, func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
		s.orders.Add(1)
		return idem.JSON(http.StatusCreated, map[string]string{"order": "17"})
	}))(t)
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	return s, listening.URL
}

// table is the shop's, by the orders' names. Its process dies before it has kept an answer, or right after that, where there is such an
// error; or it can't read the table.
type table struct {
	rows                  map[string]Answer
	before, after, unread error
}

func (k *table) answers() Answers {
	return Answers{
		Kept: func(name string) (Answer, bool, error) {
			answer, found := k.rows[name]
			return answer, found, k.unread
		},
		Keep: func(name string, answer Answer) error {
			if was, found := k.rows[name]; (!found || was.Status == 0) && k.before == nil {
				k.rows[name] = answer
			}
			return errors.Join(k.before, k.after)
		},
		Drop: func(name, key string) error {
			if k.rows[name] == (Answer{Key: key}) {
				delete(k.rows, name)
			}
			return nil
		},
	}
}

var errDied = errors.New("power cut")

func TestThePageShowsOneOrderWhateverIsLost(t *testing.T) {
	page := check.NewPage(t, "retrying-clients.md")
	s, url := newServer(t, 2)
	kept := &table{rows: map[string]Answer{}}
	shop := check.Get(NewShop(url, t.TempDir(), kept.answers()))(t)
	answer := check.Get(shop.Order(t.Context(), "order-17", `{"item":"book"}`))(t)
	page.Text("lost answers", fmt.Sprintf("requests %d, orders %d, kept %d %s\n", s.requests.Load(), s.orders.Load(), answer.Status, answer.Body))

	// The process dies before it has said that the job is done, or the queue has it twice: the job comes again.
	answer = check.Get(shop.Order(t.Context(), "order-17", `{"item":"book"}`))(t)
	page.Text("the job again", fmt.Sprintf("requests %d, orders %d, kept %d %s\n", s.requests.Load(), s.orders.Load(), answer.Status, answer.Body))

	// The process dies before it has kept the answer. The next one finds the key, and gets the same answer.
	s, url = newServer(t, 0)
	folder := t.TempDir()
	kept.before = errDied
	shop = check.Get(NewShop(url, folder, kept.answers()))(t)
	if _, err := shop.Order(t.Context(), "order-18", `{"item":"book"}`); !errors.Is(err, errDied) || !errors.Is(err, client.ErrUnknown) {
		t.Fatal(err)
	}
	kept.before = nil
	again := check.Get(NewShop(url, folder, kept.answers()))(t)
	answer = check.Get(again.Order(t.Context(), "order-18", `{"item":"book"}`))(t)
	page.Text("restart", fmt.Sprintf("requests %d, orders %d, kept %d %s\n", s.requests.Load(), s.orders.Load(), answer.Status, answer.Body))

	// The token is over when the order is sent first.
	s, _ = newServer(t, 0)
	url = front(t, s, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	shop = check.Get(NewShop(url, t.TempDir(), kept.answers()))(t)
	_, refused := shop.Order(t.Context(), "order-20", `{"item":"book"}`)
	answer = check.Get(shop.Order(t.Context(), "order-20", `{"item":"book"}`))(t)
	page.Text("a refusal", fmt.Sprintf("first %v\nthen orders %d, kept %d %s\n", refused, s.orders.Load(), answer.Status, answer.Body))

	// Another body under the same name is an error, and the first one may have been ordered: it was.
	s, url = newServer(t, 0)
	kept.before = errDied
	shop = check.Get(NewShop(url, t.TempDir(), kept.answers()))(t)
	_, _ = shop.Order(t.Context(), "order-19", `{"item":"book","at":"12:00:00"}`)
	_, err := shop.Order(t.Context(), "order-19", `{"item":"book","at":"12:00:07"}`)
	var mismatch *client.MismatchError
	if !errors.As(err, &mismatch) {
		t.Fatal(err)
	}
	page.Text("another body", fmt.Sprintf("requests %d, orders %d, may have been placed: %v\n", s.requests.Load(), s.orders.Load(), errors.Is(err, client.ErrUnknown)))
}

// front serves the API behind something that answers the first request by itself.
func front(t *testing.T, s *server, first http.HandlerFunc) string {
	t.Helper()
	var requests atomic.Int64
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			first(w, r)
			return
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(listening.Close)
	return listening.URL
}

// The answer is kept, and its key forgotten or not, when the same job comes again: it is one order, and the key is forgotten in the end.
func TestAJobThatComesAgainAfterItsAnswerIsKeptOrdersNothing(t *testing.T) {
	for name, dies := range map[string]error{"the key is forgotten": nil, "the process dies before it forgets the key": errDied} {
		t.Run(name, func(t *testing.T) {
			s, url := newServer(t, 0)
			folder, kept := t.TempDir(), &table{rows: map[string]Answer{}, after: dies}
			shop := check.Get(NewShop(url, folder, kept.answers()))(t)
			if _, err := shop.Order(t.Context(), "order-17", `{"item":"book"}`); !errors.Is(err, dies) || errors.Is(err, client.ErrUnknown) != (dies != nil) {
				t.Fatal(err)
			}
			again := check.Get(NewShop(url, folder, kept.answers()))(t)
			answer := check.Get(again.Order(t.Context(), "order-17", `{"item":"book"}`))(t)
			if answer.Status != http.StatusCreated || answer.Body != `{"order":"17"}` || s.requests.Load() != 1 || s.orders.Load() != 1 {
				t.Errorf("%q after %d requests and %d orders", answer.Body, s.requests.Load(), s.orders.Load())
			}
			if entries := check.Get(os.ReadDir(folder))(t); len(entries) != 0 {
				t.Errorf("the journal has %v still", entries)
			}
		})
	}
}

// A 401, the 404 or 413 of a gateway or a login page says nothing about the order: it is no answer to keep, and its key is not forgotten.
func TestWhatDecidesNothingIsNotKept(t *testing.T) {
	for _, status := range []int{401, 403, 404, 413, 303} {
		s, _ := newServer(t, 0)
		url := front(t, s, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/login")
			w.WriteHeader(status)
		})
		folder, kept := t.TempDir(), &table{rows: map[string]Answer{}}
		shop := check.Get(NewShop(url, folder, kept.answers()))(t)
		if answer, err := shop.Order(t.Context(), "order-17", `{"item":"book"}`); !errors.Is(err, client.ErrUnknown) || len(kept.rows) != 0 {
			t.Errorf("%d: %+v, %v, kept %v", status, answer, err, kept.rows)
		}
		if entries := check.Get(os.ReadDir(folder))(t); len(entries) != 1 {
			t.Errorf("%d: the journal has %v", status, entries)
		}
		answer := check.Get(shop.Order(t.Context(), "order-17", `{"item":"book"}`))(t)
		if answer.Status != http.StatusCreated || kept.rows["order-17"] != answer || s.orders.Load() != 1 {
			t.Errorf("%d: %+v, kept %v, %d orders", status, answer, kept.rows, s.orders.Load())
		}
		if entries := check.Get(os.ReadDir(folder))(t); len(entries) != 0 {
			t.Errorf("%d: the journal has %v still", status, entries)
		}
	}
}

// A person who has looked ends an order that is never answered, so that it takes up no place.
func TestAnOrderThatIsGivenUpLeavesTheJournal(t *testing.T) {
	s, _ := newServer(t, 0)
	url := front(t, s, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	folder, kept := t.TempDir(), &table{rows: map[string]Answer{}}
	shop := check.Get(NewShop(url, folder, kept.answers()))(t)
	_, err := shop.Order(t.Context(), "order-17", `{"item":"book"}`)
	var undecided *UndecidedError
	if !errors.As(err, &undecided) {
		t.Fatal(err)
	}
	if err := shop.GiveUp(t.Context(), "order-17", undecided.Key); err != nil {
		t.Error(err)
	}
	if entries := check.Get(os.ReadDir(folder))(t); len(entries) != 0 {
		t.Errorf("the journal has %v still", entries)
	}
}

// What is stored, or says that the order was executed, is its answer whatever its status is: no second order, and no entry that stays.
func TestAStoredAnswerDecidesWhateverItsStatusIs(t *testing.T) {
	problem := func(code string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			status := map[string]int{"idempotency_response_not_kept": 500, "idempotency_response_erased": 410, "provider_unavailable": 502}[code]
			if status == http.StatusBadGateway {
				w.Header().Set("Idempotent-Replayed", "true")
			}
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"code":%q}`, code)
		}
	}
	for name, c := range map[string]struct {
		service http.HandlerFunc
		status  int
	}{
		"executed, and not kept":   {problem("idempotency_response_not_kept"), 500},
		"erased":                   {problem("idempotency_response_erased"), 410},
		"failed, and replayed":     {problem("provider_unavailable"), 502},
		"failed, after it was 202": {accepted(`{"state":"failed","response":{"status":502,"headers":{},"body":"{}"}}`), 502},
		"closed, after it was 202": {accepted(`{"state":"failed","response":{"status":408,"headers":{},"body":"{}"}}`), 408},
	} {
		t.Run(name, func(t *testing.T) {
			listening := httptest.NewServer(c.service)
			defer listening.Close()
			folder, kept := t.TempDir(), &table{rows: map[string]Answer{}}
			shop := check.Get(NewShop(listening.URL, folder, kept.answers()))(t)
			answer, err := shop.Order(t.Context(), "order-17", `{"item":"book"}`)
			if err != nil || answer.Status != c.status || kept.rows["order-17"] != answer {
				t.Errorf("%+v, %v, kept %v", answer, err, kept.rows)
			}
			if entries := check.Get(os.ReadDir(folder))(t); len(entries) != 0 {
				t.Errorf("the journal has %v still", entries)
			}
		})
	}
}

// accepted answers 202, and its Location with the status.
func accepted(status string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.Header().Set("Location", "/operations/1")
			w.WriteHeader(http.StatusAccepted)
			return
		}
		fmt.Fprint(w, status)
	}
}

// A 202 is followed to its end: a decline that comes later is the order's answer.
func TestWhatIsPendingIsFollowedToItsEnd(t *testing.T) {
	listening := httptest.NewServer(accepted(`{"state":"completed","response":{"status":402,"headers":{},"body":"declined"}}`))
	defer listening.Close()
	folder, kept := t.TempDir(), &table{rows: map[string]Answer{}}
	shop := check.Get(NewShop(listening.URL, folder, kept.answers()))(t)
	answer := check.Get(shop.Order(t.Context(), "order-17", `{"item":"book"}`))(t)
	if answer.Status != http.StatusPaymentRequired || answer.Body != "declined" || kept.rows["order-17"] != answer {
		t.Errorf("%+v, kept %v", answer, kept.rows)
	}
	if entries := check.Get(os.ReadDir(folder))(t); len(entries) != 0 {
		t.Errorf("the journal has %v still", entries)
	}
}

// An answer that is too long to be read ahead breaks off while it is read: the order was placed, and its key is kept.
func TestWhatBreaksOffMayHaveBeenPlaced(t *testing.T) {
	s, _ := newServer(t, 0)
	keys := make(chan string, 2)
	torn := front(t, s, func(w http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("Idempotency-Key")
		w.Header().Set("Content-Length", fmt.Sprint(16<<20))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(make([]byte, 9<<20))
		panic(http.ErrAbortHandler)
	})
	s.service = recorded(s.service, keys)
	kept := &table{rows: map[string]Answer{}}
	shop := check.Get(NewShop(torn, t.TempDir(), kept.answers()))(t)
	if answer, err := shop.Order(t.Context(), "order-17", `{"item":"book"}`); !errors.Is(err, client.ErrUnknown) || len(kept.rows) != 0 {
		t.Errorf("%d bytes, %v, want that the order may have been placed", len(answer.Body), err)
	}
	check.Get(shop.Order(t.Context(), "order-17", `{"item":"book"}`))(t)
	if first, second := <-keys, <-keys; first != second {
		t.Errorf("the keys %s and %s", first, second)
	}
}

// An answer without an end is not read to its end: the order may have been placed, and nothing is kept of it.
func TestWhatDoesNotEndMayHaveBeenPlaced(t *testing.T) {
	s, _ := newServer(t, 0)
	endless := front(t, s, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		for piece := make([]byte, 1<<20); ; {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	})
	kept := &table{rows: map[string]Answer{}}
	shop := check.Get(NewShop(endless, t.TempDir(), kept.answers()))(t)
	if answer, err := shop.Order(t.Context(), "order-17", `{"item":"book"}`); !errors.Is(err, client.ErrUnknown) || len(kept.rows) != 0 {
		t.Errorf("%d bytes, %v, want that the order may have been placed", len(answer.Body), err)
	}
}

// Where the server says that the key protects nothing, or no longer has it, the same request might place the order again.
func TestWhatMightBePlacedAgainIsNotToBeSentAgain(t *testing.T) {
	for name, second := range map[string]http.HandlerFunc{
		"unprotected": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Idempotency-Status", "unprotected")
			w.WriteHeader(http.StatusPaymentRequired)
		},
		"unprotected, and its end is not seen": func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			w.Header().Set("Idempotency-Status", "unprotected")
			accepted("")(w, r)
		},
		"expired": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusGone)
			fmt.Fprint(w, `{"code":"idempotency_key_expired"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newServer(t, 1)
			var requests atomic.Int64
			listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if requests.Add(1) == 1 {
					s.ServeHTTP(w, r)
					return
				}
				second(w, r)
			}))
			defer listening.Close()
			neverAgain(t, listening.URL, &requests)
			if s.orders.Load() != 1 {
				t.Errorf("%d orders", s.orders.Load())
			}
		})
	}
}

// neverAgain calls twice for an order that is not to be sent again, by one process after the other, as a queue does whose job has failed.
// Both are told so, and the second one sends nothing. Given up by a person, the order leaves nothing behind.
func neverAgain(t *testing.T, url string, requests *atomic.Int64) {
	t.Helper()
	folder, kept := t.TempDir(), &table{rows: map[string]Answer{}}
	var shop *Shop
	var undecided *UndecidedError
	sent := int64(0)
	for call := range 2 {
		shop = check.Get(NewShop(url, folder, kept.answers()))(t)
		_, err := shop.Order(t.Context(), "order-17", `{"item":"book"}`)
		if !errors.Is(err, client.ErrUnknown) || strings.Contains(err.Error(), "call again") || !strings.Contains(err.Error(), "do not send it again") {
			t.Errorf("call %d: %v, want that it must not be sent again", call, err)
		}
		if !errors.As(err, &undecided) || undecided.Key == "" || kept.rows["order-17"] != (Answer{Key: undecided.Key}) {
			t.Fatalf("call %d: %v, kept %v, want a mark", call, err, kept.rows)
		}
		if call > 0 && requests.Load() != sent {
			t.Errorf("call %d sent something: %d requests after %d", call, requests.Load(), sent)
		}
		sent = requests.Load()
	}
	mark, placed := kept.rows["order-17"], Answer{http.StatusCreated, `{"order":"17"}`, undecided.Key}
	if err := kept.answers().Keep("order-17", placed); err != nil { // by a person who has seen that the order was placed
		t.Error(err)
	}
	if answer, err := shop.Order(t.Context(), "order-17", `{"item":"book"}`); err != nil || answer != placed || requests.Load() != sent {
		t.Errorf("an answer that a person has kept: %v, %v, %d requests after %d", answer, err, requests.Load(), sent)
	}
	kept.rows["order-17"] = mark
	if err := shop.GiveUp(t.Context(), "order-17", undecided.Key); err != nil || len(kept.rows) != 0 {
		t.Errorf("given up: %v, kept %v", err, kept.rows)
	}
	if entries := check.Get(os.ReadDir(folder))(t); len(entries) != 0 {
		t.Errorf("the journal has %v still", entries)
	}
}

// A database that fails after the order was placed, or before it is known whether an earlier call placed it, proves nothing: the error
// says so, and whether the same name may be called again. Where only the key could not be forgotten the order has its answer.
func TestWhatCannotBeKeptMayHaveBeenPlaced(t *testing.T) {
	t.Run("its answer", func(t *testing.T) {
		s, url := newServer(t, 0)
		kept := &table{rows: map[string]Answer{}, before: errDied}
		shop := check.Get(NewShop(url, t.TempDir(), kept.answers()))(t)
		_, err := shop.Order(t.Context(), "order-17", `{"item":"book"}`)
		if !errors.Is(err, client.ErrUnknown) || !errors.Is(err, errDied) || !strings.Contains(err.Error(), "call again") {
			t.Errorf("%v, want that it may have been placed, and that the same name is safe", err)
		}
		kept.before = nil
		check.Get(shop.Order(t.Context(), "order-17", `{"item":"book"}`))(t)
		if s.orders.Load() != 1 {
			t.Errorf("%d orders", s.orders.Load())
		}
	})
	t.Run("its answer, which the key does not protect", func(t *testing.T) {
		s, _ := newServer(t, 0)
		listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.ServeHTTP(httptest.NewRecorder(), r)
			w.Header().Set("Idempotency-Status", "unprotected")
			w.WriteHeader(http.StatusCreated)
		}))
		defer listening.Close()
		kept := &table{rows: map[string]Answer{}, before: errDied}
		shop := check.Get(NewShop(listening.URL, t.TempDir(), kept.answers()))(t)
		_, err := shop.Order(t.Context(), "order-17", `{"item":"book"}`)
		if !errors.Is(err, client.ErrUnknown) || !errors.Is(err, errDied) || strings.Contains(err.Error(), "call again") {
			t.Errorf("%v, want that it may have been placed, and is not to be sent again", err)
		}
		kept.unread = errDied // the queue delivers the job again, while the database is down and once it is back
		for range 2 {
			_, err := shop.Order(t.Context(), "order-17", `{"item":"book"}`)
			if !errors.Is(err, client.ErrUnknown) || strings.Contains(err.Error(), "call again") {
				t.Errorf("again: %v, want that it may have been placed, and is not to be sent again", err)
			}
			kept.unread, kept.before = nil, nil
		}
		var undecided *UndecidedError
		if !errors.As(err, &undecided) || kept.rows["order-17"] != (Answer{Key: undecided.Key}) || s.orders.Load() != 1 {
			t.Fatalf("%d orders, kept %v, want the mark now", s.orders.Load(), kept.rows)
		}
		if err := shop.GiveUp(t.Context(), "order-17", undecided.Key); err != nil {
			t.Error(err)
		}
		check.Get(shop.Order(t.Context(), "order-17", `{"item":"book"}`))(t)
		if s.orders.Load() != 2 {
			t.Errorf("%d orders, want that the name is a new one", s.orders.Load())
		}
	})
	t.Run("the mark of one that is given up", func(t *testing.T) {
		kept := &table{rows: map[string]Answer{}, before: errDied}
		listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Add("Idempotency-Status", "executed") // and so did the server behind this one
			w.Header().Add("Idempotency-Status", "ignored")
			w.WriteHeader(http.StatusCreated)
		}))
		defer listening.Close()
		shop := check.Get(NewShop(listening.URL, t.TempDir(), kept.answers()))(t)
		_, err := shop.Order(t.Context(), "order-17", `{"item":"book"}`)
		var undecided *UndecidedError
		if !errors.As(err, &undecided) || undecided.Protected {
			t.Fatalf("%v, want that it is not to be sent again", err)
		}
		kept.before = nil
		if err := shop.GiveUp(t.Context(), "order-17", undecided.Key); err != nil {
			t.Error(err)
		}
		check.Get(shop.Order(t.Context(), "order-17", `{"item":"book"}`))(t)
	})
	t.Run("an earlier answer, which can't be read", func(t *testing.T) {
		s, url := newServer(t, 0)
		kept := &table{rows: map[string]Answer{}, unread: errDied}
		shop := check.Get(NewShop(url, t.TempDir(), kept.answers()))(t)
		if _, err := shop.Order(t.Context(), "order-17", `{"item":"book"}`); !errors.Is(err, client.ErrUnknown) || !errors.Is(err, errDied) || s.requests.Load() != 0 {
			t.Errorf("%v after %d requests", err, s.requests.Load())
		}
	})
	t.Run("its key, which can't be forgotten", func(t *testing.T) {
		s, url := newServer(t, 0)
		folder, kept := filepath.Join(t.TempDir(), "keys"), &table{rows: map[string]Answer{}}
		answers := kept.answers()
		answers.Keep = func(name string, answer Answer) error {
			return errors.Join(kept.answers().Keep(name, answer), os.RemoveAll(folder))
		}
		shop := check.Get(NewShop(url, folder, answers))(t)
		answer, err := shop.Order(t.Context(), "order-17", `{"item":"book"}`)
		if err == nil || errors.Is(err, client.ErrUnknown) || !strings.Contains(err.Error(), "the order has its answer") || answer.Status != http.StatusCreated {
			t.Errorf("%+v, %v, want the answer, and that only the key is left", answer, err)
		}
		again := check.Get(NewShop(url, folder, answers))(t)
		if same := check.Get(again.Order(t.Context(), "order-17", `{"item":"book"}`))(t); same != answer || s.requests.Load() != 1 {
			t.Errorf("%+v after %d requests, want %+v", same, s.requests.Load(), answer)
		}
	})
}

// The same of the first answer, where it says that the key protects nothing: the next attempt would be executed, too.
func TestAFirstAnswerThatProtectsNothingIsNotToBeSentAgain(t *testing.T) {
	for _, status := range []string{"unprotected", "ignored"} {
		s, _ := newServer(t, 0)
		listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.ServeHTTP(httptest.NewRecorder(), r)
			w.Header().Set("Idempotency-Status", status)
			w.WriteHeader(http.StatusInternalServerError)
		}))
		defer listening.Close()
		neverAgain(t, listening.URL, &s.requests)
		if s.orders.Load() != 1 {
			t.Errorf("%s: %d orders", status, s.orders.Load())
		}
	}
}

// recorded tells the key of each request.
func recorded(service http.Handler, keys chan<- string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("Idempotency-Key")
		service.ServeHTTP(w, r)
	})
}
