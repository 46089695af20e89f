package seal

import (
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem-aws/idem/storage"
)

// KeyBytes is the size of a data key.
const KeyBytes = 32

// Key is a data key of one tenant.
type Key struct {
	// ID names the key among the tenant's own, from 1.
	ID uint32
	// Secret is the key itself.
	Secret [KeyBytes]byte
	// Current says that it is the one to seal under now.
	Current bool
}

// Keys are the data keys of the tenants. They need not cache: [Store] does.
//
// Both methods return an [storage.ErrErased] where the tenant's keys, or the one that is asked for, were erased. Erasing a
// key erases the tenant's older ones with it. Any other error means that the key can't be told for the time being.
// Both read strongly: a reply is never older than its request. Ids of a tenant only grow.
type Keys interface {
	// Current returns the key that the tenant's data is sealed under now. A tenant that never had one gets its first.
	Current(ctx context.Context, tenant string) (Key, error)
	// Open returns the tenant's key with that id.
	Open(ctx context.Context, tenant string, id uint32) (Key, error)
}

// Wrapper encrypts data keys under a key that never leaves it: a KMS. Package awskms has AWS's, [NewStatic] makes one for
// local use.
type Wrapper interface {
	// Wrap encrypts a data key, bound to the tenant.
	Wrap(ctx context.Context, tenant string, secret []byte) (wrapped []byte, err error)
	// Unwrap returns what Wrap was given for the same tenant. It fails for any other.
	Unwrap(ctx context.Context, tenant string, wrapped []byte) (secret []byte, err error)
}

// ErrNotAuthentic: what is stored is not what was sealed for this place. It was damaged, or put there by somebody else.
var ErrNotAuthentic = errors.New("seal: the ciphertext was changed, or belongs to another row")

// ErrVersion: what is stored was sealed in the format of another release.
var ErrVersion = errors.New("seal: the envelope has a version that this release does not know")

// NotSealedError: what is stored lies in the open, where its row says that it is sealed or where Config.SealedOnly takes
// nothing else. It is an [ErrNotAuthentic].
type NotSealedError struct {
	// What is "response", "payload" or "evidence".
	What string
	// ID is the id of its operation, or of its message.
	ID string
}

// Error implements error.
func (e *NotSealedError) Error() string {
	return fmt.Sprintf("seal: the %s of %s is not sealed", e.What, e.ID)
}

// Unwrap returns [ErrNotAuthentic].
func (e *NotSealedError) Unwrap() error { return ErrNotAuthentic }

// KeysError: a tenant's key could not be fetched, and nothing of the call happened. It is a [storage.ErrKeyUnavailable], and with that a
// [storage.ErrThrottled], so that a caller that meets it tries again within bounds and then answers 503, and not the error that caused it, so that nobody takes
// trouble with the keys for trouble with the store.
type KeysError struct {
	// Cause is the error of package tablekeys, the KMS or another source of keys.
	Cause error
}

// Error implements error.
func (e *KeysError) Error() string {
	return fmt.Sprintf("seal: the tenant's key can't be fetched: %v", e.Cause)
}

// Unwrap returns [storage.ErrKeyUnavailable].
func (e *KeysError) Unwrap() error { return storage.ErrKeyUnavailable }
