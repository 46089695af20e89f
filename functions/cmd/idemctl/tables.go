package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/go-json-experiment/json"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

// tables are the commands about the tables of records, messages and payments: what one transaction writes is restored together.
type tables struct {
	Check   checkTables   `cmd:"" help:"Compare the tables with what the code needs, and print what a stack imports them by."`
	Restore restoreTables `cmd:"" help:"Restore the tables to new ones, each named as the one in the environment and a suffix, and prepare them."`
	Prepare prepareTables `cmd:"" help:"Give tables that were restored or copied what a restore leaves out: time to live, stream, point-in-time recovery, protection from deletion."`
}

// named is one of the tables.
type named struct {
	// member is the table's name in the context import, and variable in the environment.
	member, variable string
	shape            schema.Table
}

func moneyTables() []named {
	return []named{
		{"idempotency", "IDEMPOTENCY_TABLE", schema.Idempotency()}, {"outbox", "OUTBOX_TABLE", schema.Outbox()},
		{"payments", "PAYMENTS_TABLE", table.Payments()},
	}
}

// besides are what a stack imports beside the tables that are restored.
func besides() map[string]string {
	return map[string]string{"audit": "AUDIT_TABLE", "apiKeys": "API_KEYS_TABLE", "keys": "KEYS_TABLE", "kmsKey": "KMS_KEY_ID"}
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

// opened is a client and the names of the tables, without a suffix.
func opened(ctx context.Context) (*dynamodb.Client, map[string]string, error) {
	cfg, err := read[config.Operator]()
	if err != nil {
		return nil, nil, err
	}
	loaded, err := config.AWS(ctx)
	if err != nil {
		return nil, nil, err
	}
	return dynamodb.NewFromConfig(loaded), map[string]string{
		"idempotency": cfg.IdempotencyTable, "outbox": cfg.OutboxTable, "payments": cfg.PaymentsTable,
	}, nil
}

type checkTables struct{ suffixed }

// looked is the answer to check.
type looked struct {
	Tables []lookedTable `json:"tables"`
	// Import is the value of the context import.
	Import map[string]string `json:"import"`
}

type lookedTable struct {
	Table       string   `json:"table"`
	Items       int64    `json:"items"`
	Differences []string `json:"differences,omitempty"`
}

// Run implements the command.
func (c *checkTables) Run(d *idemctl.Desk) error {
	client, names, err := opened(d.Context())
	if err != nil {
		return err
	}
	answer, err := look(d.Context(), client, names, c.Suffix)
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
func look(ctx context.Context, client *dynamodb.Client, names map[string]string, suffix string) (looked, error) {
	answer := looked{Import: map[string]string{}}
	var differs error
	for _, t := range moneyTables() {
		name := names[t.member] + suffix
		found, err := dynamo.CheckTable(ctx, client, name, t.shape)
		one := lookedTable{Table: name}
		if wrong, ok := errors.AsType[*dynamo.TableError](err); ok {
			one.Differences, differs = wrong.Differences, idemctl.ErrDiffers
		} else if err != nil {
			return answer, err
		}
		one.Items = aws.ToInt64(found.ItemCount)
		answer.Tables, answer.Import[t.member] = append(answer.Tables, one), name
		if stream := aws.ToString(found.LatestStreamArn); t.shape.StreamNewImage && stream != "" {
			answer.Import["outboxStream"] = stream
		}
	}
	for member, variable := range besides() {
		if name := os.Getenv(variable); name != "" {
			answer.Import[member] = name
		}
	}
	return answer, differs
}

type prepareTables struct {
	suffixed
	idemctl.Reasoned
}

// Run implements the command.
func (p *prepareTables) Run(d *idemctl.Desk) error {
	client, names, err := opened(d.Context())
	if err != nil {
		return err
	}
	return shown(d, p.Write, operator.Task{
		Name: "tables prepare", Subject: "tables " + names["idempotency"] + p.Suffix, Would: "switch on time to live, stream, point-in-time recovery and protection from deletion",
		Act: func(ctx context.Context) (string, error) { return "prepared", prepareAll(ctx, client, names, p.Suffix) },
	}, p.Change())
}

type restoreTables struct {
	To     time.Time `xor:"source" help:"The instant to restore to, RFC 3339, within what point-in-time recovery reaches back."`
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

// Run implements the command. It may be repeated with the same suffix: what was begun is waited for.
func (r *restoreTables) Run(d *idemctl.Desk) error {
	client, names, err := opened(d.Context())
	if err != nil {
		return err
	}
	source := "backup " + r.Backup
	if r.Backup == "" {
		source = r.To.UTC().Format(time.RFC3339)
	}
	return shown(d, r.Write, operator.Task{
		Name: "tables restore", Subject: "tables " + names["idempotency"] + r.Suffix, Would: "restore three tables to " + source,
		Act: func(ctx context.Context) (string, error) {
			for _, t := range moneyTables() {
				if err := r.begin(ctx, client, names[t.member]); err != nil {
					return "", err
				}
			}
			return "restored to " + source, prepareAll(ctx, client, names, r.Suffix)
		},
	}, r.Change())
}

// shown carries a task out and shows what came of it.
func shown(d *idemctl.Desk, write bool, t operator.Task, ch operator.Change) error {
	result, err := d.Do(t, ch)
	if idemctl.Unfinished(err) {
		return err
	}
	line := result.Outcome
	if !write {
		line = "dry run: would " + line
	}
	return errors.Join(d.Show(result, line), err)
}
