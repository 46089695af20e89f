package awsctl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/lambdaapp"
	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

// Lambda is an application that package lambdaapp runs. Application is required.
type Lambda struct {
	// Application returns what the functions give to lambdaapp.New: topics, probes, and the engine's ScopeSecret must be theirs. Of the
	// variables of package environment the command needs IdempotencyTable, OutboxTable, OutboxShards, WakeUpQueueURL,
	// DeadLetterQueueURL and AuditTable.
	Application func(context.Context) (lambdaapp.Config, error)
	// Tables are the application's own, which its operations and settlements write: they are checked and restored together with
	// those of idem. Default: none.
	Tables []OwnTable
	// Known returns what the application knows of an operation, for `inspect` and the console; nil where it knows nothing. The client
	// is for the application's own tables. Default: nobody is asked.
	Known func(ctx context.Context, client *dynamodb.Client, tenant string, id idem.OperationID, messages []operator.MessageView) (any, error)
	// App is what the application adds, as in Config.
	App idemctl.App
}

// OwnTable is a table of the application's own.
type OwnTable struct {
	// Role is its name in what `tables check` prints, such as "orders".
	Role string
	// Variable is the environment variable that has its name, such as "ORDERS_TABLE".
	Variable string
	// Shape is what the code needs of it.
	Shape schema.Table
}

// NewLambda returns the command line of an application that package lambdaapp runs.
func NewLambda(l Lambda) idemctl.App {
	app := New(Config{Deployment: l.deployment, Open: l.open, App: l.App})
	app.Build = l.build
	return app
}

// build makes the desk, and asks the application once: it may read its secrets each time.
func (l Lambda) build(ctx context.Context) (*operator.Desk, error) {
	cfg, err := l.config(ctx)
	if err != nil {
		return nil, err
	}
	deployment, err := l.deploymentOf(cfg)
	if err != nil {
		return nil, err
	}
	opened, err := l.openedOf(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return deskOf(deployment, opened)
}

// config is what lambdaapp.New takes, in the place of a function.
func (l Lambda) config(ctx context.Context) (lambdaapp.Config, error) {
	cfg, err := l.Application(ctx)
	if err != nil {
		return cfg, idemctl.Environment(err)
	}
	getenv := cfg.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	cfg.Getenv = func(name string) string {
		if name == environment.Function {
			return environment.Operator
		}
		return getenv(name)
	}
	return cfg, nil
}

// deployment reads where the application keeps what. Its error names every variable that is not set.
func (l Lambda) deployment(ctx context.Context) (Deployment, error) {
	cfg, err := l.config(ctx)
	if err != nil {
		return Deployment{}, err
	}
	return l.deploymentOf(cfg)
}

func (l Lambda) deploymentOf(cfg lambdaapp.Config) (Deployment, error) {
	var missing []string
	needed := func(name, rule string) string {
		value := cfg.Getenv(name)
		if value == "" {
			missing = append(missing, fmt.Sprintf("%s is not set: it must be the name of %s", name, rule))
		}
		return value
	}
	d := Deployment{
		AWS: cfg.AWS, AuditTable: needed(environment.AuditTable, "the audit table"),
		Tables: []Table{
			{Idempotency, needed(environment.IdempotencyTable, "the idempotency table"), schema.Idempotency()},
			{Outbox, needed(environment.OutboxTable, "the outbox table"), schema.Outbox()},
		},
	}
	d.Beside = map[string]string{"audit": d.AuditTable}
	for _, own := range l.Tables {
		d.Tables = append(d.Tables, Table{own.Role, needed(own.Variable, "the table of "+own.Role), own.Shape})
	}
	if missing != nil {
		return d, idemctl.Environment(errors.New(strings.Join(missing, "; ")))
	}
	return d, nil
}

// open makes the application as an operator's command has it.
func (l Lambda) open(ctx context.Context) (Opened, error) {
	cfg, err := l.config(ctx)
	if err != nil {
		return Opened{}, err
	}
	return l.openedOf(ctx, cfg)
}

func (l Lambda) openedOf(ctx context.Context, cfg lambdaapp.Config) (Opened, error) {
	app, err := lambdaapp.New(cfg)
	if err != nil { // a line for each variable
		return Opened{}, idemctl.Environment(errors.New(strings.ReplaceAll(err.Error(), "\n", "; ")))
	}
	same := func(ctx context.Context) error {
		err := app.SameShards(ctx)
		if errors.As(err, new(*idem.ConfigError)) {
			err = fmt.Errorf("%s: %w", environment.OutboxShards, err)
		}
		return err
	}
	if err := same(ctx); errors.As(err, new(*idem.ConfigError)) {
		return Opened{}, idemctl.Environment(err)
	} else if err != nil {
		return Opened{}, err
	}
	desk := operator.Config{Store: app.Store, Engine: app.Engine, Topics: app.Topics, Probes: cfg.Probes, SameShards: same, Logger: app.Logger}
	if l.Known != nil {
		desk.Application = func(ctx context.Context, tenant string, id idem.OperationID, messages []operator.MessageView) (any, error) {
			return l.Known(ctx, app.DynamoDB, tenant, id, messages)
		}
	}
	return Opened{Queue: app.Queue, Desk: desk}, nil
}
