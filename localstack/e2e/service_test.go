//go:build e2e

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/scaffold"
	"github.com/idem-go/idem-aws/localstack/emulator"
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

// What `idemctl new` writes is deployed by its own Makefile: a retry through its API Gateway gets the first answer, and the message of
// the order is delivered once, although the first answer about it is lost.
func TestNewServiceReplaysAndDelivers(t *testing.T) {
	t.Parallel()
	depot := &warehouse{shipments: map[string]string{}}
	server := httptest.NewServer(depot)
	t.Cleanup(server.Close)
	api, made := deployService(t, server.URL)
	api.shipsOnce(t, depot)
	if said := made(t.Context(), "try"); strings.Count(said, "Idempotency-Status: executed") != 1 || strings.Count(said, "Idempotency-Status: replayed") != 1 {
		t.Errorf("make try says\n%s", said)
	}
	if said := made(t.Context(), "idemctl"); !strings.HasSuffix(strings.TrimSpace(said), "nothing") {
		t.Errorf("the service's own idemctl lists dead messages:\n%s", said)
	}
}

// shipsOnce orders a book twice under one key: the second answer is the first one's, and the warehouse ships one book.
func (a api) shipsOnce(t *testing.T, depot *warehouse) {
	t.Helper()
	must(t, stack.AdmitPlainQueues(t.Context(), deployed.variables["AWS_ENDPOINT_URL"]))
	var first, again reply
	eventually(t, soon, func() string { // emulators report a deployment before its routes work
		first = a.once(t, ofCustomer(http.MethodPost, "/orders", run+"-order-1", `{"item":"book"}`))
		if first.status != http.StatusCreated {
			return "the first order: " + first.String()
		}
		return ""
	})
	again = a.do(t, ofCustomer(http.MethodPost, "/orders", run+"-order-1", `{ "item": "book" }`))
	if again.status != http.StatusCreated || string(again.body) != string(first.body) || again.header.Get(header.NameStatus) != "replayed" {
		t.Fatalf("the retry got %s, the first request %s", again, first)
	}
	if other := a.do(t, ofCustomer(http.MethodPost, "/orders", run+"-order-1", `{"item":"lamp"}`)); other.status != http.StatusUnprocessableEntity {
		t.Errorf("another order under the same key got %s", other)
	}
	var placed struct{ ID, State, Shipment string }
	must(t, json.Unmarshal(first.body, &placed))
	eventually(t, delivered, func() string {
		found := a.do(t, ofCustomer(http.MethodGet, "/orders/"+placed.ID, "", ""))
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

// deployService deploys what `idemctl new` writes, by its own Makefile, and returns its API and the Makefile's targets.
func deployService(t *testing.T, warehouse string) (api, func(ctx context.Context, target string) string) {
	t.Helper()
	const name = "zebra"
	root, err := filepath.Abs("../..")
	must(t, err)
	folder := t.TempDir()
	_, err = scaffold.Service{Module: "example.org/team/" + name, Library: root}.Write(folder)
	must(t, err)
	made := makeIn(t, folder, "WAREHOUSE="+strings.TrimPrefix(warehouse, "http://"), "LOCAL=1", "ARGS=list dead")
	made(t.Context(), "local")
	t.Cleanup(func() { made(context.WithoutCancel(t.Context()), "down") })
	text, err := os.ReadFile(filepath.Join(folder, "outputs.local.json"))
	must(t, err)
	var outputs map[string]map[string]string
	must(t, json.Unmarshal(text, &outputs))
	url, err := stack.LocalAPI(deployed.variables["AWS_ENDPOINT_URL"], outputs[name]["ApiUrl"])
	must(t, err)
	return newAPI(url, "", ""), made
}

// makeIn runs targets of a service's Makefile, and returns what they print, on the emulator of the tests, with the CDK of the checkout.
func makeIn(t *testing.T, folder string, variables ...string) func(ctx context.Context, target string) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	must(t, err)
	cdk, err := emulator.CDKProgram(root)
	must(t, err)
	variables = append(variables, "CDK="+cdk, "RUN_ENV="+os.Getenv("IDEM_E2E_ENV"))
	environment, err := stack.LocalEnvironment(os.Environ(), deployed.variables["AWS_ENDPOINT_URL"])
	must(t, err)
	return func(ctx context.Context, target string) string {
		t.Helper()
		command := exec.CommandContext(ctx, "make", append([]string{"--no-print-directory", "-C", folder, target}, variables...)...)
		command.Env = environment // without any other AWS account's
		said, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("make %s: %v\n%s", target, err, said)
		}
		return string(said)
	}
}

// ofCustomer is the request of a customer of the shop.
func ofCustomer(method, path, key, body string) request {
	credentials := "Basic " + base64.StdEncoding.EncodeToString([]byte("customer-1:secret"))
	return request{method: method, path: path, key: key, body: body, header: http.Header{"Authorization": {credentials}}}
}
