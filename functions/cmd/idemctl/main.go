// Command idemctl is the operator's of the payments application: the library's idemctl with the application's topics, rows
// and provider, by the environment that the functions have (docs/operator.md).
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/delivery"
	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/functions/internal/secretstore"
	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/awsctl"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

func main() { os.Exit(idemctl.Main(app())) }

func app() idemctl.App {
	return awsctl.New(awsctl.Config{
		Deployment: deployed, Open: open, Encrypts: true,
		App: idemctl.App{Find: find, Drift: compare, Console: onConsole, Commands: []idemctl.Command{
			{Name: "missing", Help: "After a loss of data: make operations again that only the provider knows of.", Grammar: &missing{}},
			{Name: "apikey", Help: "Create, revoke and list API keys.", Grammar: &apiKeys{}},
			{Name: "account", Help: "Make an account collect what is transferred to it; compare it after a loss of data.", Grammar: &accounts{}},
		}},
	})
}

// deployed says where the application keeps what, and what a stack imports beside the tables.
func deployed(ctx context.Context) (awsctl.Deployment, error) {
	cfg, err := read[config.Operator]()
	if err != nil {
		return awsctl.Deployment{}, err
	}
	loaded, err := config.AWS(ctx)
	if err != nil {
		return awsctl.Deployment{}, err
	}
	beside := map[string]string{}
	for member, variable := range map[string]string{"audit": "AUDIT_TABLE", "apiKeys": "API_KEYS_TABLE", "keys": "KEYS_TABLE", "kmsKey": "KMS_KEY_ID"} {
		if name := os.Getenv(variable); name != "" {
			beside[member] = name
		}
	}
	return awsctl.Deployment{
		AWS: loaded, AuditTable: cfg.AuditTable, KeysTable: cfg.KeysTable, KMSKeyID: cfg.KMSKeyID, Beside: beside,
		Tables: []awsctl.Table{
			{Role: awsctl.Idempotency, Name: cfg.IdempotencyTable, Shape: schema.Idempotency()},
			{Role: awsctl.Outbox, Name: cfg.OutboxTable, Shape: schema.Outbox()},
			{Role: "payments", Name: cfg.PaymentsTable, Shape: table.Payments()},
		},
	}, nil
}

// open makes what the desk works with. Its log is stderr's: stdout is the answer's.
func open(ctx context.Context) (awsctl.Opened, error) {
	cfg, parts, err := wired(ctx)
	if err != nil {
		return awsctl.Opened{}, err
	}
	secret, err := secretstore.Scope(ctx, cfg.Scopes)
	if err != nil {
		return awsctl.Opened{}, err
	}
	engine, err := idem.New(parts.Store, idem.Config{FreezeAllowance: cfg.FreezeAllowance, Logger: parts.Logger, ScopeSecret: secret})
	return awsctl.Opened{Queue: parts.Queue, Desk: operator.Config{
		Store: parts.Store, Engine: engine, Topics: parts.Topics, Application: application{parts, cfg.PaymentsTable}.tell, SameShards: parts.SameShards, Logger: parts.Logger,
	}}, err
}

// keyPatience is for how long a person rather waits for a tenant's key than reads that there was none: a command has no
// caller whose time it takes.
const keyPatience = 10 * time.Second

// read reads a part of the configuration from the environment.
func read[T any]() (T, error) {
	cfg, err := config.Read[T]()
	return cfg, idemctl.Environment(err)
}

func wired(ctx context.Context) (config.Operator, delivery.Parts, error) {
	cfg, err := read[config.Operator]()
	if err != nil {
		return cfg, delivery.Parts{}, err
	}
	cfg.Out, cfg.Terminal, cfg.KeyTimeout = os.Stderr, true, max(cfg.KeyTimeout, keyPatience)
	parts, err := delivery.New(ctx, cfg.Worker)
	if err != nil {
		return cfg, parts, err
	}
	return cfg, parts, parts.SameShards(ctx)
}

// compare runs the drift job for a window.
func compare(ctx context.Context, w idemctl.Window, asJSON bool, out io.Writer) (clean bool, err error) {
	cfg, err := read[config.Drift]()
	if err != nil {
		return false, err
	}
	job, err := drift.Open(ctx, cfg, nil)
	if err != nil {
		return false, err
	}
	report, err := job.Check(ctx, drift.Window{From: w.From, To: w.To, Tenant: w.Tenant})
	var unusable *idem.ConfigError
	if errors.As(err, &unusable) {
		return false, err // nothing was compared
	}
	write := report.WriteTable
	if asJSON {
		write = report.WriteJSON
	}
	return report.Clean(), errors.Join(err, write(out))
}

// application is what the payments application and its provider know.
type application struct {
	delivery.Parts
	table string
}

// known is the part of a story that is the application's.
type known struct {
	// Row is the payment, refund or payout that the operation made; nil where it made none, or where that could not be read. Provider is
	// what the provider shows under each message's key.
	Row      *row                               `json:"row"`
	Provider map[idem.MessageID]json.RawMessage `json:"provider"`
}

// row is an entry as JSON has it.
type row struct {
	Kind              payments.EntryKind `json:"kind"`
	ID                string             `json:"id"`
	Status            payments.Status    `json:"status"`
	Amount            int64              `json:"amount"`
	Currency          string             `json:"currency"`
	Payment           string             `json:"payment,omitempty"`
	Refunded          int64              `json:"refunded,omitempty"`
	ProviderReference string             `json:"provider_reference,omitempty"`
	CreatedAt         time.Time          `json:"created_at"`
}

var kinds = []payments.EntryKind{payments.EntryPayment, payments.EntryRefund, payments.EntryPayout}

// unasked begins what is told in place of the provider's objects.
const unasked = "can't be asked: "

func (a application) tell(ctx context.Context, tenant string, id idem.OperationID, messages []operator.MessageView) (any, error) {
	all, unread := known{Provider: map[idem.MessageID]json.RawMessage{}}, error(nil)
	for _, kind := range kinds {
		pk, ok := payments.EntryOf(kind, tenant, id)
		if !ok {
			continue
		}
		e, err := a.entry(ctx, pk)
		if err != nil { // what the provider has is told without it
			unread = cmp.Or(unread, err)
		} else if e != nil {
			all.Row = &row{e.Kind, e.ID, e.Status, e.Amount, e.Currency, e.Payment, e.Refunded, e.ProviderReference, e.CreatedAt}
		}
	}
	for _, m := range messages {
		made, err := a.Provider.Made(ctx, m.Topic, m.ID)
		if err != nil { // the rest of the story is worth telling
			made, _ = json.Marshal(unasked + err.Error())
		}
		all.Provider[m.ID] = made
	}
	return all, unread
}

// entry reads a row strongly; nil where there is none.
func (a application) entry(ctx context.Context, pk string) (*payments.Entry, error) {
	strong := true
	out, err := a.Client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &a.table, ConsistentRead: &strong, Key: map[string]types.AttributeValue{table.Key: &types.AttributeValueMemberS{Value: pk}},
	})
	if err != nil || out.Item == nil {
		return nil, err
	}
	e, err := payments.DecodeEntry(out.Item)
	return &e, err
}
