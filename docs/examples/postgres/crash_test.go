package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/docs/examples/postgres/pgtest"
	"github.com/idem-go/idem-aws/idem"
)

// childVariable makes this program of tests serve the shop, on the database that it names.
const childVariable = "IDEM_EXAMPLE_POSTGRES_CHILD"

// hasty makes leases short, so that the test need not wait long for that of a process that it has killed. A request has more time all the
// same than a machine stands still.
var hasty = idem.Config{
	ExecutionMax: 10 * time.Second, HandlerMargin: time.Second, LeaseMargin: time.Second, Logger: slog.New(slog.DiscardHandler),
}

func serveAsChild(url string) {
	log.Fatal(run(context.Background(), url, "127.0.0.1:0", hasty))
}

// process is the service as a process of its own.
type process struct {
	command *exec.Cmd
	address string
}

// start starts the service, and returns when it listens.
func start(t *testing.T, url string) *process {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), childVariable+"="+url)
	said, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{command: command}
	t.Cleanup(p.kill)
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "listening on "); ok {
			p.address = address
			go func() { _, _ = io.Copy(io.Discard, said) }() // ends with the process
			return p
		}
		t.Log(lines.Text())
	}
	t.Fatal("the service did not start")
	return nil
}

// kill ends the process at once, as a power cut does. It may be called more than once.
func (p *process) kill() {
	_ = p.command.Process.Kill() // an error says that it is gone
	_ = p.command.Wait()
}

// order sends an order for a book, and returns an error where there is no answer.
func (p *process) order(ctx context.Context, key string) (check.Answer, error) {
	r, err := http.NewRequestWithContext(ctx, "POST", "http://"+p.address+"/orders", strings.NewReader(`{"item":"book"}`))
	if err != nil {
		return check.Answer{}, err
	}
	r.SetBasicAuth("customer-1", "secret")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", `"`+key+`"`)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return check.Answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return check.Answer{Status: response.StatusCode, Idempotency: response.Header.Get("Idempotency-Status"), Header: response.Header, Body: string(body)}, err
}

func orderOf(t *testing.T, answer check.Answer) (o order) {
	t.Helper()
	if err := json.Unmarshal([]byte(answer.Body), &o); err != nil {
		t.Errorf("%s: %v", answer.Body, err)
	}
	return o
}

// atCommitOfTheOrder is about the second COMMIT of a request: the first one is the reserve's.
func atCommitOfTheOrder() func(query string) bool {
	commits := 0
	return func(query string) bool {
		if pgtest.AtCommit(query) {
			commits++
		}
		return commits == 2
	}
}

func TestOnPostgreSQLACrashAtTheCommitPlacesTheOrderOnce(t *testing.T) {
	for name, c := range map[string]struct {
		committed bool // the COMMIT arrived
		killed    bool
		again     string // what the retry is told
	}{
		"the connection is cut before the reply":       {committed: true, again: "replayed"},
		"the connection is cut before the commit":      {again: "replayed"},
		"the process is killed before the reply comes": {committed: true, killed: true, again: "replayed"},
		"the process is killed before the commit":      {killed: true, again: "executed"},
	} {
		t.Run(name, func(t *testing.T) {
			url := pgtest.Database(t)
			s := openShop(t, url(""))
			proxy := pgtest.NewProxy(t, pgtest.Server(t).Address)
			service := start(t, url(proxy.Address))
			if earlier, err := service.order(t.Context(), "order-16"); err != nil || earlier.Status != 201 {
				t.Fatalf("got %+v, %v", earlier, err)
			}
			loss := &pgtest.Loss{At: atCommitOfTheOrder(), Forward: c.committed}
			if c.killed {
				loss.After = service.kill
			}
			proxy.Lose(loss)
			first, lost := service.order(t.Context(), "order-17")
			if proxy.Lose(nil) {
				t.Fatal("nothing was lost")
			}
			if c.killed {
				if lost == nil {
					t.Errorf("a process that was killed answered %+v", first)
				}
				orders := 1
				if c.committed {
					orders = 2
				}
				s.want(t, orders, 1000-orders, 1)
				service = start(t, url(proxy.Address))
			} else if lost != nil || first.Status != 201 || first.Idempotency != "executed" {
				t.Errorf("got %+v, %v; the same bytes should have been sent again", first, lost)
			}
			again := service.patiently(t)
			if again.Status != 201 || again.Idempotency != c.again || lost == nil && again.Body != first.Body {
				t.Errorf("the retry got %+v, the first request %+v, %v", again, first, lost)
			}
			s.want(t, 2, 998, 1)
			var stored bool
			err := s.QueryRow(t.Context(), "select exists (select from orders where id = $1)", orderOf(t, again).ID).Scan(&stored)
			if err != nil || !stored {
				t.Errorf("the order that the customer was told of, %s, is not stored (%v)", again.Body, err)
			}
		})
	}
}

// patiently sends the order until it is no longer in progress: the lease of a process that was killed must run out. A 503 of a database that
// stood still says that nothing was done: the order is sent again then, too, three times at most.
func (p *process) patiently(t *testing.T) check.Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for stalls := 0; ; {
		began := time.Now()
		answer, err := p.order(ctx, "order-17")
		if err != nil {
			t.Fatal(err)
		}
		if answer.Idempotency != "in_progress" {
			if stalls++; answer.Status != http.StatusServiceUnavailable || time.Since(began) < check.StallMin || stalls > 3 {
				return answer
			}
		}
		if err := idem.Pause(ctx, 100*time.Millisecond); err != nil {
			t.Fatal(errors.Join(err, errors.New("still no end: "+answer.Body)))
		}
	}
}
