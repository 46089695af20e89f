// Package config reads what the functions are configured with from the environment that the CDK app gives them, and
// makes what every function starts from. A missing or malformed variable is an error that names it.
package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/caarlos0/env/v11"

	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/sdkhttp"
	"github.com/idem-go/idem-aws/idem/telemetry"
)

// Log is what every function logs by.
type Log struct {
	Level slog.Level `env:"LOG_LEVEL" envDefault:"INFO"`
	// MetricsNamespace is CloudWatch's, for the metrics that lines carry; MetricsService is the value of their one
	// dimension. Default: none.
	MetricsNamespace string `env:"METRICS_NAMESPACE" envDefault:"idem"`
	MetricsService   string `env:"METRICS_SERVICE"`
	// Out is where the lines go. Default: stdout, where Lambda collects them.
	Out io.Writer
	// Terminal says that a person reads the lines: they are text, at least warnings, and carry no metrics.
	Terminal bool
}

// Logger writes JSON lines, and with them the metrics, which no level filters.
func (l Log) Logger() (*slog.Logger, error) {
	if l.Out == nil {
		l.Out = os.Stdout
	}
	if l.Terminal {
		return slog.New(slog.NewTextHandler(l.Out, &slog.HandlerOptions{Level: max(l.Level, slog.LevelWarn)})), nil
	}
	lines := slog.NewJSONHandler(l.Out, &slog.HandlerOptions{Level: l.Level})
	handler, err := telemetry.NewHandler(lines, telemetry.Config{Namespace: l.MetricsNamespace, Service: l.MetricsService, Members: awslambda.RequestMembers})
	if err != nil {
		return nil, fmt.Errorf("configuration: METRICS_NAMESPACE, METRICS_SERVICE: %w", err)
	}
	return slog.New(handler), nil
}

// Function is what the deployment says about the function itself.
type Function struct {
	// FunctionTimeout is the function's time-out. One that leaves no time for the function's work is an error at the start.
	// Default: not known, and not checked.
	FunctionTimeout time.Duration `env:"FUNCTION_TIMEOUT"`
}

// Payments is the application's own table.
type Payments struct {
	PaymentsTable string `env:"PAYMENTS_TABLE,notEmpty"`
}

// Tables are the tables of the functions that run operations or deliver messages.
type Tables struct {
	Payments
	IdempotencyTable string `env:"IDEMPOTENCY_TABLE,notEmpty"`
	OutboxTable      string `env:"OUTBOX_TABLE,notEmpty"`
	// ResponseBytesMax bounds a stored response, in bytes.
	ResponseBytesMax int `env:"RESPONSE_BYTES_MAX" envDefault:"3145728"`
	// Retention is how long a final record answers.
	Retention time.Duration `env:"RETENTION" envDefault:"24h"`
	// LostRecords says that records may be missing in the tables: nothing executes, and no provider is called, until an
	// operator has said up to when (idemctl refuse-before).
	LostRecords bool `env:"LOST_RECORDS"`
	// LedgerShards is the number of partitions that an hour of the payments table's index is spread over, 1 to 256; 1,000
	// payments, refunds and payouts per second fill one. It may be raised. To lower it again frees nothing: what lists looks into as many as
	// were ever written into.
	LedgerShards int `env:"LEDGER_SHARDS" envDefault:"4"`
	// ImportedTables says that something else has made the tables: the sweep looks at them when it starts.
	ImportedTables bool `env:"IMPORTED_TABLES"`
	// BreakerFailuresMax is after how many calls in a row without a reply the tables count as down.
	BreakerFailuresMax int `env:"BREAKER_FAILURES_MAX" envDefault:"5"`
}

// Provider is where money moves and what one call may take.
type Provider struct {
	URL string `env:"PROVIDER_URL,notEmpty"`
	// Timeout bounds one call.
	Timeout time.Duration `env:"PROVIDER_TIMEOUT" envDefault:"5s"`
	// LongestRequest is the longest time that a request can be under way, its caller being gone or not, and ListingDelay the
	// longest until what was made is listed: absence proves something only after both, and after FreezeAllowance.
	LongestRequest time.Duration `env:"LONGEST_REQUEST" envDefault:"1m"`
	ListingDelay   time.Duration `env:"LISTING_DELAY" envDefault:"0s"`
	// FreezeAllowance is the longest time for which a process may be frozen and then send what it was about to send.
	FreezeAllowance time.Duration `env:"FREEZE_ALLOWANCE" envDefault:"1m"`
	// CredentialID is the name or ARN of a secret of AWS Secrets Manager that holds what is sent as "Authorization: Bearer …":
	// one credential, or the new one and the old one with a comma between. Default: none, and nothing is sent.
	CredentialID string `env:"PROVIDER_CREDENTIAL_ID"`
	// CredentialAge is for how long a process uses a credential that it has read: so long a new one takes to be used
	// everywhere. At least 10 s.
	CredentialAge time.Duration `env:"PROVIDER_CREDENTIAL_AGE" envDefault:"5m"`
}

// check refuses an address at which amounts and credentials would cross a network in plain text. This machine is none: there
// local stacks and tests have their provider.
func (p Provider) check() error {
	if parsed, err := url.Parse(p.URL); err == nil && parsed.Scheme == "http" && !loopback(parsed.Hostname()) {
		return fmt.Errorf("configuration: PROVIDER_URL = %q: must be https, except for an address of this machine", p.URL)
	}
	return nil
}

func loopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// Sealing is what stored responses, payloads and evidence are encrypted with.
type Sealing struct {
	// KeysTable keeps the tenants' data keys, and KMSKeyID names what wraps them. Default: none, and nothing is encrypted.
	KeysTable string `env:"KEYS_TABLE"`
	KMSKeyID  string `env:"KMS_KEY_ID"`
	// SealOpenOnly opens what is encrypted and encrypts nothing: for the release before the first that does, and after it
	// was given up.
	SealOpenOnly bool `env:"SEAL_OPEN_ONLY"`
	// KeyAgeMax is for how long an erased key may still be used by a process that holds it.
	KeyAgeMax time.Duration `env:"KEY_AGE_MAX" envDefault:"5m"`
	// KeyTimeout bounds the fetching of a key: the table's answer and KMS's.
	KeyTimeout time.Duration `env:"KEY_TIMEOUT" envDefault:"1s"`
}

// Seals says that sealing is configured.
func (s Sealing) Seals() bool { return s.KeysTable != "" }

func (s Sealing) check() error {
	switch {
	case s.Seals() != (s.KMSKeyID != ""):
		return fmt.Errorf("configuration: KEYS_TABLE = %q, KMS_KEY_ID = %q: both must be set, or neither", s.KeysTable, s.KMSKeyID)
	case s.SealOpenOnly && !s.Seals():
		return errors.New("configuration: SEAL_OPEN_ONLY = true: needs KEYS_TABLE and KMS_KEY_ID")
	}
	return nil
}

// APIKeys is where API keys are, and how they are read.
type APIKeys struct {
	APIKeysTable string `env:"API_KEYS_TABLE"`
	// APIKeyCacheAge is for how long a process uses what it has read of a key, and so how long a revoked one works at the most.
	// 0 reads every time.
	APIKeyCacheAge time.Duration `env:"API_KEY_CACHE_AGE" envDefault:"1m"`
	// TestKeys says what becomes of keys that begin with idem_test_: with "accept" they move money as any other, with "refuse"
	// they get 403. A production stage sets "refuse".
	TestKeys string `env:"TEST_KEYS" envDefault:"accept"`
}

// What TestKeys may be.
const (
	TestKeysAccept = "accept"
	TestKeysRefuse = "refuse"
)

// OperatorKeys is the configuration of the operator's commands about API keys.
type OperatorKeys struct {
	APIKeysTable string `env:"API_KEYS_TABLE,notEmpty"`
}

// OperatorKeyChanges is that of those that change a key. They need nothing else of the stack, so that a person may have no more.
type OperatorKeyChanges struct {
	OperatorKeys
	// AuditTable keeps what operators change. The sweep function starts without it, and then no alarm tells of a change by hand.
	AuditTable string `env:"AUDIT_TABLE,notEmpty"`
}

func (k APIKeys) check(needed string) error {
	if k.APIKeysTable == "" {
		return fmt.Errorf("configuration: API_KEYS_TABLE is not set, which %s needs", needed)
	}
	if k.TestKeys != TestKeysAccept && k.TestKeys != TestKeysRefuse {
		return fmt.Errorf("configuration: TEST_KEYS = %q: must be %s or %s", k.TestKeys, TestKeysAccept, TestKeysRefuse)
	}
	return nil
}

// Authorizer is the configuration of the authorizer function.
type Authorizer struct {
	Log
	APIKeys
}

func (a Authorizer) check() error { return a.APIKeys.check("the authorizer") }

// The places where the caller is authenticated.
const (
	AuthGateway  = "gateway"
	AuthFunction = "function"
)

// API is the configuration of the api function, which is a worker for what it delivers inline.
type API struct {
	Worker
	Quota
	Scopes
	APIKeys
	// Auth says who authenticates: the gateway's authorizer, whose context names the tenant, or this function.
	Auth string `env:"AUTH,notEmpty"`
	// BodyBytesMax bounds a request's body, in bytes.
	BodyBytesMax int `env:"BODY_BYTES_MAX" envDefault:"262144"`
	// WaitMax bounds "Prefer: wait": for so long a request may hold an instance of the function. At most 25 s.
	WaitMax time.Duration `env:"WAIT_MAX" envDefault:"20s"`
	// CORSOrigins are the origins whose pages may call, separated by commas. Default: none, and nothing is said of CORS.
	CORSOrigins []string `env:"CORS_ORIGINS"`
	// RecordCache answers replays of final records from memory for a minute. Default: no.
	RecordCache bool `env:"RECORD_CACHE"`
	// FingerprintSecrets key the fingerprints: the newest first, older ones for as long as records hold theirs. Default:
	// none, and fingerprints are plain hashes. For local stacks: anybody who may read a function's configuration reads them.
	FingerprintSecrets Secrets `env:"FINGERPRINT_SECRETS"`
	// FingerprintSecretID is the name or ARN of a secret of AWS Secrets Manager that holds them in the same notation, read when
	// the function starts.
	FingerprintSecretID string `env:"FINGERPRINT_SECRET_ID"`
}

func (a API) check() error {
	if a.Auth != AuthGateway && a.Auth != AuthFunction {
		return fmt.Errorf("configuration: AUTH = %q: must be %s or %s", a.Auth, AuthGateway, AuthFunction)
	}
	if a.WaitMax <= 0 || a.WaitMax > waitMaxBound {
		return fmt.Errorf("configuration: WAIT_MAX = %v: must be more than 0 and at most %v", a.WaitMax, waitMaxBound)
	}
	if a.Auth == AuthFunction {
		if err := a.APIKeys.check("AUTH = " + AuthFunction); err != nil {
			return err
		}
	}
	if len(a.FingerprintSecrets) > 0 && a.FingerprintSecretID != "" {
		return fmt.Errorf("configuration: FINGERPRINT_SECRETS (%d secrets), FINGERPRINT_SECRET_ID = %q: at most one of them may be set",
			len(a.FingerprintSecrets), a.FingerprintSecretID)
	}
	return errors.Join(a.Worker.check(), a.Quota.check(), a.Scopes.check())
}

// waitMaxBound is the middleware's.
const waitMaxBound = 25 * time.Second

// Worker is the configuration of the functions that deliver messages or decide what became of them.
type Worker struct {
	Log
	Function
	Tables
	Provider
	Sealing
	Tracing
	WakeUpQueueURL     string        `env:"WAKE_UP_QUEUE_URL,notEmpty"`
	DeadLetterQueueURL string        `env:"DEAD_LETTER_QUEUE_URL,notEmpty"`
	ClaimLease         time.Duration `env:"CLAIM_LEASE" envDefault:"10s"`
	BackoffMin         time.Duration `env:"BACKOFF_MIN" envDefault:"1s"`
	BackoffMax         time.Duration `env:"BACKOFF_MAX" envDefault:"30s"`
	AttemptsMax        int           `env:"ATTEMPTS_MAX" envDefault:"10"`
	// InlinePause is for about how long the API function leaves a tenant's payouts to the worker, and answers 202, after a call of
	// one timed out or took half of PROVIDER_TIMEOUT.
	InlinePause time.Duration `env:"INLINE_PAUSE" envDefault:"30s"`
	// OutboxShards is the number of partitions that each queue of the tables' indexes is spread over, 1 to 256; 500 messages
	// per second fill one. It may be raised. To lower it again frees nothing: what lists looks into as many as were ever written into.
	OutboxShards int `env:"OUTBOX_SHARDS" envDefault:"8"`
	// WakeUpsMax is how many wake-ups the sweep lets wait in the queue: it offers what is due without reading it, and the
	// worker decides. Default: 0, and the sweep reads each message.
	WakeUpsMax int `env:"WAKE_UPS_MAX"`
	// ProbesMax is how many look-ups a run of the reconciler makes at once for each of the provider's endpoints. Default: 0, the
	// library's 8.
	ProbesMax int `env:"PROBES_MAX"`
}

func (w Worker) check() error {
	var err error
	if w.OutboxShards < 1 || w.OutboxShards > shardsMax {
		err = fmt.Errorf("configuration: OUTBOX_SHARDS = %d: must be 1 to %d", w.OutboxShards, shardsMax)
	}
	if w.WakeUpsMax < 0 {
		err = errors.Join(err, fmt.Errorf("configuration: WAKE_UPS_MAX = %d: must not be negative", w.WakeUpsMax))
	}
	if w.ProbesMax < 0 {
		err = errors.Join(err, fmt.Errorf("configuration: PROBES_MAX = %d: must not be negative", w.ProbesMax))
	}
	return errors.Join(w.Tables.check(), w.Provider.check(), w.Sealing.check(), w.Tracing.check(), err)
}

// shardsMax is the store's bound, and that of the ledger.
const shardsMax = 256

func (t Tables) check() error {
	if t.LedgerShards < 1 || t.LedgerShards > shardsMax {
		return fmt.Errorf("configuration: LEDGER_SHARDS = %d: must be 1 to %d", t.LedgerShards, shardsMax)
	}
	return nil
}

// Read fills a configuration from the environment.
func Read[T any]() (T, error) {
	cfg, err := env.ParseAs[T]()
	if err != nil {
		return cfg, fmt.Errorf("configuration: %w", named[T](err))
	}
	if related, ok := any(cfg).(interface{ check() error }); ok {
		return cfg, related.check()
	}
	return cfg, nil
}

// named is the parser's error in the names of the variables. Those that are missing are listed once, after those that are
// malformed.
func named[T any](err error) error {
	var all env.AggregateError
	if !errors.As(err, &all) {
		return err
	}
	variables := map[string]string{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		variables[field.Name], _, _ = strings.Cut(field.Tag.Get("env"), ",")
	}
	var each []error
	var missing []string
	for _, err := range all.Errors {
		var malformed env.ParseError
		var unset env.VarIsNotSetError
		var empty env.EmptyVarError
		switch {
		case errors.As(err, &malformed):
			each = append(each, fmt.Errorf("environment variable %q: %w", variables[malformed.Name], malformed.Err))
		case errors.As(err, &unset):
			missing = append(missing, unset.Key)
		case errors.As(err, &empty):
			missing = append(missing, empty.Key)
		default:
			each = append(each, err)
		}
	}
	if len(missing) > 0 {
		each = append(each, fmt.Errorf("these environment variables are missing or empty: %s", strings.Join(missing, ", ")))
	}
	return errors.Join(each...)
}

// AWS loads the SDK's configuration: region, credentials and endpoints from the environment. Request bodies are sent from
// memory (package sdkhttp).
func AWS(ctx context.Context) (aws.Config, error) {
	cfg, err := awsconfig.LoadDefaultConfig(ctx)
	if err != nil {
		return cfg, fmt.Errorf("configuration: %w", err)
	}
	cfg.HTTPClient = wire(sdkhttp.BufferedBody(cfg.HTTPClient))
	return cfg, nil
}

// wire lies between the SDK's clients and the network: nothing, outside tests.
var wire = func(client sdkhttp.Doer) sdkhttp.Doer { return client }

// Wire lays a wire below the clients of each [AWS] until the test is over. It is for tests only.
func Wire(t interface{ Cleanup(f func()) }, between func(sdkhttp.Doer) sdkhttp.Doer) {
	before := wire
	wire = between
	t.Cleanup(func() { wire = before })
}

// Must ends the start of a function that can't be configured: its log then names the reason, and nothing was taken yet.
func Must[T any](value T, err error) T {
	if err != nil {
		slog.New(slog.NewJSONHandler(os.Stdout, nil)).Error("start failed", "error", err)
		os.Exit(1)
	}
	return value
}
