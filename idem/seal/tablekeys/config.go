package tablekeys

import (
	"crypto/rand"
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/seal"
)

// Config is what New takes besides the client. The zero value of each field but Table and Wrapper means its default.
type Config struct {
	// Table is the name or ARN of the table of keys. Anybody who may write it may make tenants unreadable; anybody who may read it
	// reads nothing without the KMS. Required.
	Table string
	// Wrapper encrypts data keys. Required.
	Wrapper seal.Wrapper
	// Random is a cryptographic source of randomness. Default crypto/rand.Reader.
	Random io.Reader
	// Now is the clock that tombstones are dated by; nothing else is. Default time.Now.
	Now func() time.Time
}

// tableName is compiled when it is first used: 0.3 ms that a start without encryption does not pay.
var tableName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([a-zA-Z0-9_.-]{3,255}|arn:[a-z0-9-]+:dynamodb:[a-z0-9-]+:[0-9]{12}:table/[a-zA-Z0-9_.-]{3,255})$`)
})

// New returns keys in a table, or an [*idem.ConfigError].
func New(client *dynamodb.Client, cfg Config) (*Keys, error) {
	switch {
	case client == nil:
		return nil, &idem.ConfigError{Field: "client", Value: nil, Rule: "must be a DynamoDB client"}
	case !tableName().MatchString(cfg.Table):
		return nil, &idem.ConfigError{Field: "Config.Table", Value: fmt.Sprintf("%q", cfg.Table), Rule: "must be a table's name or ARN: " + tableName().String()}
	case cfg.Wrapper == nil:
		return nil, &idem.ConfigError{Field: "Config.Wrapper", Value: nil, Rule: "must be given"}
	}
	if cfg.Random == nil {
		cfg.Random = rand.Reader
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Keys{client: client, cfg: cfg}, nil
}
