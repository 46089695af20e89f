package pgstore_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idem-go/idem-aws/docs/examples/postgres/pgtest"
	"github.com/idem-go/idem-aws/idem/storetest"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
	"github.com/idem-go/idem-aws/idem/storetest/sequences"
)

// The engine, a worker and an operator on the store. What fails is the wire between pgx and the server, or the server as it
// says so itself.
func TestOnPostgreSQLSequencesHold(t *testing.T) {
	url := database(t)
	proxy := pgtest.NewProxy(t, pgtest.Server(t).Address)
	var pool *pgxpool.Pool // of the sequence that runs
	lose := func(loss pgtest.Loss) faulty.Fault {
		return func(ctx context.Context, run func(context.Context) error) error {
			proxy.Lose(&loss)
			err := run(ctx)
			proxy.Lose(nil)
			return err
		}
	}
	sequences.Run(t, sequences.Harness{
		Open: func(t *testing.T) storetest.Harness {
			pool = pgtest.Pool(t, url(proxy.Address))
			return harness(t, pool)
		},
		Faults: sequences.Faults{
			LoseReply:   lose(pgtest.Loss{At: pgtest.AtCommit, Forward: true}),
			LoseRequest: lose(pgtest.Loss{At: pgtest.AtCommit}),
			Busy: map[string]faulty.Fault{ // one of each kind; TestOnPostgreSQLRefusalsHaveTheirMeaning has the others
				"serialization failure":             lose(pgtest.Loss{At: pgtest.AtBegin, Refuse: "40001"}),
				"too many connections":              lose(pgtest.Loss{At: pgtest.AtBegin, Refuse: "53300"}),
				"connection lost before the commit": lose(pgtest.Loss{At: pgtest.AtBegin}),
			},
			CredentialsExpired: func(ctx context.Context, run func(context.Context) error) error {
				pool.Reset() // a password is asked for when a connection begins
				return lose(pgtest.Loss{Refuse: "28P01"})(ctx, run)
			},
		},
	})
}
