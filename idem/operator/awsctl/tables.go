package awsctl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/go-json-experiment/json"

	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

// tables are the commands about the tables that one transaction writes: they are restored together.
type tables struct {
	Check   checkTables   `cmd:"" help:"Compare the tables with what the code needs, and print what a stack imports them by."`
	Restore restoreTables `cmd:"" help:"Restore the tables to new ones, each named as the one in the environment and a suffix, and prepare them but for time to live. Nothing executes on them before refuse-before is set in them."`
	Prepare prepareTables `cmd:"" help:"Give tables that were restored or copied what a restore leaves out: time to live, stream, point-in-time recovery, protection from deletion."`
}

func newTables(cfg Config) *tables {
	of := tablesOf{cfg.Deployment}
	return &tables{checkTables{of: of}, restoreTables{of: of}, prepareTables{of: of}}
}

// tablesOf reads where the tables are.
type tablesOf struct {
	deployment func(context.Context) (Deployment, error)
}

var suffixForm = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,40}$`)

// suffixed is what the commands have in common.
type suffixed struct {
	Suffix string `help:"Look at the tables whose names end with this beside the environment's names."`
}

// Validate judges the command line.
func (s suffixed) Validate() error {
	if s.Suffix != "" && !suffixForm.MatchString(s.Suffix) {
		return fmt.Errorf("--suffix must be %s", suffixForm)
	}
	return nil
}

type checkTables struct {
	of tablesOf `kong:"-"`
	suffixed
}

// TablesAnswer is what `tables check` answers as JSON.
type TablesAnswer struct {
	// Tables are those that one transaction writes.
	Tables []TableAnswer `json:"tables"`
	// Import has the tables' names by their roles, the ARN of the outbox table's stream as outboxStream, and Deployment.Beside: what a
	// stack imports.
	Import map[string]string `json:"import"`
}

// TableAnswer is one table as it was found.
type TableAnswer struct {
	// Table is its name, and Items about how many it has: AWS counts every six hours.
	Table string `json:"table"`
	Items int64  `json:"items"`
	// Differences say what is not as the code needs it, a sentence each; none where it is.
	Differences []string `json:"differences,omitempty"`
}

// Run implements the command.
func (c *checkTables) Run(d *idemctl.Desk) error {
	deployment, err := c.of.deployment(d.Context())
	if err != nil {
		return err
	}
	answer, err := look(d.Context(), deployment, c.Suffix)
	if err != nil && !errors.Is(err, idemctl.ErrDiffers) {
		return err
	}
	var lines []string
	for _, t := range answer.Tables {
		state := "as it must be"
		if len(t.Differences) > 0 {
			state = strings.Join(t.Differences, "; ")
		}
		lines = append(lines, t.Table+"  "+state)
	}
	text, encoding := json.Marshal(answer.Import, json.Deterministic(true))
	return errors.Join(d.Show(answer, append(lines, `"import": `+string(text))...), err, encoding)
}

// look compares the tables with their shapes.
func look(ctx context.Context, deployment Deployment, suffix string) (TablesAnswer, error) {
	answer, client := TablesAnswer{Import: map[string]string{}}, deployment.dynamoDB()
	var differs error
	for _, t := range deployment.Tables {
		name := t.Name + suffix
		found, err := dynamo.CheckTable(ctx, client, name, t.Shape)
		one := TableAnswer{Table: name}
		if wrong, ok := errors.AsType[*dynamo.TableError](err); ok {
			one.Differences, differs = wrong.Differences, idemctl.ErrDiffers
		} else if err != nil {
			return answer, err
		}
		one.Items = aws.ToInt64(found.ItemCount)
		answer.Tables, answer.Import[t.Role] = append(answer.Tables, one), name
		if stream := aws.ToString(found.LatestStreamArn); t.Shape.StreamNewImage && stream != "" {
			answer.Import["outboxStream"] = stream
		}
	}
	maps.Copy(answer.Import, deployment.Beside)
	return answer, differs
}

type prepareTables struct {
	of tablesOf `kong:"-"`
	suffixed
	idemctl.Reasoned
}

// Run implements the command.
func (p *prepareTables) Run(d *idemctl.Desk) error {
	deployment, err := p.of.deployment(d.Context())
	if err != nil {
		return err
	}
	return shown(d, deployment, p.Write, operator.Task{
		Name: "tables prepare", Subject: "tables " + deployment.name(Idempotency) + p.Suffix, Would: "switch on time to live, stream, point-in-time recovery and protection from deletion",
		Act: func(ctx context.Context) (string, error) {
			to, err := lossOf(ctx, deployment, p.Suffix, false)
			if err != nil {
				return "", err
			}
			return "prepared" + to, prepareAll(ctx, deployment, p.Suffix, true)
		},
	}, p.Change())
}

type restoreTables struct {
	of     tablesOf  `kong:"-"`
	To     time.Time `xor:"source" help:"The instant to restore to, RFC 3339, to the second, within what point-in-time recovery reaches back."`
	Backup string    `xor:"source" help:"Name of on-demand backups to restore from instead, one of each table."`
	Suffix string    `required:"" help:"What the new tables' names end with."`
	idemctl.Reasoned
}

// Validate judges the command line.
func (r *restoreTables) Validate() error {
	switch {
	case r.To.IsZero() == (r.Backup == ""):
		return errors.New("restore needs --to or --backup")
	case !suffixForm.MatchString(r.Suffix):
		return fmt.Errorf("--suffix must be %s", suffixForm)
	}
	return nil
}

// Run implements the command. It may be repeated with the same suffix and source: what was begun is waited for.
func (r *restoreTables) Run(d *idemctl.Desk) error {
	deployment, err := r.of.deployment(d.Context())
	if err != nil {
		return err
	}
	client, sources := deployment.dynamoDB(), []string(nil)
	return shown(d, deployment, r.Write, operator.Task{
		Name: "tables restore", Subject: "tables " + deployment.name(Idempotency) + r.Suffix, Would: fmt.Sprintf("restore %d tables to %s", len(deployment.Tables), r.source()),
		Judge: func(ctx context.Context) (err error) {
			sources, err = r.unbegun(ctx, client, deployment.Tables)
			return err
		},
		Act: func(ctx context.Context) (string, error) {
			for _, source := range sources {
				if err := r.begin(ctx, client, source); err != nil {
					return "", err
				}
			}
			to, err := lossOf(ctx, deployment, r.Suffix, true)
			if err != nil {
				return "", err
			}
			return "restored to " + r.source() + ": tables prepare switches time to live on, once what they hold was compared" + to, prepareAll(ctx, deployment, r.Suffix, false)
		},
	}, r.Change())
}

// shown carries a task out and shows what came of it. It needs no desk: the tables may be what is gone.
func shown(d *idemctl.Desk, of Deployment, write bool, t operator.Task, ch operator.Change) error {
	clerk, err := NewClerk(of.dynamoDB(), of.AuditTable)
	if err != nil {
		return err
	}
	result, err := clerk.Do(d.Context(), t, ch)
	if idemctl.Unfinished(err) {
		return err
	}
	line := result.Outcome
	if !write {
		line = "dry run: would " + line
	}
	return errors.Join(d.Show(result, line), err)
}
