package dynamo_test

import (
	"errors"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
)

func TestNewNamesTheFieldThatIsWrong(t *testing.T) {
	client := dynamotest.Client("http://127.0.0.1:1")
	for name, row := range map[string]struct {
		change func(*dynamo.Config)
		field  string
	}{
		"no idempotency table":        {func(c *dynamo.Config) { c.IdempotencyTable = "" }, "Config.IdempotencyTable"},
		"a table's name of 2 letters": {func(c *dynamo.Config) { c.IdempotencyTable = "ab" }, "Config.IdempotencyTable"},
		"an ARN of something else":    {func(c *dynamo.Config) { c.OutboxTable = "arn:aws:sqs:us-east-1:000000000000:queue" }, "Config.OutboxTable"},
		"one table for both":          {func(c *dynamo.Config) { c.OutboxTable = c.IdempotencyTable }, "Config.OutboxTable"},
		"one table, as name and ARN": {func(c *dynamo.Config) {
			c.OutboxTable = "arn:aws:dynamodb:us-east-1:000000000000:table/" + c.IdempotencyTable
		}, "Config.OutboxTable"},
		"negative shards":            {func(c *dynamo.Config) { c.Shards = -1 }, "Config.Shards"},
		"257 shards":                 {func(c *dynamo.Config) { c.Shards = 257 }, "Config.Shards"},
		"inline beyond its bound":    {func(c *dynamo.Config) { c.InlineBytesMax = 65<<10 + 1 }, "Config.InlineBytesMax"},
		"chunks above 300 KiB":       {func(c *dynamo.Config) { c.ChunkBytes = 300<<10 + 1 }, "Config.ChunkBytes"},
		"chunks smaller than inline": {func(c *dynamo.Config) { c.ChunkBytes = 1 << 10 }, "Config.ChunkBytes"},
		"responses above 3.5 MiB":    {func(c *dynamo.Config) { c.ResponseBytesMax = 3584<<10 + 1 }, "Config.ResponseBytesMax"},
		"responses that need 20 chunks": {func(c *dynamo.Config) {
			c.ChunkBytes, c.ResponseBytesMax = 10<<10, 19*10<<10+1
		}, "Config.ResponseBytesMax"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := dynamo.Config{IdempotencyTable: "idempotency", OutboxTable: "outbox"}
			if _, err := dynamo.New(client, cfg); err != nil {
				t.Fatal(err)
			}
			row.change(&cfg)
			_, err := dynamo.New(client, cfg)
			var wrong *idem.ConfigError
			if !errors.As(err, &wrong) || wrong.Field != row.field {
				t.Errorf("got %v, want a ConfigError for %s", err, row.field)
			}
		})
	}
	if _, err := dynamo.New(nil, dynamo.Config{IdempotencyTable: "idempotency", OutboxTable: "outbox"}); err == nil {
		t.Error("a store without a client was made")
	}
}
