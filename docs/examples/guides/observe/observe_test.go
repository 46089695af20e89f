package observe

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/docs/examples/internal/protection"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
)

func TestThePageShowsEachStep(t *testing.T) {
	page := check.NewPage(t, "observe.md")
	for step, name := range []string{"watch", "offer", "require"} {
		w := check.NewWorld(t)
		var shown strings.Builder
		report := func(_ context.Context, o middleware.Observation) {
			fmt.Fprintf(&shown, "    would have been %d %s\n", o.Status, cmp.Or(o.Code, o.Outcome))
		}
		orders := 0
		service := check.Get(NewService(w.Engine, Step(step), protection.Identify, report, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			orders++
			rw.WriteHeader(http.StatusCreated)
		})))(t)
		for _, request := range []struct{ what, key, body string }{
			{"a key", "order-17", `{"item":"book"}`},
			{"the same request again", "order-17", `{"item":"book"}`},
			{"its key, another order", "order-17", `{"item":"pen"}`},
			{"no key", "", `{"item":"book"}`},
		} {
			got := check.Send(t, service, "POST", "/orders", request.key, request.body)
			before := shown.String()
			shown.Reset()
			lines := strings.SplitAfter(before, "\n")
			reported := ""
			if n := len(lines); n > 1 && strings.HasPrefix(lines[n-2], "    ") {
				reported = lines[n-2]
				before = strings.TrimSuffix(before, reported)
			}
			fmt.Fprintf(&shown, "%s%-24s %d %s\n%s", before, request.what+":", got.Status, cmp.Or(got.Idempotency, "refused"), reported)
		}
		fmt.Fprintf(&shown, "orders placed: %d\n", orders)
		page.Text(name, shown.String())
		if want := []int{4, 2, 1}[step]; orders != want {
			t.Errorf("%s: %d orders, want %d", name, orders, want)
		}
	}
}

// Going back to Watch executes duplicates again; what Watch records is no permission for Require to execute one.
func TestGoingBackAndForth(t *testing.T) {
	w := check.NewWorld(t)
	orders := 0
	serve := func(step Step) http.Handler {
		engine := check.Get(idem.New(w.Store, idem.Config{Now: w.Clock.Now, Pause: w.Clock.Pause}))(t)
		return check.Get(NewService(engine, step, protection.Identify, nil, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			orders++
			rw.WriteHeader(http.StatusCreated)
		})))(t)
	}
	for i, c := range []struct {
		step   Step
		status string
		orders int
	}{{Require, "executed", 1}, {Watch, "unprotected", 2}, {Require, "replayed", 2}} {
		check.Send(t, serve(c.step), "POST", "/orders", "order-17", `{}`).Want(t, 201, c.status)
		if orders != c.orders {
			t.Errorf("request %d: %d orders, want %d", i, orders, c.orders)
		}
	}
}
