package middleware_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
)

func TestErrorsAreLoggedWhereNoLoggerIsGiven(t *testing.T) {
	log, before := &journal{}, slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	defer slog.SetDefault(before)
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	mw, err := middleware.New(engine, middleware.Config{Identify: func(*http.Request) (middleware.Identity, error) {
		return middleware.Identity{}, errors.New("the directory is down")
	}})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	mw.Status(nil).ServeHTTP(w, httptest.NewRequest("GET", "/v1/operations/x", nil))
	if w.Code != 503 || !strings.Contains(log.String(), "the directory is down") {
		t.Errorf("%d, log %q", w.Code, log)
	}
}
