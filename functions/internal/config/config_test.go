package config_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/config"
)

// variables is the smallest environment in which every function starts.
var variables = map[string]string{
	"IDEMPOTENCY_TABLE": "idempotency", "OUTBOX_TABLE": "outbox", "PAYMENTS_TABLE": "payments", "PROVIDER_URL": "https://provider.example",
	"RETRY_QUEUE_URL": "https://sqs.example/retry", "DEAD_LETTER_QUEUE_URL": "https://sqs.example/dead", "AUTH": "gateway",
}

// optional are the other variables that functions read.
var optional = []string{
	"LOG_LEVEL", "RESPONSE_BYTES_MAX", "RETENTION", "PROVIDER_TIMEOUT", "BODY_BYTES_MAX", "CLAIM_LEASE", "BACKOFF_MIN", "BACKOFF_MAX", "ATTEMPTS_MAX",
	"METRICS_NAMESPACE", "METRICS_SERVICE", "CORS_ORIGINS",
}

// environment sets the variables, and for this test only takes away what the process may have of its own.
func environment(t *testing.T, changes ...string) {
	t.Helper()
	for _, name := range optional {
		unset(t, name)
	}
	for name, value := range variables {
		t.Setenv(name, value)
	}
	for _, change := range changes {
		name, value, set := strings.Cut(change, "=")
		if set {
			t.Setenv(name, value)
		} else {
			unset(t, name)
		}
	}
}

func unset(t *testing.T, name string) {
	t.Helper()
	t.Setenv(name, "") // which puts back what was there
	if err := os.Unsetenv(name); err != nil {
		t.Fatal(err)
	}
}

func TestReadFillsDefaults(t *testing.T) {
	environment(t)
	api, err := config.Read[config.API]()
	if err != nil {
		t.Fatal(err)
	}
	tables := config.Tables{
		Payments: config.Payments{PaymentsTable: "payments"}, IdempotencyTable: "idempotency", OutboxTable: "outbox",
		ResponseBytesMax: 3 << 20, Retention: 24 * time.Hour,
	}
	provider := config.Provider{URL: "https://provider.example", Timeout: 5 * time.Second}
	delivery := config.Worker{
		Log:    config.Log{MetricsNamespace: "idem"},
		Tables: tables, Provider: provider, RetryQueueURL: "https://sqs.example/retry", DeadLetterQueueURL: "https://sqs.example/dead",
		ClaimLease: 10 * time.Second, BackoffMin: time.Second, BackoffMax: 30 * time.Second, AttemptsMax: 10,
	}
	if want := (config.API{Worker: delivery, Auth: config.AuthGateway, BodyBytesMax: 256 << 10}); !reflect.DeepEqual(api, want) {
		t.Errorf("api: %+v, want %+v", api, want)
	}
	if worker, err := config.Read[config.Worker](); err != nil || worker != delivery {
		t.Errorf("worker: %+v, %v, want %+v", worker, err, delivery)
	}
	if authorizer, err := config.Read[config.Authorizer](); err != nil || authorizer.PaymentsTable != "payments" {
		t.Errorf("authorizer: %+v, %v", authorizer, err)
	}
}

// A function that can't start says which variable it is, by the name that an operator knows.
func TestReadNamesWhatIsWrong(t *testing.T) {
	api, worker, authorizer := check[config.API], check[config.Worker], check[config.Authorizer]
	for _, c := range []struct {
		change string
		fail   []func() error
	}{
		{"IDEMPOTENCY_TABLE", []func() error{api, worker}},
		{"OUTBOX_TABLE=", []func() error{api, worker}},
		{"PAYMENTS_TABLE", []func() error{api, worker, authorizer}},
		{"PROVIDER_URL", []func() error{api, worker}},
		{"RETRY_QUEUE_URL", []func() error{api, worker}},
		{"DEAD_LETTER_QUEUE_URL=", []func() error{api, worker}},
		{"AUTH", []func() error{api}},
		{"AUTH=", []func() error{api}},
		{"AUTH=none", []func() error{api}},
		{"AUTH=GATEWAY", []func() error{api}},
		{"RETENTION=24", []func() error{api, worker}},
		{"PROVIDER_TIMEOUT=5 s", []func() error{api, worker}},
		{"CLAIM_LEASE=ten", []func() error{api, worker}},
		{"BACKOFF_MIN=1", []func() error{api, worker}},
		{"BACKOFF_MAX=-", []func() error{api, worker}},
		{"ATTEMPTS_MAX=1.5", []func() error{api, worker}},
		{"BODY_BYTES_MAX=256KiB", []func() error{api}},
		{"RESPONSE_BYTES_MAX=0x10", []func() error{api, worker}},
		{"LOG_LEVEL=loud", []func() error{api, worker, authorizer}},
	} {
		t.Run(c.change, func(t *testing.T) {
			environment(t, c.change)
			name, _, _ := strings.Cut(c.change, "=")
			for _, read := range c.fail {
				if err := read(); err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("%v, want an error that names %s", err, name)
				}
			}
		})
	}
}

func TestReadNamesEverythingThatIsWrong(t *testing.T) {
	environment(t, "IDEMPOTENCY_TABLE", "RETENTION=soon", "CLAIM_LEASE=")
	err := check[config.Worker]()
	for _, name := range []string{"IDEMPOTENCY_TABLE", "RETENTION"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %s named too", err, name)
		}
	}
}

func check[T any]() error {
	_, err := config.Read[T]()
	return err
}

// The variables of the metrics are judged by the handler that makes them.
func TestLoggerNamesWhatIsWrong(t *testing.T) {
	environment(t, "METRICS_NAMESPACE=AWS/Lambda")
	worker, err := config.Read[config.Worker]()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := worker.Logger(); err == nil || !strings.Contains(err.Error(), "METRICS_NAMESPACE") || !strings.Contains(err.Error(), "AWS/Lambda") {
		t.Errorf("%v", err)
	}
}

// AuthFunction is the other place (docs/payments-api.md "Seeded").
func TestReadAuth(t *testing.T) {
	environment(t, "AUTH=function")
	if api, err := config.Read[config.API](); err != nil || api.Auth != config.AuthFunction {
		t.Errorf("%+v, %v", api, err)
	}
}

func TestReadOrigins(t *testing.T) {
	environment(t, "CORS_ORIGINS=https://shop.example,http://localhost:3000")
	want := []string{"https://shop.example", "http://localhost:3000"}
	if api, err := config.Read[config.API](); err != nil || !slices.Equal(api.CORSOrigins, want) {
		t.Errorf("%q, %v, want %q", api.CORSOrigins, err, want)
	}
}

// Every variable has a test here.
func TestVariablesAreAllKnown(t *testing.T) {
	for _, cfg := range []any{config.API{}, config.Worker{}, config.Authorizer{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(cfg)) {
			tag, ok := field.Tag.Lookup("env")
			name, _, _ := strings.Cut(tag, ",")
			if _, needed := variables[name]; ok && !needed && !slices.Contains(optional, name) {
				t.Errorf("%T reads %s", cfg, name)
			}
		}
	}
}
