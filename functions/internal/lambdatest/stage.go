// Package lambdatest sets functions up in tests as a deployed stack would: their tables on an emulator, their queues, the
// provider simulator, and the environment that names them all. It is for tests only.
package lambdatest

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/internal/token"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// Token is the API key in the sample events; Tenant is whose it is.
const (
	Token  = "idem_test_00000000000000000000000000000EXAMPLEtenantA1hN7E2"
	Tenant = "tenant-a"
)

// Stage is what a function finds around it.
type Stage struct {
	Client *dynamodb.Client
	// The names of the tables.
	Idempotency, Outbox, Payments, APIKeys, Drift string
	// Provider controls the provider simulator.
	Provider provider.Control
	Queues   *Queues

	credential atomic.Pointer[string]
	more       atomic.Int64 // messages that AcceptOf has made
	answered   sync.Map     // when the provider first ended a call under a key
}

var prefixes atomic.Int64

// New makes a stage with empty tables and seeds [Token]. It sets the environment of the test's process, so that no test
// with a stage can run beside another. What the functions then ask DynamoDB waits for the emulator's answer (wirefault.Patient).
// The package needs a TestMain with dynamotest.Main.
func New(t *testing.T) *Stage {
	t.Helper()
	endpoint := dynamotest.Endpoint(t, dynamotest.Names()[0])
	s := &Stage{Client: dynamotest.Client(endpoint, wirefault.Patiently), Queues: newQueues(t)}
	config.Wire(t, patiently)
	s.Provider = newProvider(t, &s.credential, &s.answered)
	prefix := "stage-" + strconv.FormatInt(prefixes.Add(1), 10)
	tables, err := dynamotest.CreateTables(t.Context(), s.Client, prefix)
	if err != nil {
		t.Fatal(err)
	}
	s.Idempotency, s.Outbox, s.Payments = tables.Idempotency, tables.Outbox, prefix+"-payments"
	s.APIKeys, s.Drift = prefix+"-api-keys", prefix+"-drift"
	for name, shape := range map[string]schema.Table{s.Payments: table.Payments(), s.APIKeys: table.APIKeys(), s.Drift: table.Drift()} {
		if err := dynamotest.CreateTable(t.Context(), s.Client, name, shape); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_MAX_ATTEMPTS": "2",
		"AWS_ENDPOINT_URL_DYNAMODB": endpoint, "AWS_ENDPOINT_URL_SQS": s.Queues.url,
		"IDEMPOTENCY_TABLE": s.Idempotency, "OUTBOX_TABLE": s.Outbox, "PAYMENTS_TABLE": s.Payments, "API_KEYS_TABLE": s.APIKeys,
		"DRIFT_TABLE": s.Drift, "DRIFT_QUEUE_URL": s.Queues.url + "/000000000000/" + pieces,
		"PROVIDER_URL": s.Provider.URL, "WAKE_UP_QUEUE_URL": s.Queues.url + "/000000000000/" + wakeUps,
		"DEAD_LETTER_QUEUE_URL": s.Queues.url + "/000000000000/" + dead, "AUTH": "gateway", "LOG_LEVEL": "ERROR+1",
	} {
		t.Setenv(name, value)
	}
	s.Key(t, apikey.Key{ID: token.ID(Token), Tenant: Tenant, Name: "samples", Scopes: apikey.Scopes(), CreatedAt: time.Now()})
	return s
}

// Demand has the provider refuse with 401 whatever comes without this credential, but for its control.
func (s *Stage) Demand(credential string) { s.credential.Store(&credential) }

// Answered is when the provider was first done with a call under the key; the zero time where there was none.
func (s *Stage) Answered(key string) time.Time {
	at, _ := s.answered.Load(key)
	when, _ := at.(time.Time)
	return when
}

// Key puts an API key there.
func (s *Stage) Key(t *testing.T, key apikey.Key) {
	t.Helper()
	if err := s.KeyTable().Insert(t.Context(), key); err != nil {
		t.Fatal(err)
	}
}

// KeyTable is the table of API keys.
func (s *Stage) KeyTable() apikey.Table { return apikey.Table{Client: s.Client, Name: s.APIKeys} }

// Keys authenticates by the stage's table, and holds nothing.
func (s *Stage) Keys(t *testing.T) *apikey.Keys {
	t.Helper()
	keys, err := apikey.New(apikey.Config{Table: s.KeyTable()})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// Account puts an account in EUR there.
func (s *Stage) Account(t *testing.T, tenant, id string, balance int64) {
	t.Helper()
	s.Put(t, s.Payments, map[string]types.AttributeValue{
		"pk": text("account#" + tenant + "/" + id), "tn": text(tenant), "id": text(id), "cur": text("EUR"),
		"bal": &types.AttributeValueMemberN{Value: strconv.FormatInt(balance, 10)},
	})
}

// Put puts an item into a table.
func (s *Stage) Put(t *testing.T, table string, item map[string]types.AttributeValue) {
	t.Helper()
	if _, err := s.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
		t.Fatal(err)
	}
}

// Items returns everything in a table but the mark of the secret that records are named under and the number of shards.
func (s *Stage) Items(t *testing.T, table string) []map[string]types.AttributeValue {
	t.Helper()
	out, err := s.Client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(out.Items, func(it map[string]types.AttributeValue) bool {
		return it[schema.ScopeMark] != nil || it[schema.Shards] != nil
	})
}

// Charges returns what the provider has made, newest first.
func (s *Stage) Charges(t *testing.T) []provider.Object {
	t.Helper()
	charges, err := s.Provider.Charges(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return charges
}

// Payouts returns the screenings and the payouts that the provider has made, newest first.
func (s *Stage) Payouts(t *testing.T) (screenings, payouts []provider.Object) {
	t.Helper()
	screenings, err := s.Provider.Screenings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if payouts, err = s.Provider.Payouts(t.Context()); err != nil {
		t.Fatal(err)
	}
	return screenings, payouts
}

// Sample returns a sample event of the folder events.
func Sample(t *testing.T, name string) []byte {
	t.Helper()
	directory, err := os.Getwd()
	for err == nil {
		event, missing := os.ReadFile(filepath.Join(directory, "events", name+".json"))
		if missing == nil {
			return event
		}
		if directory == filepath.Dir(directory) {
			err = missing
		}
		directory = filepath.Dir(directory)
	}
	t.Fatal(err)
	return nil
}

// Unreachable makes the function's endpoint of DynamoDB refuse every connection.
func Unreachable(t *testing.T) {
	t.Helper()
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
