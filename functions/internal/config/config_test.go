package config_test

import (
	"net/http"
	"net/http/httptest"
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
	"WAKE_UP_QUEUE_URL": "https://sqs.example/wake-ups", "DEAD_LETTER_QUEUE_URL": "https://sqs.example/dead", "AUTH": "gateway",
	"API_KEYS_TABLE": "keys",
}

// optional are the other variables that functions read.
var optional = []string{
	"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_SDK_DISABLED", "TRACES_FLUSH_MAX", "AWS_LAMBDA_FUNCTION_NAME",
	"LOG_LEVEL", "RESPONSE_BYTES_MAX", "RETENTION", "PROVIDER_TIMEOUT", "BODY_BYTES_MAX", "WAIT_MAX", "CLAIM_LEASE", "BACKOFF_MIN", "BACKOFF_MAX", "ATTEMPTS_MAX",
	"METRICS_NAMESPACE", "METRICS_SERVICE", "CORS_ORIGINS", "RECORD_CACHE", "FINGERPRINT_SECRETS", "FINGERPRINT_SECRET_ID", "SCOPE_SECRET", "SCOPE_SECRET_ID",
	"KEYS_TABLE", "KMS_KEY_ID", "SEAL_OPEN_ONLY", "KEY_AGE_MAX", "KEY_TIMEOUT", "BREAKER_FAILURES_MAX",
	"LONGEST_REQUEST", "LISTING_DELAY", "FREEZE_ALLOWANCE", "FUNCTION_TIMEOUT", "INLINE_PAUSE", "OUTBOX_SHARDS", "LEDGER_SHARDS", "LOST_RECORDS", "IMPORTED_TABLES", "WAKE_UPS_MAX", "PROBES_MAX",
	"WEBHOOK_SECRET", "WEBHOOK_SECRET_ID",
	"API_KEY_CACHE_AGE", "TEST_KEYS", "PROVIDER_CREDENTIAL_ID", "PROVIDER_CREDENTIAL_AGE",
	"QUOTA_TABLE", "QUOTA_NEW_KEYS_PER_SECOND", "QUOTA_ACTIVE_KEYS", "QUOTA_LOOK_UPS_PER_SECOND", "QUOTA_WAITS_PER_SECOND",
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
		ResponseBytesMax: 3 << 20, Retention: 24 * time.Hour, LedgerShards: 4, BreakerFailuresMax: 5,
	}
	provider := config.Provider{URL: "https://provider.example", Timeout: 5 * time.Second, LongestRequest: time.Minute, FreezeAllowance: time.Minute, CredentialAge: 5 * time.Minute}
	delivery := config.Worker{
		Log:    config.Log{MetricsNamespace: "idem"},
		Tables: tables, Provider: provider, WakeUpQueueURL: "https://sqs.example/wake-ups", DeadLetterQueueURL: "https://sqs.example/dead",
		Sealing:    config.Sealing{KeyAgeMax: 5 * time.Minute, KeyTimeout: time.Second},
		Tracing:    config.Tracing{TracesFlushMax: 100 * time.Millisecond, FunctionName: "idem"},
		ClaimLease: 10 * time.Second, BackoffMin: time.Second, BackoffMax: 30 * time.Second, InlinePause: 30 * time.Second, AttemptsMax: 10, OutboxShards: 8,
	}
	keys := config.APIKeys{APIKeysTable: "keys", APIKeyCacheAge: time.Minute, TestKeys: config.TestKeysAccept}
	if want := (config.API{Worker: delivery, APIKeys: keys, Auth: config.AuthGateway, BodyBytesMax: 256 << 10, WaitMax: 20 * time.Second}); !reflect.DeepEqual(api, want) {
		t.Errorf("api: %+v, want %+v", api, want)
	}
	if worker, err := config.Read[config.Worker](); err != nil || worker != delivery {
		t.Errorf("worker: %+v, %v, want %+v", worker, err, delivery)
	}
	if authorizer, err := config.Read[config.Authorizer](); err != nil || authorizer.APIKeys != keys {
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
		{"PAYMENTS_TABLE", []func() error{api, worker}},
		{"API_KEYS_TABLE", []func() error{authorizer}}, // the API needs it only where it authenticates
		{"API_KEY_CACHE_AGE=60", []func() error{api, authorizer}},
		{"TEST_KEYS=no", []func() error{authorizer}}, // likewise
		{"TRACES_FLUSH_MAX=0s", []func() error{api, worker}},
		{"TRACES_FLUSH_MAX=1001ms", []func() error{api, worker}},
		{"OTEL_SDK_DISABLED=perhaps", []func() error{api, worker}},
		{"PROVIDER_URL", []func() error{api, worker}},
		{"WAKE_UP_QUEUE_URL", []func() error{api, worker}},
		{"DEAD_LETTER_QUEUE_URL=", []func() error{api, worker}},
		{"AUTH", []func() error{api}},
		{"AUTH=", []func() error{api}},
		{"AUTH=none", []func() error{api}},
		{"AUTH=GATEWAY", []func() error{api}},
		{"RETENTION=24", []func() error{api, worker}},
		{"PROVIDER_TIMEOUT=5 s", []func() error{api, worker}},
		{"PROVIDER_CREDENTIAL_AGE=300", []func() error{api, worker}},
		{"PROVIDER_URL=http://provider.example", []func() error{api, worker, check[config.Drift]}},
		{"PROVIDER_URL=http://10.0.0.7:4580", []func() error{api, worker, check[config.Drift]}},
		{"LONGEST_REQUEST=1", []func() error{api, worker}},
		{"LISTING_DELAY=none", []func() error{api, worker}},
		{"FREEZE_ALLOWANCE=60", []func() error{api, worker}},
		{"FUNCTION_TIMEOUT=28", []func() error{api, worker}},
		{"CLAIM_LEASE=ten", []func() error{api, worker}},
		{"INLINE_PAUSE=30", []func() error{api, worker}},
		{"BACKOFF_MIN=1", []func() error{api, worker}},
		{"BACKOFF_MAX=-", []func() error{api, worker}},
		{"ATTEMPTS_MAX=1.5", []func() error{api, worker}},
		{"OUTBOX_SHARDS=many", []func() error{api, worker}},
		{"OUTBOX_SHARDS=0", []func() error{api, worker}},
		{"OUTBOX_SHARDS=257", []func() error{api, worker}},
		{"LEDGER_SHARDS=0", []func() error{api, worker}},
		{"LEDGER_SHARDS=257", []func() error{api, worker}},
		{"WAKE_UPS_MAX=-1", []func() error{api, worker}},
		{"WAKE_UPS_MAX=all", []func() error{api, worker}},
		{"PROBES_MAX=-1", []func() error{api, worker}},
		{"BODY_BYTES_MAX=256KiB", []func() error{api}},
		{"WAIT_MAX=20", []func() error{api}},
		{"WAIT_MAX=0s", []func() error{api}},
		{"WAIT_MAX=26s", []func() error{api}},
		{"RESPONSE_BYTES_MAX=0x10", []func() error{api, worker}},
		{"KEYS_TABLE=keys", []func() error{api, worker}},
		{"KMS_KEY_ID=1234abcd", []func() error{api, worker}},
		{"SEAL_OPEN_ONLY=true", []func() error{api, worker}},
		{"SEAL_OPEN_ONLY=yes", []func() error{api, worker}},
		{"LOST_RECORDS=maybe", []func() error{api, worker}},
		{"IMPORTED_TABLES=maybe", []func() error{worker}},
		{"KEY_AGE_MAX=5", []func() error{api, worker}},
		{"KEY_TIMEOUT=soon", []func() error{api, worker}},
		{"BREAKER_FAILURES_MAX=few", []func() error{api, worker}},
		{"RECORD_CACHE=on", []func() error{api}},
		{"FINGERPRINT_SECRETS=c2VjcmV0", []func() error{api}},
		{"FINGERPRINT_SECRETS=a:c2VjcmV0,", []func() error{api}},
		{"FINGERPRINT_SECRETS=a:not base64", []func() error{api}},
		{"SCOPE_SECRET=not base64", []func() error{api}},
		{"QUOTA_NEW_KEYS_PER_SECOND=10", []func() error{api}}, // without a table
		{"QUOTA_ACTIVE_KEYS=-1", []func() error{api}},
		{"QUOTA_LOOK_UPS_PER_SECOND=many", []func() error{api}},
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

// Variables that are missing are listed in one sentence.
func TestReadListsWhatIsMissingOnce(t *testing.T) {
	environment(t, "IDEMPOTENCY_TABLE", "OUTBOX_TABLE=", "PROVIDER_URL")
	want := "configuration: these environment variables are missing or empty: IDEMPOTENCY_TABLE, OUTBOX_TABLE, PROVIDER_URL"
	if err := check[config.Worker](); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
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

// A metric's line means nothing to who types a command, and CloudWatch does not read a terminal.
func TestATerminalIsToldWarningsWithoutMetrics(t *testing.T) {
	var lines strings.Builder
	logger, err := config.Log{MetricsNamespace: "idem", Out: &lines, Terminal: true}.Logger()
	if err != nil {
		t.Fatal(err)
	}
	logger.Info("a request", "topic", "charge")
	logger.Warn("drift", "kind", "missing_here")
	if got := lines.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=WARN msg=drift") {
		t.Errorf("%q", got)
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

func TestReadSealing(t *testing.T) {
	environment(t, "KEYS_TABLE=keys", "KMS_KEY_ID=1234abcd", "SEAL_OPEN_ONLY=true", "KEY_AGE_MAX=1m", "KEY_TIMEOUT=3s")
	want := config.Sealing{KeysTable: "keys", KMSKeyID: "1234abcd", SealOpenOnly: true, KeyAgeMax: time.Minute, KeyTimeout: 3 * time.Second}
	if worker, err := config.Read[config.Worker](); err != nil || worker.Sealing != want || !worker.Seals() {
		t.Errorf("%+v, %v, want %+v", worker.Sealing, err, want)
	}
	// Half of it is a mistake that must not end in plaintext: both names are said.
	environment(t, "KEYS_TABLE=keys", "KMS_KEY_ID")
	if err := check[config.API](); err == nil || !strings.Contains(err.Error(), "KEYS_TABLE") || !strings.Contains(err.Error(), "KMS_KEY_ID") {
		t.Errorf("%v, want both named", err)
	}
}

func TestReadFingerprintSecrets(t *testing.T) {
	environment(t, "FINGERPRINT_SECRETS=2027:bmV3,2026:b2xk")
	want := config.Secrets{{ID: "2027", Key: []byte("new")}, {ID: "2026", Key: []byte("old")}}
	if api, err := config.Read[config.API](); err != nil || !reflect.DeepEqual(api.FingerprintSecrets, want) {
		t.Errorf("%+v, %v, want %+v", api.FingerprintSecrets, err, want)
	}
	environment(t, "FINGERPRINT_SECRETS=2027:c2VjcmV0,2026=c2VjcmV0")
	if err := check[config.API](); err == nil || strings.Contains(err.Error(), "c2VjcmV0") {
		t.Errorf("%v, want an error that does not show a secret", err)
	}
	environment(t, "FINGERPRINT_SECRETS=2027:c2VjcmV0", "FINGERPRINT_SECRET_ID=payments/fingerprints")
	if err := check[config.API](); err == nil || !strings.Contains(err.Error(), "FINGERPRINT_SECRET_ID") || strings.Contains(err.Error(), "c2VjcmV0") {
		t.Errorf("%v, want both refused, and no secret shown", err)
	}
}

// LoadDefaultConfig names a client only where the environment names a CA bundle.
func TestAWSHasAClientWithoutACABundle(t *testing.T) {
	unset(t, "AWS_CA_BUNDLE")
	aws, err := config.AWS(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	t.Cleanup(server.Close)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := aws.HTTPClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusTeapot {
		t.Error(res.Status)
	}
}

// Every variable has a test here.
func TestVariablesAreAllKnown(t *testing.T) {
	for _, cfg := range []any{config.API{}, config.Worker{}, config.Authorizer{}, config.Webhook{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(cfg)) {
			tag, ok := field.Tag.Lookup("env")
			name, _, _ := strings.Cut(tag, ",")
			if _, needed := variables[name]; ok && !needed && !slices.Contains(optional, name) {
				t.Errorf("%T reads %s", cfg, name)
			}
		}
	}
}
