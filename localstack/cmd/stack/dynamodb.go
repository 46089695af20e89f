package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/emulator"
)

type dynamodbCommand struct {
	Prefix  string   `default:"shop" help:"The library's tables are <prefix>-idempotency and <prefix>-outbox, <prefix>-quota, <prefix>-keys and <prefix>-audit."`
	Table   []string `help:"More tables to create, each with the string key id."`
	EnvFile string   `default:".local/dynamodb.env" env:"DYNAMODB_ENV" help:"File to write the SDK's variables to, for a shell to read."`
}

// Run starts an emulator of DynamoDB with tables on it, and ends it on Ctrl-C. The tables are in memory.
func (c dynamodbCommand) Run(s call) (err error) {
	endpoint, err := emulator.OpenDynamoDB(s.ctx, localtool.Dynoxide, s.out)
	if err != nil {
		return err
	}
	defer endpoint.Stop()
	if err := c.create(s.ctx, endpoint.URL); err != nil {
		return err
	}
	file := c.EnvFile
	if !filepath.IsAbs(file) {
		file = filepath.Join(s.root, file)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	variables := fmt.Sprintf("export AWS_ENDPOINT_URL_DYNAMODB=%s\nexport AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test\n", endpoint.URL)
	if err := os.WriteFile(file, []byte(variables), 0o644); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(file)) }() // a shell must not talk to an emulator that is gone
	s.out.Line("DynamoDB on %s until Ctrl-C; variables in %s", endpoint.URL, c.EnvFile)
	<-s.ctx.Done()
	return nil
}

func (c dynamodbCommand) create(ctx context.Context, url string) error {
	client := dynamotest.Client(url)
	if _, err := dynamotest.CreateTables(ctx, client, c.Prefix); err != nil {
		return err
	}
	more := map[string]schema.Table{c.Prefix + "-quota": schema.Quota(), c.Prefix + "-keys": schema.Keys(), c.Prefix + "-audit": schema.Audit()}
	for _, name := range c.Table {
		more[name] = schema.Table{Key: "id"}
	}
	for name, table := range more {
		if err := dynamotest.CreateTable(ctx, client, name, table); err != nil {
			return err
		}
	}
	return nil
}
