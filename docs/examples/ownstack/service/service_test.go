package service

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/idemtest"
	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"

	"example.com/shop/warehouse"
)

// A retry gets the first answer, and places no second order.
func TestAnOrderThatIsSentTwiceIsPlacedOnce(t *testing.T) {
	store, api := service(t)
	first := send(t, api, "order-17", `{"item":"book"}`, http.StatusCreated)
	if again := send(t, api, "order-17", `{ "item": "book" }`, http.StatusCreated); again != first {
		t.Errorf("the retry got %s, the first request %s", again, first)
	}
	send(t, api, "order-17", `{"item":"pen"}`, http.StatusUnprocessableEntity)
	send(t, api, "order-18", `{}`, http.StatusBadRequest)
	send(t, api, "", `{"item":"book"}`, http.StatusBadRequest)
	if rows, messages := store.Rows(), store.Messages(); len(rows) != 1 || len(messages) != 1 {
		t.Errorf("%d orders and %d messages are stored, want 1 and 1", len(rows), len(messages))
	}
}

// A process that dies before or after any of its calls places one order, and the warehouse ships it once.
func TestACrashLosesAndDoublesNothing(t *testing.T) {
	depot := warehouse.New()
	server := httptest.NewServer(depot)
	defer server.Close()
	topic, err := shipments(orders{table: "orders"}, server.URL)
	if err != nil {
		t.Fatal(err)
	}
	crashes := idemtest.Crash(t, idemtest.App{
		Operation: placing,
		Handler: func(*memstore.Store) idem.Handler {
			return func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
				return orders{table: "orders"}.place(tx, []byte(`{"item":"book"}`))
			}
		},
		Translate: toRow,
		Topics:    []outbox.Topic{topic},
	})
	if shipped := depot.Shipments(); crashes == 0 || shipped != crashes+2 {
		t.Errorf("%d shipments of %d orders: one with each crash, and two without", shipped, crashes+2)
	}
}

// Where the deployment names a secret, records are named with it, and nothing starts without it.
func TestTheSecretThatTheDeploymentNamesIsRead(t *testing.T) {
	want := strings.Repeat("s", 32)
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ SecretId string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.SecretId != "shop/scope" {
			http.Error(w, `{"__type":"ResourceNotFoundException"}`, http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, `{"SecretString":%q}`, base64.StdEncoding.EncodeToString([]byte(want)))
	}))
	defer store.Close()
	for name, value := range map[string]string{
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_ENDPOINT_URL_SECRETS_MANAGER": store.URL,
		OrdersTable: "orders", "WAREHOUSE_URL": "https://warehouse.example",
	} {
		t.Setenv(name, value)
	}
	for name, want := range map[string]string{"shop/scope": want, "": ""} {
		t.Setenv(environment.ScopeSecretID, name)
		if made, err := Configure(t.Context()); err != nil || string(made.Engine.ScopeSecret) != want {
			t.Errorf("named %q: %d bytes, %v", name, len(made.Engine.ScopeSecret), err)
		}
	}
	t.Setenv(environment.ScopeSecretID, "shop/another")
	if _, err := Configure(t.Context()); err == nil {
		t.Error("it starts without the secret that is named")
	}
}

// service is the API on a store in memory.
func service(t *testing.T) (*memstore.Store, http.Handler) {
	t.Helper()
	store, err := memstore.New(memstore.Config{Translate: toRow})
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	engine, err := idem.New(store, idem.Config{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	api, err := routes(engine, quiet, orders{table: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	return store, api
}

func send(t *testing.T, api http.Handler, key, body string, want int) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", strings.NewReader(body))
	r.SetBasicAuth("alice", "secret")
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", `"`+key+`"`)
	}
	answer := httptest.NewRecorder()
	api.ServeHTTP(answer, r)
	if answer.Code != want {
		t.Errorf("%s with key %q got %d, want %d: %s", body, key, answer.Code, want, answer.Body)
	}
	return answer.Body.String()
}

// toRow turns the service's two writes into those of the store in memory. A row is the order as JSON.
func toRow(w idem.Write) (memstore.Write, error) {
	item, _ := dynamo.Item(w)
	switch {
	case item.Put != nil:
		row := map[string]string{}
		for name := range item.Put.Item {
			row[name] = value(item.Put.Item, name)
		}
		return memstore.Write{Key: row["id"], Apply: func([]byte) []byte { return encoded(row) }}, nil
	case item.Update != nil:
		return memstore.Write{Key: value(item.Update.Key, "id"), Apply: func(before []byte) []byte {
			return encoded(ended(before, item.Update.ExpressionAttributeValues))
		}}, nil
	}
	return memstore.Write{}, fmt.Errorf("a write that this test does not know: %T", w)
}

// ended is a row with what [orders.end] sets.
func ended(before []byte, values map[string]types.AttributeValue) map[string]string {
	row := map[string]string{}
	if err := json.Unmarshal(before, &row); err != nil {
		panic(err) // only this test writes rows
	}
	row["state"], row["shipment"] = value(values, ":state"), value(values, ":shipment")
	return row
}

func encoded(row map[string]string) []byte {
	text, err := json.Marshal(row)
	if err != nil {
		panic(err) // a map of texts
	}
	return text
}
