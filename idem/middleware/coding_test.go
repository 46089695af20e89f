package middleware_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
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

// A body that was read in front of the protection counts as none: each form under the key would be answered as another.
func TestABodyThatWasReadInFrontExecutesNothing(t *testing.T) {
	for name, observed := range map[string]bool{"enforced": false, "observed": true} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, nil)
			var runs atomic.Int64
			policy := idem.IETF()
			if observed {
				policy = idem.Observe(policy)
			}
			protected := a.protect(idem.Operation{Policy: policy}, middleware.Route{MediaTypes: []string{"application/x-www-form-urlencoded"}}, created(&runs))
			a.mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
				if r.FormValue("amount") == "" {
					t.Error("there is no form")
				}
				protected.ServeHTTP(w, r)
			})
			form := key(ask{path: "/orders", body: "amount=5", contentType: "application/x-www-form-urlencoded"})
			switch r := a.do(form); {
			case observed && (r.StatusCode != 201 || r.Header.Get("Idempotency-Status") != "unprotected"):
				t.Errorf("%d %q %s", r.StatusCode, r.Header.Get("Idempotency-Status"), r.body)
			case !observed && (r.StatusCode != 500 || r.code(t) != "internal_error"):
				t.Errorf("%d %s", r.StatusCode, r.body)
			}
			if want := map[bool]int64{true: 1}[observed]; runs.Load() != want || len(a.mem.Records()) != 0 {
				t.Errorf("%d runs, %d records", runs.Load(), len(a.mem.Records()))
			}
			if !strings.Contains(a.log.String(), "was read before the protection") {
				t.Errorf("the log is %s", a.log)
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
