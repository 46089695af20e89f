package idem

import (
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

func (p Policy) expiry() storage.Expiry {
	return storage.Expiry{KeepFor: p.KeepFor, Gone: p.GoneAfterExpiry, ResourceBacked: p.ResourceBacked}
}

// gone is the error of an expired record that is kept as gone; nil for one that counts as absent.
func gone(r storage.Record, now time.Time) error {
	if r.KeyFree(now) || !r.Expiry.Gone {
		return nil
	}
	return &ExpiredError{OperationID: r.OperationID}
}

// ExpiredError says that the key has expired. Nothing was executed.
type ExpiredError struct {
	// OperationID is the expired record's; empty where no record is left and only the time of the request shows that it
	// expired.
	OperationID OperationID
	// FirstSent says that the client's own first-sent time is older than the retention: 412. Otherwise it is 410.
	FirstSent bool
}

// Error implements error.
func (e *ExpiredError) Error() string {
	if e.OperationID != "" {
		return fmt.Sprintf("idem: %s has expired", e.OperationID)
	}
	return "idem: the request was first sent longer ago than the retention, and has no live record"
}
