package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem/breaker"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/seal/awskms"
	"github.com/idem-go/idem-aws/idem/seal/tablekeys"
	"github.com/idem-go/idem-aws/idem/storage"
)

// stored is what keeps records and messages: sealed, or only behind a breaker.
type stored interface {
	storage.Store
	outbox.Store
}

// Store is the one way to the tables: DynamoDB with the application's writes, behind a circuit breaker, and encrypted per
// tenant where that is configured. The breaker is on the inside: trouble with the keys is none of the tables'.
type Store struct {
	stored
	rows   *dynamo.Store
	sealed *seal.Store // nil where nothing is
	// lostRecords says that there must be a row that says up to when records are missing.
	lostRecords bool
}

// ResponseBytesMax implements storage.ResponseBound.
func (s *Store) ResponseBytesMax() int { return storage.ResponseBytesMaxOf(s.stored) }

// Decrypts implements storage.Decrypter: it does where the tenants' keys are configured.
func (s *Store) Decrypts() bool { return storage.Decrypts(s.stored) }

// errNotSaid: without the row, whatever was lost would execute a second time.
var errNotSaid = fmt.Errorf("LOST_RECORDS is set: %w: set it with idemctl refuse-before set", storage.ErrLossNotDated)

// RefuseBefore implements storage.Loss. Where records were lost it is an error that nobody has said up to when.
func (s *Store) RefuseBefore(ctx context.Context) (time.Time, error) {
	at, err := s.stored.RefuseBefore(ctx)
	if err == nil && at.IsZero() && s.lostRecords {
		err = errNotSaid
	}
	return at, err
}

// SetRefuseBefore implements storage.Loss.
func (s *Store) SetRefuseBefore(ctx context.Context, at time.Time) (time.Time, error) {
	return s.stored.SetRefuseBefore(ctx, at)
}

func newStore(aws aws.Config, client *dynamodb.Client, cfg config.Worker, logger *slog.Logger) (*Store, error) {
	bytesMax := cfg.ResponseBytesMax
	if cfg.Seals() {
		bytesMax += seal.OverheadBytes
	}
	rows, err := dynamo.New(client, dynamo.Config{
		IdempotencyTable: cfg.IdempotencyTable, OutboxTable: cfg.OutboxTable, ResponseBytesMax: bytesMax,
		Translate: payments.Items(cfg.PaymentsTable, cfg.LedgerShards), Shards: cfg.OutboxShards,
	})
	if err != nil {
		return nil, err
	}
	behind, err := breaker.New(rows, breaker.Config{FailuresMax: cfg.BreakerFailuresMax, Logger: logger})
	if err != nil {
		return nil, err
	}
	if !cfg.Seals() {
		return &Store{stored: behind, rows: rows, lostRecords: cfg.LostRecords}, nil
	}
	sealed, err := newSeal(aws, client, behind, cfg.Sealing, logger)
	if err != nil {
		return nil, err
	}
	return &Store{stored: sealed, rows: rows, sealed: sealed, lostRecords: cfg.LostRecords}, nil
}

func newSeal(aws aws.Config, client *dynamodb.Client, inner seal.Inner, cfg config.Sealing, logger *slog.Logger) (*seal.Store, error) {
	wrapper, err := awskms.New(kms.NewFromConfig(aws), cfg.KMSKeyID)
	if err != nil {
		return nil, err
	}
	keys, err := tablekeys.New(client, tablekeys.Config{Table: cfg.KeysTable, Wrapper: wrapper})
	if err != nil {
		return nil, err
	}
	return seal.New(inner, seal.Config{
		Keys: keys, OpenOnly: cfg.SealOpenOnly, KeyAgeMax: cfg.KeyAgeMax, KeyTimeout: cfg.KeyTimeout, Logger: logger,
	})
}

// Image returns the message that an image of the outbox table's stream shows, opened. One that nobody can open any more is
// returned as it is: Sealed. It returns an error for an image that no message has, and a [*seal.KeysError].
func (s *Store) Image(ctx context.Context, image map[string]types.AttributeValue) (storage.Message, error) {
	m, err := s.rows.DecodeImage(image)
	switch {
	case err != nil:
		return storage.Message{}, err
	case s.sealed == nil:
		return *m, nil
	}
	return s.sealed.OpenMessage(ctx, *m)
}
