package idemctl_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/conform"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

// orders is a protected endpoint that counts what it is asked, and refuses who is nobody.
func orders(t *testing.T, asked *atomic.Int64) *httptest.Server {
	t.Helper()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	mw, err := middleware.New(engine, middleware.Config{Logger: slog.New(slog.DiscardHandler), Identify: func(r *http.Request) (middleware.Identity, error) {
		if tenant := r.Header.Get("Authorization"); tenant != "" {
			return middleware.Identity{Tenant: tenant}, nil
		}
		return middleware.Identity{}, middleware.ErrUnauthenticated
	}})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := mw.Handle(idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}, middleware.Route{},
		func(_ context.Context, tx *idem.Tx, _ *middleware.Request) (idem.Response, error) {
			return idem.JSON(http.StatusCreated, map[string]string{"id": string(tx.OperationID())})
		})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

// docs/verify/conform.md: nothing is sent without --execute; a service that keeps the contract exits with 0, one that does not with 1.
func TestConformHoldsAServiceAgainstItsPolicy(t *testing.T) {
	w := newWorld(t)
	w.app = idemctl.App{}
	var asked atomic.Int64
	server, folder := orders(t, &asked), t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		w.ok(os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	args := []string{
		"conform", server.URL + "/orders", "--body", file("body.json", `{"item":"book"}`), "--headers", file("a.txt", "Authorization: Bearer secret-a\n\n"),
		"--other-headers", file("b.txt", "Authorization: Bearer secret-b"),
	}
	if out, _ := w.types(idemctl.ExitOK, args...); asked.Load() != 0 || !strings.Contains(out, "add --execute") {
		t.Errorf("%s, %d requests were sent", out, asked.Load())
	}
	out, _ := w.types(idemctl.ExitOK, append(args, "--execute", "--output", "json")...)
	var answer struct {
		conform.Report
		URL      string
		Conforms bool
	}
	w.ok(json.Unmarshal([]byte(out), &answer))
	if !answer.Conforms || answer.Policy != "ietf" || len(answer.Findings) < 20 || answer.Requests != int(asked.Load()) || answer.Executed < 10 || answer.Executed > 25 {
		t.Errorf("%+v, %d requests were sent", answer, asked.Load())
	}
	out, _ = w.types(idemctl.ExitRefused, append(args, "--execute", "--policy", "stripe")...)
	if !strings.Contains(out, "missing_key: ") || !strings.Contains(out, "differ") || strings.Contains(out, "secret-") {
		t.Error(out)
	}
	body := file("body.json", `{"item":"book"}`)
	for _, wrong := range [][]string{
		{"--body", body, "--policy", "stripe", "--strict"}, {"--body", body, "--method", "PUT"}, {"--body", body, "--duplicates", "1"},
		{"--body", body, "--headers", file("bad.txt", "secret-c without a colon")}, {"--body", filepath.Join(folder, "none")}, {"--body", file("empty.json", "")},
	} {
		if _, errs := w.types(idemctl.ExitUsage, append([]string{"conform", server.URL, "--execute"}, wrong...)...); strings.Contains(errs, "secret-") || !strings.Contains(errs, "next: ") {
			t.Errorf("%q: %s", wrong, errs)
		}
	}
	server.Close()
	w.types(idemctl.ExitTrouble, append(args, "--execute")...)
}

// A service that does not answer is no trouble of one's own tables: the advice is about its address.
func TestConformOfAServiceThatIsNotThere(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close() // its address is nobody's now
	body := filepath.Join(t.TempDir(), "body.json")
	if err := os.WriteFile(body, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	code := idemctl.Run(t.Context(), idemctl.App{}, []string{"conform", server.URL, "--body", body, "--execute"}, &out, &errs)
	if code != idemctl.ExitTrouble || !strings.Contains(errs.String(), "\nnext: Check the address") || strings.Contains(errs.String(), "audit") || strings.Contains(errs.String(), "conform:") {
		t.Errorf("exit code %d, %q", code, &errs)
	}
	if !strings.Contains(out.String(), "0 requests, at most 1 executed") {
		t.Errorf("the report is %q", &out)
	}
}
