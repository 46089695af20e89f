// Package awsctl makes the operator's command of an application on AWS: package idemctl with a desk over DynamoDB and SQS,
// and with the commands that need the tables themselves. Those check, prepare and restore tables, and carry the keys of
// encrypted data to another Region.
//
// Use [NewLambda] for an application that package lambdaapp runs: it takes the same lambdaapp.Config as the functions.
//
//	func main() { os.Exit(idemctl.Main(awsctl.NewLambda(awsctl.Lambda{Application: service.Configure}))) }
//
// Use [New] for an application that makes its store and its topics itself, such as one in a container or one that encrypts.
package awsctl

import (
	"cmp"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/auditlog"
	"github.com/idem-go/idem-aws/idem/operator/console"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/sqsqueue"
)

// Config is what New takes. Deployment and Open are required.
type Config struct {
	// Deployment reads where the application keeps what, usually from the environment, for each command that needs it. It calls
	// nobody. Make its error with idemctl.Environment where a variable is wrong.
	Deployment func(context.Context) (Deployment, error)
	// Open makes what the desk works with. It is called by each command that needs a desk.
	Open func(context.Context) (Opened, error)
	// Encrypts says that the application encrypts what it stores: there are the commands keys check, export, import and erase. The store
	// that Open returns must then open what is encrypted, and say so (storage.Decrypter), as a seal.Store does: else nobody can end the
	// operation of a tenant whose keys were erased. Default: no.
	Encrypts bool
	// App is what the application adds: Find, Drift, Console, Commands, Now. New sets Build and Letters. Default: nothing.
	App idemctl.App
}

// Deployment says where an application keeps what.
type Deployment struct {
	// AWS has Region, credentials and endpoints.
	AWS aws.Config
	// Tables are those that one transaction writes, which are restored together. [Idempotency] and [Outbox] must be among them.
	Tables []Table
	// AuditTable is the name of the log of changes.
	AuditTable string
	// Beside are names that `tables check` prints beside those of the tables, as what a stack imports. Default: none.
	Beside map[string]string
	// KeysTable is the table of data keys, and KMSKeyID the id or the ARN of the KMS key that wraps them. Default: nothing is
	// encrypted.
	KeysTable, KMSKeyID string
}

// Table is one of the tables that are restored together.
type Table struct {
	// Role is the table's name in what `tables check` prints: [Idempotency], [Outbox], or the application's own word.
	Role string
	// Name is the table's own.
	Name string
	// Shape is what the code needs of it.
	Shape schema.Table
}

// The roles of the tables that every application has.
const (
	Idempotency = "idempotency"
	Outbox      = "outbox"
)

// name is that of the table of a role.
func (d Deployment) name(role string) string {
	at := slices.IndexFunc(d.Tables, func(t Table) bool { return t.Role == role })
	if at < 0 {
		return ""
	}
	return d.Tables[at].Name
}

func (d Deployment) dynamoDB() *dynamodb.Client { return dynamodb.NewFromConfig(d.AWS) }

// Opened is what a desk works with.
type Opened struct {
	// Queue has the wake-ups and the dead letters.
	Queue *sqsqueue.Queue
	// Desk is what operator.New takes. Of its fields New sets Audit, WakeUps and DeadLetters, and ClockOff where there is neither that
	// nor Now.
	Desk operator.Config
}

// New returns the application's command line, for idemctl.Main or idemctl.Run.
func New(cfg Config) idemctl.App {
	app := cfg.App
	app.Build = cfg.build
	app.Letters = cfg.letters
	app.Console = cfg.console
	app.Commands = []idemctl.Command{{
		Name: "tables", Help: "Restore the tables, and check that tables have the shape that the code needs.", Grammar: newTables(cfg),
	}}
	if cfg.Encrypts {
		app.Commands = append(app.Commands, idemctl.Command{
			Name: "keys", Help: "Check the keys that tenants' data is encrypted with, erase a tenant's, and carry them to another Region.", Grammar: newDataKeys(cfg),
		})
	}
	app.Commands = append(app.Commands, cfg.App.Commands...)
	return app
}

// build makes the desk.
func (c Config) build(ctx context.Context) (*operator.Desk, error) {
	deployment, err := c.Deployment(ctx)
	if err != nil {
		return nil, err
	}
	opened, err := c.Open(ctx)
	if err != nil {
		return nil, err
	}
	return deskOf(deployment, opened)
}

// deskOf makes the desk of what was opened.
func deskOf(deployment Deployment, opened Opened) (*operator.Desk, error) {
	desk := opened.Desk
	var err error
	desk.WakeUps, desk.DeadLetters = opened.Queue, opened.Queue
	if desk.Audit, err = auditlog.New(deployment.dynamoDB(), deployment.AuditTable); err != nil {
		return nil, err
	}
	if desk.Now == nil && desk.ClockOff == nil {
		desk.ClockOff = clockOff(deployment.dynamoDB(), deployment.AuditTable)
	}
	return operator.New(desk)
}

// letters goes through the dead-letter queue.
func (c Config) letters(
	ctx context.Context, most int, redrive func(ctx context.Context, letter outbox.DeadLetter, again bool) error,
) (any, error) {
	opened, err := c.Open(ctx)
	if err != nil {
		return nil, err
	}
	report, err := opened.Queue.Redrive(ctx, sqsqueue.RedriveOptions{DryRun: redrive == nil, Max: most}, redrive)
	failed := func(letter sqsqueue.Redriven) bool { return letter.Action == sqsqueue.LetterFailed }
	switch {
	case err != nil && len(report.Letters) == 0:
		return nil, err
	case err == nil && slices.ContainsFunc(report.Letters, failed):
		err = idemctl.ErrLettersLeft
	}
	return report, err
}

// console says which deployment the console is about. What the application says comes after.
func (c Config) console(page *console.Config) error {
	deployment, err := c.Deployment(context.Background())
	if err != nil {
		return err
	}
	page.About = cmp.Or(deployment.AWS.Region, "no Region") + ", " + deployment.name(Idempotency)
	if c.App.Console != nil {
		return c.App.Console(page)
	}
	return nil
}
