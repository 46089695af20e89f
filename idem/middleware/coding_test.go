package middleware_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/storage"
)

// zipped is a body in a coding.
func zipped(t *testing.T, body string) []byte {
	t.Helper()
	var coded bytes.Buffer
	w := gzip.NewWriter(&coded)
	if _, err := io.WriteString(w, body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return coded.Bytes()
}

// A stored body that is coded is replayed with its coding, without which nobody can read it. Its type is not guessed from coded bytes.
func TestACodedAnswerIsReplayedWithItsCoding(t *testing.T) {
	a := newAPI(t, nil)
	coded := zipped(t, `{"id":1}`)
	a.wrap("POST /orders", idem.Operation{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(coded)
	})
	q := key(ask{path: "/orders", header: map[string]string{"Accept-Encoding": "gzip"}}) // or the transport would decode it
	for _, status := range []string{"executed", "replayed"} {
		r := a.do(q)
		r.wants(t, 201, status)
		if r.Header.Get("Content-Encoding") != "gzip" || !bytes.Equal(r.body, coded) {
			t.Errorf("%s: coding %q, %d bytes", status, r.Header.Get("Content-Encoding"), len(r.body))
		}
		if guessed := r.Header.Get("Content-Type"); guessed != "" {
			t.Errorf("%s: its type is guessed from coded bytes: %s", status, guessed)
		}
	}
}

// What a handler codes because its client accepts it, a retry may not accept: a handler is not asked for it.
func TestWhatIsStoredIsForEveryRetryToRead(t *testing.T) {
	a := newAPI(t, nil)
	a.wrap("POST /orders", idem.Operation{}, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			t.Error("the handler is asked for a coding")
		}
		_, _ = io.WriteString(w, `{"id":1}`)
	})
	a.do(key(ask{path: "/orders", header: map[string]string{"Accept-Encoding": "gzip"}})).wants(t, 201, "executed")
	if r := a.do(key(ask{path: "/orders", header: map[string]string{"Accept-Encoding": "identity"}})); string(r.body) != `{"id":1}` {
		t.Errorf("replayed %q", r.body)
	}
}

// A front that compresses announces it before the handler writes: what is recorded is not compressed.
func TestWhatAFrontCompressesIsRecordedAsItWasWritten(t *testing.T) {
	a := newAPI(t, nil)
	later := newLocalAPI(t, func(storage.Store) storage.Store { return a.mem }) // a release that enforces
	order := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":1}`)
	})
	observed := a.protect(idem.Operation{Policy: idem.Observe(idem.IETF())}, middleware.Route{}, order)
	enforced := later.protect(idem.Operation{}, middleware.Route{}, order)
	a.mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			enforced.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		observed.ServeHTTP(compressing{w, z}, r)
	})
	q := ask{path: "/orders", header: map[string]string{"Accept-Encoding": "gzip"}}
	if r := a.do(key(q)); r.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%d, coding %q", r.StatusCode, r.Header.Get("Content-Encoding"))
	}
	q.header = map[string]string{"Accept-Encoding": "identity"}
	r := a.do(key(q))
	r.wants(t, 201, "replayed")
	if r.Header.Get("Content-Encoding") != "" || string(r.body) != `{"id":1}` || r.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("coding %q, type %q: %q", r.Header.Get("Content-Encoding"), r.Header.Get("Content-Type"), r.body)
	}
}

type compressing struct {
	http.ResponseWriter
	coded io.Writer
}

func (w compressing) Write(p []byte) (int, error) { return w.coded.Write(p) }

// A body that was read in front of the protection counts as what is left: each form under the key would be answered as another. In observe
// mode such a request is executed as it would be without protection, and is reported; so is one without a key.
func TestABodyThatWasReadInFrontExecutesNothing(t *testing.T) {
	const form, parts = "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"
	const multipart = "--b\r\nContent-Disposition: form-data; name=\"amount\"\r\n\r\n5\r\n--b--\r\n"
	value := func(r *http.Request) { _ = r.FormValue("amount") }
	for name, c := range map[string]struct {
		contentType, body string
		unsized           bool
		front             func(r *http.Request)
	}{
		"a form":                        {form, "amount=5", false, value},
		"a form without a length":       {form, "amount=5", true, value},
		"parts":                         {parts, multipart, false, value},
		"parts without a length":        {parts, multipart, true, value},
		"its beginning":                 {form, "amount=5", false, func(r *http.Request) { _, _ = r.Body.Read(make([]byte, 3)) }},
		"read and closed":               {form, "amount=5", false, func(r *http.Request) { _, _ = io.ReadAll(r.Body); r.Body.Close() }},
		"closed, and without a length":  {form, "amount=5", true, func(r *http.Request) { _, _ = io.ReadAll(r.Body); r.Body.Close() }},
		"closed before it was all read": {form, "amount=5", false, func(r *http.Request) { r.Body.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, nil)
			var runs atomic.Int64
			route := middleware.Route{MediaTypes: []string{form, "multipart/form-data"}}
			transactional := func(op string, policy idem.Policy) http.Handler {
				h, err := a.mw.Handle(withDefaults(idem.Operation{Name: op, Policy: policy}, idem.KindAtomic), route, func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
					runs.Add(1)
					return idem.Response{Status: http.StatusCreated}, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				return h
			}
			optional := idem.IETF()
			optional.MissingKey = idem.MissingKeyUnprotected
			for path, protected := range map[string]http.Handler{
				"/enforced/wrapped":       a.protect(idem.Operation{Name: "enforced.wrapped"}, route, created(&runs)),
				"/enforced/transactional": transactional("enforced.transactional", optional),
				"/observed/wrapped":       a.protect(idem.Operation{Name: "observed.wrapped", Policy: idem.Observe(idem.IETF())}, route, created(&runs)),
				"/observed/transactional": transactional("observed.transactional", idem.Observe(idem.IETF())),
			} {
				a.mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
					c.front(r)
					protected.ServeHTTP(w, r)
				})
				q := key(ask{path: path, body: c.body, contentType: c.contentType, unsized: c.unsized})
				before, observed := runs.Load(), strings.HasPrefix(path, "/observed")
				r := a.do(q)
				switch ran := runs.Load() - before; {
				case observed && (r.StatusCode != 201 || r.Header.Get("Idempotency-Status") != "unprotected" || ran != 1):
					t.Errorf("%s: %d %q %s, %d runs", path, r.StatusCode, r.Header.Get("Idempotency-Status"), r.body, ran)
				case !observed && (r.StatusCode != 500 || r.code(t) != "internal_error" || ran != 0):
					t.Errorf("%s: %d %s, %d runs", path, r.StatusCode, r.body, ran)
				}
				if said := a.log.String(); !strings.Contains(said, "was read before the protection") || observed != strings.Contains(said, "idempotency.observed") {
					t.Errorf("%s: the log is %s", path, said)
				}
				a.log.reset()
			}
			if records := a.mem.Records(); len(records) != 1 { // the observed transaction's, under a key that nobody else has
				t.Errorf("%d records of what was not read", len(records))
			}
			if r := a.do(ask{path: "/enforced/transactional", body: c.body, contentType: c.contentType, unsized: c.unsized}); r.StatusCode != 201 {
				t.Errorf("without a key: %d %s", r.StatusCode, r.body)
			}
		})
	}
}

// What is set in front of the protection is a default, as it is without one: the answer's own header stands in its place.
func TestAHeaderThatIsSetInFrontIsNotDoubled(t *testing.T) {
	a := newAPI(t, nil)
	for path, h := range map[string]http.HandlerFunc{
		"/typed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/csv")
			w.Header().Set("Access-Control-Allow-Origin", "https://shop.example")
			_, _ = io.WriteString(w, "a,b")
		},
		"/untyped": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") },
	} {
		protected := a.protect(idem.Operation{Name: "orders." + path[1:]}, middleware.Route{}, h)
		a.mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Access-Control-Allow-Origin", "*")
			protected.ServeHTTP(w, r)
		})
	}
	for _, c := range []struct {
		q                   ask
		status              int
		contentType, origin string
	}{
		{key(ask{path: "/typed"}), 200, "text/csv", "https://shop.example"},
		{key(ask{path: "/typed"}), 200, "text/csv", "*"}, // the origin is of one exchange
		{key(ask{path: "/untyped"}), 200, "application/json", "*"},
		{key(ask{path: "/untyped"}), 200, "application/json", "*"},
		{key(ask{path: "/untyped", body: `{"other":1}`}), 422, "application/problem+json", "*"},
		{ask{path: "/untyped"}, 400, "application/problem+json", "*"},
	} {
		r := a.do(c.q)
		if types := r.Header.Values("Content-Type"); r.StatusCode != c.status || len(types) != 1 || types[0] != c.contentType {
			t.Errorf("%+v: %d of type %q, want %d of %s", c.q, r.StatusCode, types, c.status, c.contentType)
		}
		if origins := r.Header.Values("Access-Control-Allow-Origin"); len(origins) != 1 || origins[0] != c.origin {
			t.Errorf("%+v: origins %q, want %s", c.q, origins, c.origin)
		}
	}
}
