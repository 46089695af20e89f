package linear_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/localstack/linear"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// service is two HTTP servers, each with its own engine, on the same tables of an emulator.
type service struct {
	*testing.T
	urls []string
}

type broken func(http.Handler) http.Handler

func newService(t *testing.T, breaks broken) service {
	t.Helper()
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Dynoxide))
	tables, err := dynamotest.CreateTables(t.Context(), client, "linear-"+strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())))
	if err != nil {
		t.Fatal(err)
	}
	s := service{T: t}
	for range 2 {
		store, err := dynamo.New(client, dynamo.Config{IdempotencyTable: tables.Idempotency, OutboxTable: tables.Outbox})
		if err != nil {
			t.Fatal(err)
		}
		quiet := slog.New(slog.DiscardHandler)
		engine, err := idem.New(store, idem.Config{Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		mw, err := middleware.New(engine, middleware.Config{Logger: quiet, Identify: func(*http.Request) (middleware.Identity, error) {
			return middleware.Identity{Tenant: "tenant"}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		h, err := mw.Handle(idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}, middleware.Route{},
			func(_ context.Context, tx *idem.Tx, _ *middleware.Request) (idem.Response, error) {
				time.Sleep(time.Duration(rand.IntN(15)) * time.Millisecond)
				return idem.JSON(http.StatusCreated, map[string]string{"id": string(tx.OperationID())})
			})
		if err != nil {
			t.Fatal(err)
		}
		if breaks != nil {
			h = breaks(h)
		}
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		s.urls = append(s.urls, server.URL)
	}
	return s
}

// The size of a history. Porcupine's search grows with how many requests overlap.
const clients, requestsEach = 6, 3

// history has clients send requests under one key, to both servers, for the same thing and now and then for another one. Some go away
// before they are answered.
func (s service) history(n int, began time.Time) []porcupine.Operation {
	s.Helper()
	var mu sync.Mutex
	var all []porcupine.Operation
	var running sync.WaitGroup
	for c := range clients {
		chance := rand.New(rand.NewPCG(uint64(n), uint64(c)))
		running.Go(func() {
			for range requestsEach {
				time.Sleep(time.Duration(chance.IntN(12)) * time.Millisecond)
				asked := linear.Request{Body: `{"item":"book"}`}
				if chance.IntN(5) == 0 {
					asked.Body = `{"item":"pen"}`
				}
				ctx, leave := context.WithCancel(s.Context())
				if chance.IntN(8) == 0 {
					ctx, leave = context.WithTimeout(s.Context(), time.Duration(chance.IntN(20))*time.Millisecond)
				}
				op := porcupine.Operation{ClientId: c, Input: asked, Call: int64(time.Since(began))}
				answer, err := s.ask(ctx, s.urls[chance.IntN(len(s.urls))], n, asked.Body)
				leave()
				op.Output, op.Return = answer, int64(time.Since(began))
				if answer.Outcome == linear.Lost { // it may be executed at any later time
					op.Return = math.MaxInt64
				}
				mu.Lock()
				all = append(all, op)
				if err != nil {
					s.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	running.Wait()
	return all
}

// ask sends one request.
func (s service) ask(ctx context.Context, url string, n int, body string) (linear.Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/orders", strings.NewReader(body))
	if err != nil {
		return linear.Answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(header.NameKey, `"history-`+strconv.Itoa(n)+`"`)
	lost := linear.Answer{Outcome: linear.Lost}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return lost, nil // the client has gone away
	}
	defer res.Body.Close()
	read, err := io.ReadAll(res.Body)
	if err != nil {
		return lost, nil
	}
	return linear.Told(res.StatusCode, res.Header, string(read))
}

// check counts the outcomes of so many histories, and names those that no order explains.
func (s service) check(histories int) (unexplained []string, outcomes map[linear.Outcome]int) {
	s.Helper()
	outcomes, began := map[linear.Outcome]int{}, time.Now()
	for n := range histories {
		all := s.history(n, began)
		for _, op := range all {
			outcomes[op.Output.(linear.Answer).Outcome]++
		}
		for name, model := range linear.Models() {
			if result := porcupine.CheckOperationsTimeout(model, all, time.Minute); result != porcupine.Ok {
				unexplained = append(unexplained, fmt.Sprintf("history %d by %s: %s", n, name, result))
			}
		}
	}
	return unexplained, outcomes
}

// docs/design.md I1, I4: what clients see of a key, of two servers at once, is explained by one order of reserves and commits.
func TestHistoriesOfOneKeyAreLinearizable(t *testing.T) {
	histories := 150
	if testing.Short() {
		histories = 30
	}
	s := newService(t, nil)
	unexplained, outcomes := s.check(histories)
	t.Logf("%d histories of %d requests: %v", histories, clients*requestsEach, outcomes)
	if len(unexplained) > 0 {
		t.Errorf("no order explains %v", unexplained)
	}
	for _, o := range []linear.Outcome{linear.Executed, linear.Replayed, linear.Mismatch, linear.Busy, linear.Lost} {
		if outcomes[o] == 0 {
			t.Errorf("no request was %s: such an answer is not judged", o)
		}
	}
}

// A service that breaks the contract now and then is found by its histories: otherwise they would show nothing.
func TestHistoriesOfABrokenServiceAreNot(t *testing.T) {
	var anew atomic.Int64
	now := func(every int64, n *atomic.Int64) bool { return n.Add(1)%every == 0 }
	for name, breaks := range map[string]broken{
		"one in twenty requests executes under a key of its own": func(next http.Handler) http.Handler {
			var n atomic.Int64
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if now(20, &n) {
					r.Header.Set(header.NameKey, fmt.Sprintf(`"anew-%d"`, anew.Add(1)))
				}
				next.ServeHTTP(w, r)
			})
		},
		"the payload is not looked at": func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Body = io.NopCloser(strings.NewReader(`{"item":"book"}`))
				r.ContentLength = -1
				next.ServeHTTP(w, r)
			})
		},
		"one in ten replays is another answer": changed(10, func(w *httptest.ResponseRecorder) {
			if w.Header().Get(header.NameStatus) == "replayed" {
				w.Body.WriteString(" ")
			}
		}),
		"one in ten replays is told that the request runs": changed(10, func(w *httptest.ResponseRecorder) {
			if w.Header().Get(header.NameStatus) == "replayed" {
				w.Code = http.StatusConflict
				w.Header().Set(header.NameStatus, "in_progress")
			}
		}),
		"one in ten replays is told of a mismatch": changed(10, func(w *httptest.ResponseRecorder) {
			if w.Header().Get(header.NameStatus) == "replayed" {
				w.Code = http.StatusUnprocessableEntity
				w.Header().Set(header.NameStatus, "mismatch")
			}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, breaks)
			for n := 1; n <= 8; n++ {
				if unexplained, _ := s.check(n * 5); len(unexplained) > 0 {
					t.Logf("found within %d histories: %s", n*5, unexplained[0])
					return
				}
			}
			t.Error("every history has an order")
		})
	}
}

// changed breaks one in so many of the answers, where the change is about such an answer.
func changed(every int64, change func(*httptest.ResponseRecorder)) broken {
	return func(next http.Handler) http.Handler {
		var n atomic.Int64
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got := httptest.NewRecorder()
			next.ServeHTTP(got, r)
			if n.Add(1)%every == 0 {
				change(got)
			}
			for name, values := range got.Header() {
				w.Header()[name] = values
			}
			w.Header().Del("Content-Length") // of the body before the change
			w.WriteHeader(got.Code)
			_, _ = w.Write(got.Body.Bytes())
		})
	}
}
