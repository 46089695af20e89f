package linear_test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
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
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/linear"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil { // clients and handlers mostly wait
		panic(err)
	}
	os.Exit(dynamotest.Main(m))
}

// service is two HTTP servers, each with its own engine and worker, on the same tables of an emulator.
type service struct {
	*testing.T
	kind idem.Kind
	urls []string
	// keys begins the names of the service's keys.
	keys string
	// deliveries are the workers' that go on beside the requests.
	deliveries *sync.WaitGroup
}

type broken func(http.Handler) http.Handler

const topic = "orders.ship"

// shared are the tables of all services: each has keys of its own.
var shared struct {
	once   sync.Once
	tables dynamotest.Tables
	err    error
}

var services atomic.Int64

func newService(t *testing.T, kind idem.Kind, breaks broken) service {
	t.Helper()
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Dynoxide), wirefault.Patiently)
	shared.once.Do(func() {
		shared.tables, shared.err = dynamotest.CreateTables(context.WithoutCancel(t.Context()), client, "linear")
	})
	must(t, shared.err)
	s := service{T: t, kind: kind, keys: fmt.Sprintf("service-%d-history-", services.Add(1)), deliveries: &sync.WaitGroup{}}
	t.Cleanup(s.deliveries.Wait)
	for range 2 {
		store, err := dynamo.New(client, dynamo.Config{IdempotencyTable: shared.tables.Idempotency, OutboxTable: shared.tables.Outbox})
		must(t, err)
		h := s.routes(store)
		if breaks != nil {
			h = breaks(h)
		}
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		s.urls = append(s.urls, server.URL)
	}
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// routes are one server's: orders of the kind, and the status of operations.
func (s service) routes(store *dynamo.Store) http.Handler {
	s.Helper()
	quiet := slog.New(slog.DiscardHandler)
	engine, err := idem.New(store, idem.Config{Logger: quiet})
	must(s.T, err)
	mw, err := middleware.New(engine, middleware.Config{Logger: quiet, Identify: func(*http.Request) (middleware.Identity, error) {
		return middleware.Identity{Tenant: "tenant"}, nil
	}})
	must(s.T, err)
	operation := idem.Operation{Name: "orders.create", Kind: s.kind, Policy: idem.IETF()}
	mux := http.NewServeMux()
	var orders http.Handler
	if s.kind == idem.KindWrapped {
		operation.ReleaseOn = []int{http.StatusServiceUnavailable}
		orders, err = mw.Wrap(operation, middleware.Route{}, http.HandlerFunc(wrapped))
	} else {
		orders, err = mw.Handle(operation, middleware.Route{}, s.handler(s.worker(store, quiet)))
	}
	must(s.T, err)
	mux.Handle("POST /orders", orders)
	mux.Handle("GET /v1/operations/{id}", mw.Status(store))
	return mux
}

// worker delivers the messages of a deferred operation.
func (s service) worker(store *dynamo.Store, quiet *slog.Logger) *outbox.Worker {
	s.Helper()
	topics, err := outbox.NewTopics(outbox.Config{Logger: quiet}, outbox.Topic{
		Name: topic, Keys: outbox.Keys{Honoured: true, Retention: 24 * time.Hour},
		Call: func(_ context.Context, m storage.Message) outbox.Outcome {
			return outbox.Delivered{Reference: string(m.ID)}
		},
		Settle: func(m storage.Message, _ outbox.Outcome) (outbox.Settlement, error) {
			response, err := idem.JSON(http.StatusCreated, map[string]string{"shipped": string(m.OperationID)})
			return outbox.Settlement{Response: response}, err
		},
	})
	must(s.T, err)
	queue := memqueue.New(time.Now)
	worker, err := outbox.NewWorker(store, topics, queue, queue)
	must(s.T, err)
	return worker
}

// One in so many executions does nothing, and says so; of a wrapped handler, one in so many others says that it does not know.
const freeing, parking = 4, 3

// pause is how long something takes.
func pause(most int) { time.Sleep(time.Duration(rand.IntN(most)) * time.Millisecond) }

// handler makes an order. One that is deferred is shipped by a worker, soon after its commit.
func (s service) handler(worker *outbox.Worker) middleware.Handler {
	return func(_ context.Context, tx *idem.Tx, _ *middleware.Request) (idem.Response, error) {
		pause(15)
		id := tx.OperationID()
		if s.kind != idem.KindAtomic && rand.IntN(freeing) == 0 {
			return idem.JSON(http.StatusServiceUnavailable, map[string]string{"code": "no_paper"})
		}
		if s.kind != idem.KindDeferred {
			return idem.JSON(http.StatusCreated, map[string]string{"id": string(id)})
		}
		tx.Send(topic, []byte("{}"))
		s.deliveries.Go(func() {
			for range 3 { // before the commit there is nothing to deliver
				pause(25)
				if err := worker.Deliver(context.WithoutCancel(s.Context()), id.Message(1)); err != nil {
					s.Errorf("deliver: %v", err)
				}
			}
		})
		return idem.JSON(http.StatusAccepted, map[string]string{"id": string(id)})
	}
}

// orders counts what wrapped handlers have made.
var orders atomic.Int64

func wrapped(w http.ResponseWriter, _ *http.Request) {
	pause(15)
	switch {
	case rand.IntN(freeing) == 0:
		w.WriteHeader(http.StatusServiceUnavailable)
	case rand.IntN(parking) == 0:
		w.WriteHeader(http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"order":%d}`, orders.Add(1)) // the client may have gone
	}
}

// The size of a history. Porcupine's search grows with how many requests overlap.
const clients, requestsEach = 6, 3

// history has clients send requests under one key, to both servers, for the same thing and now and then for another one. Some go away
// before they are answered. Once one was told where the operation's status is, others look there, too.
func (s service) history(n int, began time.Time) []porcupine.Operation {
	s.Helper()
	var mu sync.Mutex
	var all []porcupine.Operation
	var running sync.WaitGroup
	var location atomic.Pointer[string]
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
				url, curious := s.urls[chance.IntN(len(s.urls))], chance.IntN(3) == 0
				at := location.Load()
				asked.Status = curious && at != nil
				op := porcupine.Operation{ClientId: c, Input: asked, Call: int64(time.Since(began))}
				var answer linear.Answer
				var err error
				if asked.Status {
					answer, err = look(ctx, url+*at)
				} else {
					answer, err = s.ask(ctx, url, n, asked.Body, &location)
				}
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

// ask sends one request, and keeps the Location of its 202.
func (s service) ask(ctx context.Context, url string, n int, body string, location *atomic.Pointer[string]) (linear.Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/orders", strings.NewReader(body))
	if err != nil {
		return linear.Answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(header.NameKey, `"`+s.keys+strconv.Itoa(n)+`"`)
	res, read, ok := sent(req)
	if !ok {
		return linear.Answer{Outcome: linear.Lost}, nil
	}
	if at := res.Header.Get("Location"); at != "" {
		location.Store(&at)
	}
	return linear.Told(res.StatusCode, res.Header, read)
}

// look asks for an operation's status.
func look(ctx context.Context, url string) (linear.Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return linear.Answer{}, err
	}
	res, read, ok := sent(req)
	if !ok {
		return linear.Answer{Outcome: linear.Lost}, nil
	}
	return linear.Shown(res.StatusCode, read)
}

// sent sends a request; false where the client has gone away before it had the answer.
func sent(req *http.Request) (res *http.Response, body string, answered bool) {
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, "", false
	}
	defer res.Body.Close()
	read, err := io.ReadAll(res.Body)
	return res, string(read), err == nil
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
		for name, model := range linear.Models(s.kind) {
			if result := porcupine.CheckOperationsTimeout(model, all, time.Minute); result != porcupine.Ok {
				unexplained = append(unexplained, fmt.Sprintf("history %d by %s: %s%s", n, name, result, lines(model, all)))
			}
		}
	}
	return unexplained, outcomes
}

// lines are a history, by when the requests were sent.
func lines(model porcupine.Model, all []porcupine.Operation) string {
	slices.SortFunc(all, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var text strings.Builder
	for _, op := range all {
		fmt.Fprintf(&text, "\n    client %d, from %v to %v: %s", op.ClientId, time.Duration(op.Call), time.Duration(op.Return), model.DescribeOperation(op.Input, op.Output))
	}
	return text.String()
}

// histories are how many there are of each kind, and what clients must have been told in them.
var histories = map[idem.Kind]struct {
	count int
	told  []linear.Outcome
}{
	idem.KindAtomic:     {100, []linear.Outcome{linear.Executed, linear.Replayed, linear.Mismatch, linear.Busy, linear.Lost}},
	idem.KindOptimistic: {60, []linear.Outcome{linear.Executed, linear.Replayed, linear.Mismatch, linear.Freed, linear.Lost}},
	idem.KindDeferred: {60, []linear.Outcome{
		linear.Accepted, linear.Repeated, linear.Replayed, linear.Mismatch, linear.Freed, linear.Running, linear.Finished, linear.Lost,
	}},
	idem.KindWrapped: {60, []linear.Outcome{
		linear.Executed, linear.Replayed, linear.Mismatch, linear.Busy, linear.Freed, linear.Parked, linear.Unknown, linear.Lost,
	}},
}

// docs/design.md I1, I4, I7: what clients see of a key, of two servers at once, is explained by one order of reserves and commits.
func TestHistoriesOfOneKeyAreLinearizable(t *testing.T) {
	for kind, of := range histories {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			if testing.Short() {
				of.count /= 2
			}
			s := newService(t, kind, nil)
			unexplained, outcomes := s.check(of.count)
			t.Logf("%s: %d histories of %d requests: %v", kind, of.count, clients*requestsEach, outcomes)
			if len(unexplained) > 0 {
				t.Errorf("no order explains %v", unexplained)
			}
			for _, o := range of.told {
				if outcomes[o] == 0 {
					t.Errorf("no request was %s: such an answer is not judged", o)
				}
			}
		})
	}
}

// fault is a way to break the contract.
type fault struct {
	name   string
	kinds  []idem.Kind
	breaks func() broken
}

var (
	committing = []idem.Kind{idem.KindAtomic, idem.KindOptimistic, idem.KindWrapped}
	all        = append([]idem.Kind{idem.KindDeferred}, committing...)
	deferred   = []idem.Kind{idem.KindDeferred}
	wrapping   = []idem.Kind{idem.KindWrapped}
)

// said changes those answers that say so with that status.
func said(every int64, says string, status int, change func(*httptest.ResponseRecorder)) func() broken {
	return func() broken {
		return changed(every, func(w *httptest.ResponseRecorder) {
			if w.Header().Get(header.NameStatus) == says && w.Code == status {
				change(w)
			}
		})
	}
}

// becomes makes an answer another one without a body.
func becomes(status int, says string) func(*httptest.ResponseRecorder) {
	return func(w *httptest.ResponseRecorder) {
		w.Code = status
		w.Header().Set(header.NameStatus, says)
	}
}

func longer(w *httptest.ResponseRecorder) { w.Body.WriteString(" ") }

var faults = []fault{
	{"one in twenty requests executes under a key of its own", all, func() broken {
		return func(next http.Handler) http.Handler {
			var n atomic.Int64
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if n.Add(1)%20 == 0 && r.Method == http.MethodPost {
					anew(r)
				}
				next.ServeHTTP(w, r)
			})
		}
	}},
	{"the payload is not looked at", all, func() broken {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Body = io.NopCloser(strings.NewReader(`{"item":"book"}`))
				r.ContentLength = -1
				next.ServeHTTP(w, r)
			})
		}
	}},
	{"one in ten replays is another answer", all, said(10, "replayed", http.StatusCreated, longer)},
	{"one in ten replays is told that the request runs", all, said(10, "replayed", http.StatusCreated, becomes(http.StatusConflict, "in_progress"))},
	{"one in ten replays is told of a mismatch", all, said(10, "replayed", http.StatusCreated, becomes(http.StatusUnprocessableEntity, "mismatch"))},
	{"one in five repeated 202s is another one", deferred, said(5, "replayed", http.StatusAccepted, longer)},
	{"one in five final answers is a 202 again", deferred, said(5, "replayed", http.StatusCreated, func(w *httptest.ResponseRecorder) {
		w.Code = http.StatusAccepted
		w.Body = bytes.NewBufferString(strings.Replace(w.Body.String(), "shipped", "id", 1))
	})},
	{"one in five statuses of what is finished says that it runs", deferred, func() broken {
		return changed(5, func(w *httptest.ResponseRecorder) {
			if strings.Contains(w.Body.String(), `"state":"completed"`) {
				w.Body = bytes.NewBufferString(`{"state":"pending"}`)
			}
		})
	}},
	{"one in five statuses shows another final answer", deferred, func() broken {
		return changed(5, func(w *httptest.ResponseRecorder) {
			if strings.Contains(w.Body.String(), `"state":"completed"`) {
				w.Body = bytes.NewBufferString(strings.Replace(w.Body.String(), "shipped", "Shipped", 1))
			}
		})
	}},
	{"what is unknown executes again", wrapping, func() broken { return again(http.StatusConflict, "unknown") }},
	{"one in five unknown outcomes is said to run", wrapping, said(5, "unknown", http.StatusConflict, becomes(http.StatusConflict, "in_progress"))},
	{"one in five unknown outcomes is said to be free", wrapping, said(5, "unknown", http.StatusConflict, becomes(http.StatusServiceUnavailable, "executed"))},
	{"what executes says that it did nothing", append([]idem.Kind{}, idem.KindOptimistic, idem.KindWrapped),
		said(3, "executed", http.StatusCreated, becomes(http.StatusServiceUnavailable, "executed"))},
}

var keys atomic.Int64

// anew gives a request a key of its own.
func anew(r *http.Request) { r.Header.Set(header.NameKey, fmt.Sprintf(`"anew-%d"`, keys.Add(1))) }

// again has what is answered so executed once more, under another key.
func again(status int, says string) broken {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(sent))
			got := httptest.NewRecorder()
			next.ServeHTTP(got, r)
			if got.Code == status && got.Header().Get(header.NameStatus) == says {
				anew(r)
				r.Body = io.NopCloser(bytes.NewReader(sent))
				got = httptest.NewRecorder()
				next.ServeHTTP(got, r)
			}
			answer(w, got)
		})
	}
}

// A service that breaks the contract now and then is found by its histories: otherwise they would show nothing.
func TestHistoriesOfABrokenServiceAreNot(t *testing.T) {
	for _, f := range faults {
		for _, kind := range f.kinds {
			t.Run(string(kind)+": "+f.name, func(t *testing.T) {
				t.Parallel()
				s := newService(t, kind, f.breaks())
				for n := 1; n <= 8; n++ {
					if unexplained, _ := s.check(n * 5); len(unexplained) > 0 {
						first, _, _ := strings.Cut(unexplained[0], "\n")
						t.Logf("%s: found within %d histories: %s", kind, n*5, first)
						return
					}
				}
				t.Error("every history has an order")
			})
		}
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
			answer(w, got)
		})
	}
}

func answer(w http.ResponseWriter, got *httptest.ResponseRecorder) {
	for name, values := range got.Header() {
		w.Header()[name] = values
	}
	w.Header().Del("Content-Length") // of the body before the change
	w.WriteHeader(got.Code)
	_, _ = w.Write(got.Body.Bytes()) // the client may have gone
}
