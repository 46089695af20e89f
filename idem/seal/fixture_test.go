package seal_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/idemtest"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/storage"
)

// base is when every test begins: after 2100, so that no native TTL removes anything.
var base = time.Date(2101, 2, 3, 4, 5, 6, int(789*time.Millisecond), time.UTC)

var mint = storage.IDGenerator{Random: rand.Reader}

var errKMS = errors.New("KMS does not answer")

// keyring is the keys of tenants in memory, which a test can take away.
type keyring struct {
	mu      sync.Mutex
	tenants map[string][]seal.Key
	erased  map[string]uint32
	down    bool
	stuck   bool
	asked   int
	// takes is how long a current key does.
	takes time.Duration
	// overtake runs once, when the next key is read and before it is handed out.
	overtake func()
}

func newKeyring() *keyring {
	return &keyring{tenants: map[string][]seal.Key{}, erased: map[string]uint32{}}
}

func (k *keyring) Current(ctx context.Context, tenant string) (seal.Key, error) {
	if k.takes > 0 {
		if err := idem.Pause(ctx, k.takes); err != nil {
			return seal.Key{}, err
		}
	}
	defer k.overtaken()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked++; k.down || k.stuck {
		return seal.Key{}, errKMS
	}
	keys := k.tenants[tenant]
	if len(keys) == 0 {
		keys = k.add(tenant)
	}
	newest := keys[len(keys)-1]
	if k.erased[tenant] >= newest.ID {
		return seal.Key{}, fmt.Errorf("keyring: %w", storage.ErrErased)
	}
	newest.Current = true
	return newest, nil
}

func (k *keyring) Open(_ context.Context, tenant string, id uint32) (seal.Key, error) {
	defer k.overtaken()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	keys := k.tenants[tenant]
	switch {
	case k.down:
		return seal.Key{}, errKMS
	case id <= k.erased[tenant]:
		return seal.Key{}, fmt.Errorf("keyring: %w", storage.ErrErased)
	case id < 1 || int(id) > len(keys):
		return seal.Key{}, fmt.Errorf("keyring: no key %d", id)
	}
	key := keys[id-1]
	key.Current = int(id) == len(keys)
	return key, nil
}

// overtaken runs what overtakes a reply.
func (k *keyring) overtaken() {
	k.mu.Lock()
	hook := k.overtake
	k.overtake = nil
	k.mu.Unlock()
	if hook != nil {
		hook()
	}
}

// add is called under the lock.
func (k *keyring) add(tenant string) []seal.Key {
	key := seal.Key{ID: uint32(len(k.tenants[tenant]) + 1)}
	rand.Read(key.Secret[:])
	k.tenants[tenant] = append(k.tenants[tenant], key)
	return k.tenants[tenant]
}

func (k *keyring) rotate(tenant string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.add(tenant)
}

func (k *keyring) erase(tenant string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.erased[tenant] = uint32(len(k.tenants[tenant]))
}

func (k *keyring) answers(yes bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.down = !yes
}

// opensOnly makes it tell no current key.
func (k *keyring) opensOnly(yes bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stuck = yes
}

func (k *keyring) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked
}

// vault is a sealing store over a plain one in memory.
type vault struct {
	*seal.Store
	inner *memstore.Store
	keys  *keyring
	clock *idemtest.Clock
}

func newVault(t testing.TB, cfg seal.Config) *vault {
	t.Helper()
	v := &vault{keys: newKeyring(), clock: idemtest.NewClock(base)}
	v.inner = must(memstore.New(memstore.Config{Now: v.clock.Now}))(t)
	v.Store = v.with(t, cfg)
	return v
}

// with is another sealing store over the same plain one, with the same keys.
func (v *vault) with(t testing.TB, cfg seal.Config) *seal.Store {
	t.Helper()
	cfg.Keys, cfg.Now = v.keys, v.clock.Now
	return must(seal.New(v.inner, cfg))(t)
}

// must fails the test on the error of a constructor, and returns what it made.
func must[T any](made T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		ok(t, err)
		return made
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func owner(t testing.TB) storage.Owner {
	t.Helper()
	return must(mint.Owner())(t)
}

// completed is a final record of its own scope.
func completed(t testing.TB, tenant, body string) storage.Record {
	t.Helper()
	key := idem.Scope{Tenant: tenant, Operation: "orders.create", Key: string(owner(t))}.RecordKey()
	id := must(mint.OperationID(key))(t)
	return storage.Record{
		Key: key, State: storage.StateCompleted, OperationID: id, Epoch: 1, Owner: owner(t), Revision: must(mint.Revision())(t), Tenant: tenant, Operation: "orders.create",
		Kind: storage.KindOptimistic, Fingerprint: canonical.Fingerprint{Version: 1, Sum: sha256.Sum256([]byte(key))},
		Response:  storage.Response{Status: 201, Header: []storage.Field{{Name: "X-Secret", Value: body}}, Body: []byte(body)},
		CreatedAt: base, DoneAt: base, ExpiresAt: base.Add(24 * time.Hour), FreeAt: base.Add(24 * time.Hour), Retention: 24 * time.Hour, Attempts: 1,
		SchemaVersion: storage.SchemaVersion,
	}
}

// accepted is a pending record and its first message.
func accepted(t testing.TB, tenant, payload string) (storage.Record, storage.Message) {
	t.Helper()
	r := completed(t, tenant, "accepted")
	r.Kind, r.State, r.DoneAt, r.ExpiresAt, r.Response.Status = storage.KindDeferred, storage.StatePending, time.Time{}, time.Time{}, 202
	r.FreeAt = time.Time{}
	return r, storage.Message{
		Revision: "inserted", ID: r.OperationID.Message(1), Index: 1, OperationID: r.OperationID, RecordKey: r.Key, Tenant: tenant,
		Topic: "orders.charge", Payload: []byte(payload), State: storage.MessagePending, CreatedAt: base, NextAttemptAt: base,
		SweepAt: base.Add(15 * time.Second), Retention: r.Retention, SchemaVersion: storage.SchemaVersion,
	}
}

// commit stores a record with its messages.
func commit(t testing.TB, store storage.Store, r storage.Record, messages ...storage.Message) {
	t.Helper()
	send, err := store.Prepare(storage.Commit{Record: r, Now: base, Token: string(owner(t)), Messages: messages})
	ok(t, err)
	ok(t, send(t.Context()))
}

// load reads a record with its response.
func load(t testing.TB, store storage.Store, key storage.RecordKey) (storage.Record, error) {
	t.Helper()
	r, err := store.Get(t.Context(), key)
	ok(t, err)
	if r == nil {
		t.Fatalf("there is no record %s", key)
	}
	return store.LoadResponse(t.Context(), *r)
}

func wantBody(t testing.TB, store storage.Store, key storage.RecordKey, want string) {
	t.Helper()
	r, err := load(t, store, key)
	if err != nil || string(r.Response.Body) != want {
		t.Errorf("got %q, %v, want %q", r.Response.Body, err, want)
	}
}

func wantErased(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, storage.ErrErased) {
		t.Errorf("got %v, want ErrErased", err)
	}
}

func wantNoKey(t testing.TB, err error) {
	t.Helper()
	var keys *seal.KeysError
	if !errors.As(err, &keys) || !errors.Is(err, storage.ErrThrottled) || !errors.Is(err, storage.ErrKeyUnavailable) {
		t.Errorf("got %v, want a KeysError", err)
	}
}
