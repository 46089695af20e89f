package lambdaapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/breaker"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/sqsqueue"
	"github.com/idem-go/idem-aws/idem/sdkhttp"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/telemetry"
)

// shardsTimeout bounds the check of the shards at a start, which may be short of time.
const shardsTimeout = 2 * time.Second

// recordTime is how much of an invocation must be left for another record of a batch, where the application does not say how long
// a claim is: outbox.Config's default.
const recordTime = 10 * time.Second

// Config is what New takes. AWS is required; the zero value of every other field means its default.
type Config struct {
	// AWS has region, credentials and endpoints, as LoadDefaultConfig of the SDK's package config returns them. Its HTTP client gets
	// request bodies from memory (package sdkhttp).
	AWS aws.Config
	// Topics are the effects that the application's messages ask for. Default: none.
	Topics []outbox.Topic
	// Probes ask what became of wrapped operations, by their first released names (idem.Operation.RenamedFrom). Default: none, and an
	// operator decides; an API whose operations declare a probe (idem.Operation.Probed) does not start then.
	Probes map[string]outbox.Probe
	// Store, Engine and Outbox are for what the deployment does not say. Of their fields New sets itself: of Store the tables and
	// Shards; of Engine KillsAtDeadline, FunctionTimeout and, where it is nil, Logger; of Outbox FunctionTimeout and,
	// where it is nil, Logger.
	Store  dynamo.Config
	Engine idem.Config
	Outbox outbox.Config
	// Breaker is for the circuit breaker in front of the tables. Where its Logger is nil, it is the application's.
	Breaker breaker.Config
	// SignedPaths are the paths at which the API's handler takes signed webhooks: see [awslambda.Config]. Without it, a webhook whose
	// text has the character U+FFFD is answered 400. Default: none.
	SignedPaths []string
	// Getenv reads the variables of package environment. Default os.Getenv.
	Getenv func(string) string
	// Log gets the log lines, which are JSON and carry the metrics. Default os.Stdout, where Lambda collects them. In an operator's
	// command they are text, warnings and errors only, and the default is os.Stderr.
	Log io.Writer
}

// Application is what a function of an application is made of, or its operator's command.
type Application struct {
	// DynamoDB is a client, for the application's own tables.
	DynamoDB *dynamodb.Client
	// Store keeps records and messages, behind a circuit breaker.
	Store interface {
		storage.Store
		outbox.Store
	}
	// Engine runs operations, and Worker delivers messages, within a request too (outbox.NewInline).
	Engine *idem.Engine
	Worker *outbox.Worker
	// Topics are those of Config.Topics, and Queue has the wake-ups and the dead letters.
	Topics *outbox.Topics
	Queue  *sqsqueue.Queue
	// Logger writes JSON lines with metrics.
	Logger *slog.Logger

	cfg    Config
	env    variables
	rows   *dynamo.Store
	wakeUp *sqs.Client
}

// New makes what the process's function needs, by the variables that its deployment gave it (package environment). It calls nobody.
// Its error names the variable or the field.
func New(cfg Config) (*Application, error) {
	if cfg.Getenv == nil {
		cfg.Getenv = os.Getenv
	}
	env, err := read(cfg.Getenv)
	if err != nil {
		return nil, err
	}
	for _, path := range cfg.SignedPaths {
		if !strings.HasPrefix(path, "/") {
			return nil, &idem.ConfigError{Field: "Config.SignedPaths", Value: path, Rule: "must begin with a slash, and have no stage"}
		}
	}
	logger, err := newLogger(cfg.Log, env)
	if err != nil {
		return nil, err
	}
	for _, unset := range []**slog.Logger{&cfg.Engine.Logger, &cfg.Outbox.Logger, &cfg.Breaker.Logger} {
		*unset = cmp.Or(*unset, logger)
	}
	cfg.AWS.HTTPClient = sdkhttp.BufferedBody(cfg.AWS.HTTPClient)
	a := &Application{Logger: logger, cfg: cfg, env: env, DynamoDB: dynamodb.NewFromConfig(cfg.AWS, dynamo.LogRefused(logger)), wakeUp: sqs.NewFromConfig(cfg.AWS)}
	if err := a.keep(); err != nil {
		return nil, err
	}
	if err := a.deliver(); err != nil {
		return nil, err
	}
	return a, nil
}

// newLogger writes lines of level Info and above, and with them the metrics, which no level filters. A person gets text.
func newLogger(out io.Writer, env variables) (*slog.Logger, error) {
	if env.function == environment.Operator {
		if out == nil {
			out = os.Stderr
		}
		return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelWarn})), nil
	}
	if out == nil {
		out = os.Stdout
	}
	handler, err := telemetry.NewHandler(slog.NewJSONHandler(out, nil), telemetry.Config{Namespace: env.namespace, Service: env.service, Members: awslambda.RequestMembers})
	if err != nil {
		return nil, fmt.Errorf("lambdaapp: %s, %s: %w", environment.MetricsNamespace, environment.MetricsService, err)
	}
	return slog.New(handler), nil
}

// keep makes store and engine.
func (a *Application) keep() error {
	store := a.cfg.Store
	store.IdempotencyTable, store.OutboxTable, store.Shards = a.env.idempotency, a.env.outbox, a.env.shards
	var err error
	if a.rows, err = dynamo.New(a.DynamoDB, store); err != nil {
		return err
	}
	if a.Store, err = breaker.New(a.rows, a.cfg.Breaker); err != nil {
		return err
	}
	engine := a.cfg.Engine
	engine.KillsAtDeadline, engine.FunctionTimeout = a.env.function != environment.Operator, a.env.timeout
	a.Engine, err = idem.New(a.Store, engine)
	return err
}

// deliver makes the worker.
func (a *Application) deliver() error {
	cfg := a.cfg.Outbox
	cfg.FunctionTimeout = a.env.timeout
	if cfg.ClockSkew == 0 {
		cfg.ClockSkew = max(outbox.DefaultClockSkew, a.Engine.ClockSkew())
	}
	if cfg.ClockSkew < a.Engine.ClockSkew() {
		return &idem.ConfigError{Field: "Config.Outbox.ClockSkew", Value: cfg.ClockSkew, Rule: fmt.Sprintf("must be at least Config.Engine.ClockSkew = %v", a.Engine.ClockSkew())}
	}
	var err error
	if a.Topics, err = outbox.NewTopics(cfg, a.cfg.Topics...); err != nil {
		return err
	}
	if a.Queue, err = sqsqueue.New(a.wakeUp, a.env.wakeUps, a.env.deadLetters); err != nil {
		return err
	}
	a.Worker, err = outbox.NewWorker(a.Store, a.Topics, a.Queue, a.Queue)
	return err
}

// SameShards returns an [*idem.ConfigError] where rows are written with another number of shards than the process has. It is for an
// operator's command, before it lists or changes anything; it writes nothing. The functions keep the number, and check it themselves.
func (a *Application) SameShards(ctx context.Context) error { return a.rows.SameShards(ctx) }

var errNoFunction = errors.New("lambdaapp: " + environment.Function + " = " + environment.Operator + ": an operator's command is no function")

// Handler returns what lambda.Start takes: the handler of the function that the process is. The API function serves api, which the
// others don't use. All of them start while the tables don't answer; a run of the sweep or the reconciler then fails.
func (a *Application) Handler(ctx context.Context, api http.Handler) (lambda.Handler, error) {
	adapter := awslambda.Config{Logger: a.Logger, RecordTime: cmp.Or(a.cfg.Outbox.ClaimLease, recordTime), FunctionTimeout: a.env.timeout}
	switch a.env.function {
	case environment.Operator:
		return nil, errNoFunction
	case environment.API:
		if _, err := a.runner(); err != nil { // operations are registered here, and nowhere else
			return nil, err
		}
		a.recordShards(ctx)
		adapter.SignedPaths = a.cfg.SignedPaths
		return awslambda.HTTP(api, adapter), nil
	case environment.Worker:
		a.recordShards(ctx)
		return Worker(a.Worker, a.image, adapter), nil
	case environment.Relay:
		return Relay(a.wakeUp, a.env.wakeUps, adapter), nil
	}
	runner, err := a.runner()
	if err != nil {
		return nil, err
	}
	run := Sweep(runner, a.Logger)
	if a.env.function == environment.Reconcile {
		run = Reconcile(runner, a.Logger)
	}
	return lambda.NewHandler(run), nil
}

// runner is of the application's probes. It looks into the shards of every release, also of one that was gone back from.
func (a *Application) runner() (*outbox.Runner, error) {
	runner, err := outbox.NewRunner(a.Worker, a.Engine, a.cfg.Probes)
	if err != nil {
		return nil, err
	}
	runner.AdoptShards(a.rows.CheckShards)
	return runner, nil
}

// image is the message of an image of the stream.
func (a *Application) image(_ context.Context, image map[string]types.AttributeValue) (storage.Message, error) {
	m, err := a.rows.DecodeImage(image)
	if err != nil {
		return storage.Message{}, err
	}
	return *m, nil
}

// recordShards is for the start of what only writes: its number is recorded, so that what lists looks into as many. It goes on where
// that fails.
func (a *Application) recordShards(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, shardsTimeout)
	defer cancel()
	if _, err := a.rows.CheckShards(ctx); err != nil {
		a.Logger.WarnContext(ctx, "outbox.shards_not_recorded", "error", err)
	}
}
