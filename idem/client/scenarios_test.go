package client_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/client"
	"github.com/idem-go/idem-aws/internal/clients"
)

// scenario is one of scenarios.json. What is not set is not demanded, unless the field says otherwise.
type scenario struct {
	Name    string          `json:"name"`
	Options clients.Options `json:"options"` // "{server}" in base_url is the server's address
	// Journal gives the client a file journal, Entry one that has an entry for the first send's operation already.
	Journal bool   `json:"journal"`
	Entry   *entry `json:"entry"`
	// Sends are carried out one after the other, each by a new process on the same journal.
	Sends []sent `json:"sends"`
	// Only names the clients that it is for, and Why says why; none is all of them.
	Only []string `json:"only"`
	Why  string   `json:"why"`
}

// entry is a journal's.
type entry struct {
	Key   string  `json:"key"`
	AgeMS float64 `json:"age_ms"`
	Torn  bool    `json:"torn"` // the file is cut short
	// Mark stands at the file's end, where a second caller's is.
	Mark string `json:"mark"`
	// Given says that AgeMS is the age of a key that a caller gave, and Timeless that the entry has no time at all.
	Given    bool `json:"given"`
	Timeless bool `json:"timeless"`
}

// sent is a request, what the server does with it, and what comes of it.
type sent struct {
	Method    string  `json:"method"` // default POST
	Path      string  `json:"path"`   // default /v1/payments
	Key       *string `json:"key"`
	Operation *string `json:"operation"`
	Await     bool    `json:"await"`
	Done      bool    `json:"done"`
	// AbortInPause is that of clients.Task. AbortWhenSilent cancels the request once the server has one that it never answers.
	AbortInPause    int  `json:"abort_in_pause"`
	AbortWhenSilent bool `json:"abort_when_silent"`
	// Server has one reply for each request that the client is to make: one more or one less is wrong.
	Server []reaction `json:"server"`
	// Lines are the Idempotency-Key headers of every request; by default they are the quoted key that the client tells.
	Lines []string `json:"lines"`
	// Headers are headers of every request; "" is none.
	Headers map[string]string `json:"headers"`
	// Fresh demands another key than the send before had; else it is the same.
	Fresh bool `json:"fresh"`
	Want  want `json:"want"`
}

// reaction is what the server does with one request.
type reaction struct {
	Path    string            `json:"path"` // which the request must have; by default the request's, or the operation's
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"` // a line break in a value begins another line of the same header
	Body    string            `json:"body"`
	JSON    json.RawMessage   `json:"json"`    // a body, with its Content-Type
	Problem string            `json:"problem"` // a problem document of that code
	// Cut ends the connection before an answer, after its head, or after half of its body; Hang never answers.
	Cut  string `json:"cut"`
	Hang bool   `json:"hang"`
	// Meanwhile is a send of another process on the same journal, to a server of its own. It has ended before this reply, and
	// its operation has the key of this one's unless it is Fresh.
	Meanwhile *sent `json:"meanwhile"`
}

// want is the outcome: an answer or an error, all of whose fields must agree but those of an answer that are not set.
type want struct {
	Answer *struct {
		First   int               `json:"first"`
		Status  int               `json:"status"`
		Body    *string           `json:"body"`
		Headers map[string]string `json:"headers"`
	} `json:"answer"`
	Error *clients.Error `json:"error"`
	// Pauses are the client's in milliseconds, each a number or the bounds of a random one; absent is any.
	Pauses *[]span `json:"pauses"`
}

// span is a number, or two that bound one.
type span struct{ least, most float64 }

func (s *span) UnmarshalJSON(raw []byte) error {
	var both [2]float64
	if err := json.Unmarshal(raw, &both); err == nil {
		*s = span{both[0], both[1]}
		return nil
	}
	err := json.Unmarshal(raw, &s.least)
	s.most = s.least
	return err
}

const (
	scenarioBody  = `{"amount":1999,"note":"secret-body"}`
	scenarioToken = "Bearer secret-token"
)

// arrival is a request as the server got it.
type arrival struct {
	method, path, body string
	header             http.Header
}

// server does what the script says, and keeps what arrived.
type server struct {
	*httptest.Server

	mu       sync.Mutex
	script   []reaction
	arrivals []arrival
	over     chan struct{}
	// silent is closed by silence, when a request arrives that is never answered.
	silent  chan struct{}
	silence func()
	// meanwhile runs another process's send.
	meanwhile func(sent)
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{over: make(chan struct{}), silent: make(chan struct{})}
	s.silence = sync.OnceFunc(func() { close(s.silent) })
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		close(s.over)
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *server) next(r *http.Request) (reaction, bool) {
	body, err := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrivals = append(s.arrivals, arrival{r.Method, r.URL.Path, string(body), r.Header.Clone()})
	if err != nil || len(s.script) == 0 {
		return reaction{}, false
	}
	reply := s.script[0]
	s.script = s.script[1:]
	return reply, true
}

// ServeHTTP answers what the script has no reply for with a status that no client takes for another.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == silentPath {
		s.until(r, s.silent)
		return
	}
	reply, ok := s.next(r)
	if !ok {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	if reply.Meanwhile != nil {
		s.meanwhile(*reply.Meanwhile)
	}
	if reply.Hang {
		s.silence()
		s.until(r, s.over)
	}
	if reply.Hang || reply.Cut == "before" {
		panic(http.ErrAbortHandler)
	}
	body := reply.write(w.Header())
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if reply.Status == http.StatusNoContent {
		w.Header().Del("Content-Length")
	}
	w.WriteHeader(reply.Status)
	if reply.Cut == "" {
		_, _ = w.Write(body) // the client may have gone
		return
	}
	if reply.Cut == "half" {
		_, _ = w.Write(body[:len(body)/2])
	}
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// silentPath is answered once there is a request that is not: see AbortWhenSilent.
const silentPath = "/control/silent"

// until waits until done is closed, and no longer than the client of r and the server last.
func (s *server) until(r *http.Request, done <-chan struct{}) {
	select {
	case <-done:
	case <-s.over:
	case <-r.Context().Done():
	}
}

// write sets the reply's headers, and returns its body.
func (r reaction) write(h http.Header) []byte {
	body := []byte(r.Body)
	switch {
	case r.Problem != "":
		body, _ = json.Marshal(map[string]any{"type": "about:blank", "title": "secret-title", "status": r.Status, "code": r.Problem})
		h.Set("Content-Type", "application/problem+json")
	case r.JSON != nil:
		var compact bytes.Buffer
		_ = json.Compact(&compact, r.JSON) // it was read as JSON
		body = compact.Bytes()
		h.Set("Content-Type", "application/json")
	}
	for name, lines := range r.Headers {
		h.Del(name)
		for line := range strings.SplitSeq(lines, "\n") {
			h.Add(name, line)
		}
	}
	return body
}

// begin sets the server up for a send.
func (s *server) begin(send sent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script, s.arrivals = slices.Clone(send.Server), nil
}

// trial is one scenario with one client.
type trial struct {
	scenario
	server  *server
	journal string
	key     string // of the send before
	others  []other
}

// other is the send of another process, and what became of it.
type other struct {
	*trial
	send sent
	got  clients.Result
	err  error
}

func newTrial(t *testing.T, c *clients.Client, sc scenario) *trial {
	t.Helper()
	tr := &trial{scenario: sc, server: newServer(t)}
	tr.server.meanwhile = func(send sent) {
		o := other{trial: &trial{scenario: sc, server: newServer(t), journal: tr.journal}, send: send}
		var results map[string]clients.Result
		results, o.err = c.Run(t.Context(), o.task(send))
		o.got = results[sc.Name]
		tr.others = append(tr.others, o)
	}
	tr.Options.BaseURL = strings.ReplaceAll(sc.Options.BaseURL, "{server}", tr.server.URL)
	if sc.Journal || sc.Entry != nil {
		tr.journal = t.TempDir()
	}
	if sc.Entry != nil {
		tr.keep(t)
	}
	return tr
}

// keep writes the journal's entry as the client in Go does.
func (tr *trial) keep(t *testing.T) {
	t.Helper()
	journal, err := client.OpenFileJournal(tr.journal, 0)
	if err != nil {
		t.Fatal(err)
	}
	since := epoch.Add(-time.Duration(tr.Entry.AgeMS * float64(time.Millisecond)))
	kept := client.Entry{Key: tr.Entry.Key, FirstSent: since}
	switch {
	case tr.Entry.Timeless:
		kept.FirstSent = time.Time{}
	case tr.Entry.Given:
		kept.FirstSent, kept.GivenAt = time.Time{}, since
	}
	if _, _, err := journal.Begin(t.Context(), *tr.Sends[0].Operation, kept); err != nil {
		t.Fatal(err)
	}
	tr.damage(t)
}

// damage does to the entry's file what a failing machine may have done.
func (tr *trial) damage(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(tr.journal, "*", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if tr.Entry.Torn {
		raw = raw[:20]
	}
	if err := os.WriteFile(files[0], append(raw, tr.Entry.Mark...), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (tr *trial) task(send sent) clients.Task {
	tr.server.begin(send)
	task := clients.Task{
		ID: tr.Name, URL: tr.server.URL + orElse(send.Path, "/v1/payments"), Method: orElse(send.Method, http.MethodPost), Body: scenarioBody,
		Headers: map[string]string{"Content-Type": "application/json", "Authorization": scenarioToken},
		Key:     send.Key, Operation: send.Operation, Journal: tr.journal, Await: send.Await, Done: send.Done,
		ClockMS: epoch.UnixMilli(), AbortInPause: send.AbortInPause, Options: tr.Options,
	}
	if send.AbortWhenSilent {
		task.AbortOn = tr.server.URL + silentPath
	}
	if task.Method == http.MethodGet {
		task.Body = ""
	}
	return task
}

func orElse(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// check holds what became of a send against what the scenario wants.
func (tr *trial) check(t *testing.T, send sent, got clients.Result) {
	t.Helper()
	send.Want.check(t, got)
	for _, secret := range []string{"secret", got.Key} {
		if secret != "" && strings.Contains(got.Told, secret) {
			t.Errorf("the error shows what it must not: %s", got.Told)
		}
	}
	tr.server.mu.Lock()
	defer tr.server.mu.Unlock()
	if n := len(tr.server.arrivals); n != len(send.Server) {
		t.Errorf("%d requests arrived, want %d", n, len(send.Server))
	}
	for i, a := range tr.server.arrivals {
		if i < len(send.Server) {
			tr.checkArrival(t, send, send.Server[i], a, got.Key)
		}
	}
	if tr.key != "" && (got.Key == tr.key) == send.Fresh {
		t.Errorf("the key of the send before: %v, want %v", got.Key == tr.key, !send.Fresh)
	}
	tr.key = got.Key
	for _, o := range tr.others {
		if o.err != nil {
			t.Fatal(o.err)
		}
		o.check(t, o.send, o.got)
		if (o.got.Key == got.Key) == o.send.Fresh {
			t.Errorf("the key of the other process: %v, want %v", o.got.Key == got.Key, !o.send.Fresh)
		}
	}
	tr.others = nil
}

// checkArrival demands that every request of an operation is the same.
func (tr *trial) checkArrival(t *testing.T, send sent, reply reaction, a arrival, key string) {
	t.Helper()
	if a.header.Get("Authorization") != scenarioToken {
		t.Errorf("%s %s without the credentials", a.method, a.path)
	}
	lines := a.header.Values("Idempotency-Key")
	if a.method == http.MethodGet {
		if path := orElse(reply.Path, "/v1/operations/op_1"); send.Await && (a.path != path || a.header.Get("Content-Type") != "") || len(lines) != 0 {
			t.Errorf("the status was asked by GET %s %v", a.path, a.header)
		}
		return
	}
	if a.method != orElse(send.Method, http.MethodPost) || a.body != scenarioBody || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("%s with %s of %s", a.method, a.body, a.header.Get("Content-Type"))
	}
	wanted := send.Lines
	if wanted == nil {
		wanted = []string{`"` + key + `"`}
	}
	if !slices.Equal(lines, wanted) || key == "" {
		t.Errorf("Idempotency-Key: %q, want %q", lines, wanted)
	}
	for name, value := range send.Headers {
		if got := a.header.Get(name); got != value {
			t.Errorf("%s: %q, want %q", name, got, value)
		}
	}
}

func (w want) check(t *testing.T, got clients.Result) {
	t.Helper()
	switch {
	case w.Error != nil && (got.Error == nil || *got.Error != *w.Error):
		t.Errorf("it ended with %s, want %s", show(got), show(w.Error))
	case w.Answer != nil && got.Answer == nil:
		t.Errorf("it ended with %s, want the answer %d", show(got), w.Answer.Status)
	case w.Answer != nil:
		a := got.Answer
		if a.Status != w.Answer.Status || w.Answer.First != 0 && a.First != w.Answer.First || w.Answer.Body != nil && a.Body != *w.Answer.Body {
			t.Errorf("it ended with %s, want %s", show(got), show(w.Answer))
		}
		for name, value := range w.Answer.Headers {
			if a.Headers[name] != value {
				t.Errorf("the answer's %s: %q, want %q", name, a.Headers[name], value)
			}
		}
	}
	if w.Pauses == nil {
		return
	}
	if len(got.PausesMS) != len(*w.Pauses) {
		t.Fatalf("pauses %v, want %v", got.PausesMS, *w.Pauses)
	}
	for i, bounds := range *w.Pauses {
		if p := got.PausesMS[i]; p < bounds.least || p > bounds.most {
			t.Errorf("pauses %v, want %v", got.PausesMS, *w.Pauses)
		}
	}
}

func show(what any) string {
	raw, err := json.Marshal(what)
	if err != nil {
		return fmt.Sprint(what)
	}
	return string(raw)
}

func scenarios(t *testing.T) []scenario {
	t.Helper()
	raw, err := os.ReadFile("scenarios.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		About     string     `json:"about"`
		Scenarios []scenario `json:"scenarios"`
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil {
		t.Fatalf("scenarios.json: %v", err)
	}
	names := map[string]bool{}
	for _, sc := range all.Scenarios {
		if names[sc.Name] || len(sc.Sends) == 0 || (len(sc.Only) > 0) != (sc.Why != "") {
			t.Fatalf("scenarios.json: %q is there twice, sends nothing, or is for some without a reason", sc.Name)
		}
		names[sc.Name] = true
		for _, send := range sc.Sends {
			if (send.Want.Answer == nil) == (send.Want.Error == nil) {
				t.Fatalf("scenarios.json: %q wants neither an answer nor an error, or both", sc.Name)
			}
		}
	}
	return all.Scenarios
}

// play runs all scenarios at once in one process, and those of more than one send in as many.
func play(t *testing.T, c *clients.Client, all []scenario) {
	var trials []*trial
	for _, sc := range all {
		if len(sc.Only) == 0 || slices.Contains(sc.Only, c.Name) {
			trials = append(trials, newTrial(t, c, sc))
		}
	}
	for n := 0; len(trials) > 0; n++ {
		var tasks []clients.Task
		for _, tr := range trials {
			tasks = append(tasks, tr.task(tr.Sends[n]))
		}
		results, err := c.Run(t.Context(), tasks...)
		if err != nil {
			t.Fatal(err)
		}
		for _, tr := range trials {
			t.Run(fmt.Sprintf("%s/send %d", tr.Name, n+1), func(t *testing.T) {
				got, ok := results[tr.Name]
				if !ok {
					t.Fatal("the client says nothing")
				}
				tr.check(t, tr.Sends[n], got)
			})
		}
		trials = slices.DeleteFunc(trials, func(tr *trial) bool { return len(tr.Sends) == n+1 })
	}
}
