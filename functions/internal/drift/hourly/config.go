package hourly

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/idem"
)

// Config is what a [Planner] and a [Worker] are made of. Job, Client, Table and Send are required.
type Config struct {
	Job *drift.Job
	// Client and Table keep what is done (functions/table.Drift).
	Client *dynamodb.Client
	Table  string
	// Send puts pieces into the work queue; see [Queue].
	Send func(context.Context, []Piece) error
	// Parts is how many pieces a pass over an hour has that is planned from now on, 1 to [PartsMax]. Default 4.
	Parts int
	// Grace is the job's: an hour is compared so long after its end at the earliest. Default 15 min.
	Grace time.Duration
	// Lease is for how long a worker has a piece for itself: longer than the platform lets it run. Default 11 min.
	Lease time.Duration
	// StepRows is after how many rows the progress of a piece is kept. Default 100,000.
	StepRows int
	// Now is the clock, default time.Now. Pause waits, or returns the context's error; default a timer.
	Now   func() time.Time
	Pause func(context.Context, time.Duration) error
	// Logger gets a line for each step, and the metrics of passes. Default: none.
	Logger *slog.Logger
}

func (c Config) checked() (*Config, error) {
	c.Parts, c.Grace, c.Lease = cmp.Or(c.Parts, 4), cmp.Or(c.Grace, 15*time.Minute), cmp.Or(c.Lease, 11*time.Minute)
	c.StepRows = cmp.Or(c.StepRows, 100_000)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Pause == nil {
		c.Pause = idem.Pause
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Job == nil || c.Client == nil || c.Table == "" || c.Send == nil:
		return nil, broken("Job, Client, Table, Send", c.Table, "must be given")
	case c.Parts < 1 || c.Parts > PartsMax:
		return nil, broken("Parts", c.Parts, fmt.Sprintf("must be 1 to %d", PartsMax))
	case c.StepRows < 1:
		return nil, broken("StepRows", c.StepRows, "must be above 0")
	case c.Grace < 0 || c.Lease < 0:
		return nil, broken("Grace, Lease", fmt.Sprintf("%v, %v", c.Grace, c.Lease), "must not be negative")
	}
	return &c, nil
}

func (c *Config) rows() rows { return rows{c.Client, c.Table} }

// sendMax is SQS's bound on a batch.
const sendMax = 10

// Queue sends to an SQS queue. Its error means that some pieces may not be in the queue.
func Queue(client *sqs.Client, url string) func(context.Context, []Piece) error {
	return func(ctx context.Context, pieces []Piece) error {
		for some := range slices.Chunk(pieces, sendMax) {
			entries := make([]types.SendMessageBatchRequestEntry, len(some))
			for i, p := range some {
				body, err := json.Marshal(p)
				if err != nil {
					return err
				}
				entries[i] = types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(string(body))}
			}
			out, err := client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries})
			if err != nil {
				return fmt.Errorf("hourly: send %d pieces: %w", len(some), err)
			}
			if len(out.Failed) > 0 {
				return fmt.Errorf("hourly: %d of %d pieces were not taken by the queue: %s", len(out.Failed), len(some), aws.ToString(out.Failed[0].Code))
			}
		}
		return nil
	}
}
