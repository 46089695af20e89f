package clients

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
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

func TestThePageShowsOneOrderWhateverIsLost(t *testing.T) {
	page := check.NewPage(t, "retrying-clients.md")
	s, url := newServer(t, 2)
	shop := check.Get(NewShop(url, t.TempDir()))(t)
	kept := ""
	keep := func(answer string) error { kept = answer; return nil }
	if err := shop.Order(t.Context(), "order-17", `{"item":"book"}`, keep); err != nil {
		t.Fatal(err)
	}
	page.Text("lost answers", fmt.Sprintf("requests %d, orders %d, kept %s\n", s.requests.Load(), s.orders.Load(), kept))

	// The process dies before it has kept the answer. The next one finds the key, and gets the same answer.
	s, url = newServer(t, 0)
	folder := t.TempDir()
	shop = check.Get(NewShop(url, folder))(t)
	died := errors.New("power cut")
	if err := shop.Order(t.Context(), "order-18", `{"item":"book"}`, func(string) error { return died }); !errors.Is(err, died) {
		t.Fatal(err)
	}
	again := check.Get(NewShop(url, folder))(t)
	if err := again.Order(t.Context(), "order-18", `{"item":"book"}`, keep); err != nil {
		t.Fatal(err)
	}
	page.Text("restart", fmt.Sprintf("requests %d, orders %d, kept %s\n", s.requests.Load(), s.orders.Load(), kept))

	// Another body under the same name is an error, and the first one may have been ordered: it was.
	s, url = newServer(t, 0)
	shop = check.Get(NewShop(url, t.TempDir()))(t)
	_ = shop.Order(t.Context(), "order-19", `{"item":"book","at":"12:00:00"}`, func(string) error { return died })
	err := shop.Order(t.Context(), "order-19", `{"item":"book","at":"12:00:07"}`, keep)
	var mismatch *client.MismatchError
	if !errors.As(err, &mismatch) {
		t.Fatal(err)
	}
	page.Text("another body", fmt.Sprintf("requests %d, orders %d, may have been placed: %v\n", s.requests.Load(), s.orders.Load(), errors.Is(err, client.ErrUnknown)))
}
