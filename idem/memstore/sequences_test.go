package memstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
	"github.com/idem-go/idem-aws/idem/storetest/sequences"
)

func TestSequences(t *testing.T) {
	sequences.Run(t, sequences.Harness{
		Open: func(t *testing.T) storetest.Harness { return harness(newStore(t, memstore.Config{Now: time.Now})) },
		Faults: sequences.Faults{
			LoseReply: faulty.LoseReply(), LoseRequest: faulty.LoseRequest(),
			Busy: map[string]faulty.Fault{
				"throttled": faulty.Refuse(storage.ErrThrottled), "contention": faulty.Refuse(storage.ErrContention),
			},
			CredentialsExpired: faulty.Refuse(&storage.NotAskedError{Cause: errors.New("the credentials have expired")}),
		},
	})
}
