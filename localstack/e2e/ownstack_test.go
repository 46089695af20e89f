//go:build e2e

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/internal/outside"
	"github.com/idem-go/idem-aws/localstack/progress"
	"github.com/idem-go/idem-aws/localstack/stack"
)

// warehouse is what the shop's functions call: it ships each order once, by its key, and loses its first answer.
type warehouse struct {
	mu        sync.Mutex
	shipments map[string]string // by key
	calls     int
}

func (w *warehouse) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := r.Header.Get(header.NameKey)
	if _, shipped := w.shipments[key]; !shipped {
		w.shipments[key] = fmt.Sprintf("shipment-%d", len(w.shipments)+1)
	}
	if w.calls++; w.calls == 1 {
		panic(http.ErrAbortHandler)
	}
	if err := json.NewEncoder(out).Encode(map[string]string{"id": w.shipments[key]}); err != nil {
		panic(err)
	}
}

// told are how many orders were shipped, and how many calls there were.
func (w *warehouse) told() (shipments, calls int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.shipments), w.calls
}

// A team's own stack, of a module outside of this repository, is deployed with idemconstruct.NewApplication: a retry through its API
// Gateway gets the first answer, and the message of the order is delivered once, although the first answer about it is lost.
func TestOwnStackReplaysAndDelivers(t *testing.T) {
	t.Parallel()
	depot := &warehouse{shipments: map[string]string{}}
	server := httptest.NewServer(depot)
	t.Cleanup(server.Close)
	deployShop(t, server.URL).shipsOnce(t, depot)
}

// shipsOnce orders a book twice under one key: the second answer is the first one's, and the warehouse ships one book.
func (a api) shipsOnce(t *testing.T, depot *warehouse) {
	t.Helper()
	var first, again reply
	eventually(t, soon, func() string { // emulators report a deployment before its routes work
		first = a.customer(t, http.MethodPost, "/orders", run+"-order-1", `{"item":"book"}`)
		if first.status != http.StatusCreated {
			return "the first order: " + first.String()
		}
		return ""
	})
	again = a.customer(t, http.MethodPost, "/orders", run+"-order-1", `{ "item": "book" }`)
	if again.status != http.StatusCreated || string(again.body) != string(first.body) || again.header.Get(header.NameStatus) != "replayed" {
		t.Fatalf("the retry got %s, the first request %s", again, first)
	}
	if other := a.customer(t, http.MethodPost, "/orders", run+"-order-1", `{"item":"lamp"}`); other.status != http.StatusUnprocessableEntity {
		t.Errorf("another order under the same key got %s", other)
	}
	var placed struct{ ID, State, Shipment string }
	must(t, json.Unmarshal(first.body, &placed))
	eventually(t, delivered, func() string {
		found := a.customer(t, http.MethodGet, "/orders/"+placed.ID, "", "")
		must(t, json.Unmarshal(found.body, &placed))
		if placed.State != "shipped" {
			return "the order to be shipped: " + found.String()
		}
		return ""
	})
	if shipments, calls := depot.told(); shipments != 1 || calls < 2 || placed.Shipment != "shipment-1" {
		t.Errorf("%d shipments in %d calls, and the order has %q, want 1 in 2 or more, and shipment-1", shipments, calls, placed.Shipment)
	}
}

// deployShop deploys docs/examples/ownstack and returns its API.
func deployShop(t *testing.T, warehouse string) api {
	t.Helper()
	root, err := filepath.Abs("../..")
	must(t, err)
	module, err := outside.Copy(t.Context(), root, "docs/examples/ownstack", t.TempDir())
	must(t, err)
	built := t.TempDir()
	program := filepath.Join(built, "cdk")
	must(t, module.Build(t.Context(), "./cdk", program))
	must(t, module.Build(t.Context(), "./function", filepath.Join(built, "function", "bootstrap"), "GOOS=linux", "GOARCH="+runtime.GOARCH, "CGO_ENABLED=0"))

	local, err := stack.New(stack.Options{
		Root: root, State: deployed.variables["STACK_STATE"], EnvFile: filepath.Join(built, "unused.env"),
		Emulator: stack.Emulator(deployed.variables["EMULATOR"]),
	}, progress.New(io.Discard))
	must(t, err)
	shop := stack.Other{Name: "shop", App: program, Environment: []string{
		"SHOP_BUILD=" + filepath.Join(built, "function"), "ALARM_TOPIC=none", "WAREHOUSE_URL=" + warehouse, "EMULATED=true",
	}}
	outputs, err := local.DeployOther(t.Context(), shop)
	must(t, err)
	t.Cleanup(func() {
		if err := local.DestroyOther(context.WithoutCancel(t.Context()), shop); err != nil {
			t.Error(err)
		}
	})
	url, err := stack.LocalAPI(deployed.variables["AWS_ENDPOINT_URL"], outputs["ApiUrl"])
	must(t, err)
	return newAPI(url, "")
}

// customer sends a request as a customer of the shop.
func (a api) customer(t *testing.T, method, path, key, body string) reply {
	t.Helper()
	credentials := "Basic " + base64.StdEncoding.EncodeToString([]byte("customer-1:secret"))
	return a.once(t, request{method: method, path: path, key: key, body: body, header: http.Header{"Authorization": {credentials}}})
}
