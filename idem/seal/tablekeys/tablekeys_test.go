package tablekeys_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/seal/tablekeys"
	"github.com/idem-go/idem-aws/idem/storage"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// vault is a table of keys, and another process on it.
type vault struct {
	client      *dynamodb.Client
	table       string
	keys, other *tablekeys.Keys
}

var tables atomic.Int64

func each(t *testing.T, test func(t *testing.T, v *vault)) {
	t.Helper()
	dynamotest.Each(t, func(t *testing.T, url string) { test(t, newVault(t, dynamotest.Client(url))) })
}

func newVault(t *testing.T, client *dynamodb.Client) *vault {
	t.Helper()
	v := &vault{client: client, table: fmt.Sprint("keys-", tables.Add(1))}
	ok(t, dynamotest.CreateTable(t.Context(), v.client, v.table, schema.Keys()))
	v.keys, v.other = v.open(t), v.open(t)
	return v
}

func (v *vault) open(t *testing.T) *tablekeys.Keys {
	t.Helper()
	wrapper, err := seal.NewStatic(bytes.Repeat([]byte{7}, seal.KeyBytes))
	ok(t, err)
	keys, err := tablekeys.New(v.client, tablekeys.Config{Table: v.table, Wrapper: wrapper, Now: func() time.Time { return noon }})
	ok(t, err)
	return keys
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func current(t *testing.T, keys *tablekeys.Keys, tenant string) seal.Key {
	t.Helper()
	key, err := keys.Current(t.Context(), tenant)
	ok(t, err)
	return key
}

func wantErased(t *testing.T, _ seal.Key, err error) {
	t.Helper()
	if !errors.Is(err, storage.ErrErased) {
		t.Errorf("got %v, want ErrErased", err)
	}
}

// item is a tenant's as it lies in the table.
func (v *vault) item(t *testing.T, tenant string) map[string]types.AttributeValue {
	t.Helper()
	out, err := v.client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &v.table, Key: map[string]types.AttributeValue{schema.Tenant: &types.AttributeValueMemberS{Value: tenant}}, ConsistentRead: aws.Bool(true),
	})
	ok(t, err)
	return out.Item
}

func TestATenantsFirstKeyIsMadeOnceAndStays(t *testing.T) {
	each(t, func(t *testing.T, v *vault) {
		var all sync.WaitGroup
		found := make([]seal.Key, 16)
		for n := range found {
			keys := v.open(t)
			all.Go(func() {
				key, err := keys.Current(context.Background(), "ada")
				if err != nil {
					t.Error(err)
				}
				found[n] = key
			})
		}
		all.Wait()
		for _, key := range found {
			if key != found[0] || key.ID != 1 || !key.Current {
				t.Errorf("key %d differs from the first's", key.ID)
			}
		}
		opened, err := v.other.Open(t.Context(), "ada", 1)
		if err != nil || opened != found[0] {
			t.Errorf("opened %d, %v", opened.ID, err)
		}
		if bob := current(t, v.keys, "bob"); bob.Secret == found[0].Secret {
			t.Error("two tenants have the same key")
		}
		if text := fmt.Sprint(v.item(t, "ada")); strings.Contains(text, string(found[0].Secret[:])) {
			t.Error("the key lies in the table unwrapped")
		}
	})
}

// A key that was erased or replaced a moment ago is not used any more: so it is read strongly.
func TestATenantsKeyIsReadConsistently(t *testing.T) {
	v, wire := wired(t)
	current(t, v.keys, "tenant-a")
	wire.Inject("")
	current(t, v.other, "tenant-a")
	all(t, v.keys)
	if len(wire.Bodies("GetItem")) == 0 || len(wire.Bodies("Scan")) == 0 {
		t.Errorf("read was %v", wire.Sent())
	}
	if weak := wire.Weak(); len(weak) > 0 {
		t.Errorf("a read is not strong: %v", weak[0])
	}
}

// wired is a vault over a wire on which a table of a few tenants has as many pages as one of thousands.
func wired(t *testing.T) (*vault, *wirefault.Transport) {
	t.Helper()
	wire := &wirefault.Transport{OneAPage: true}
	return newVault(t, dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Names()[0]), func(o *dynamodb.Options) {
		o.HTTPClient = &http.Client{Transport: wire}
	})), wire
}

func TestErasure(t *testing.T) {
	each(t, func(t *testing.T, v *vault) {
		old := current(t, v.keys, "ada")
		ok(t, v.keys.Rotate(t.Context(), "ada"))
		ok(t, v.keys.Erase(t.Context(), "ada"))
		ok(t, v.keys.Erase(t.Context(), "ada"))
		for _, keys := range []*tablekeys.Keys{v.keys, v.other} { // no key is made for it unawares
			key, err := keys.Current(t.Context(), "ada")
			wantErased(t, key, err)
		}
		for _, id := range []uint32{1, 2} {
			key, err := v.other.Open(t.Context(), "ada", id)
			wantErased(t, key, err)
		}
		if err := v.keys.Rotate(t.Context(), "ada"); !errors.Is(err, storage.ErrErased) {
			t.Errorf("a rotation: %v", err)
		}
		it := v.item(t, "ada")
		if _, wrapped := it[schema.WrappedKeys]; wrapped || len(it) != 4 {
			t.Errorf("the tombstone is %v", it)
		}

		ok(t, v.keys.Renew(t.Context(), "ada"))
		renewed := current(t, v.other, "ada")
		if renewed.ID != 3 || renewed.Secret == old.Secret {
			t.Errorf("renewed as key %d", renewed.ID)
		}
		key, err := v.keys.Open(t.Context(), "ada", 2)
		wantErased(t, key, err)
		if err := v.keys.Renew(t.Context(), "ada"); !errors.Is(err, tablekeys.ErrNotErased) {
			t.Errorf("renewed again: %v", err)
		}
		ok(t, v.keys.Erase(t.Context(), "ada"))
		key, err = v.keys.Open(t.Context(), "ada", 3)
		wantErased(t, key, err)
	})
}

// An erasure that was held up on its way erases what its caller saw, and no key that others have renewed since: what that has
// sealed would be lost.
func TestALateErasureLeavesARenewedKey(t *testing.T) {
	for name, begun := range map[string]bool{"of a tenant with a key": true, "of one without": false} {
		t.Run(name, func(t *testing.T) {
			v, wire := wired(t)
			plain := v.beside(t)
			if begun {
				current(t, v.keys, "ada")
			}
			wire.Inject("UpdateItem", func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				ok(t, plain.Erase(t.Context(), "ada"))
				ok(t, plain.Renew(t.Context(), "ada"))
				return next.RoundTrip(r)
			})
			ok(t, v.keys.Erase(t.Context(), "ada"))
			if key := current(t, plain, "ada"); key.ID != 2 {
				t.Errorf("the current key is %d, want 2", key.ID)
			}
			key, err := plain.Open(t.Context(), "ada", 1)
			wantErased(t, key, err)
		})
	}
}

// A key that came while an erasure was under way, and that nobody has erased, is erased with the others. A reply that is lost is no
// other's erasure.
func TestAnErasureTakesWhatCameMeanwhile(t *testing.T) {
	v, wire := wired(t)
	plain := v.beside(t)
	for tenant, came := range map[string]func(string){
		"first": func(tenant string) { current(t, plain, tenant) },
		"another": func(tenant string) {
			current(t, plain, tenant)
			ok(t, plain.Rotate(t.Context(), tenant))
		},
	} {
		if tenant == "another" {
			current(t, plain, tenant)
		}
		wire.Inject("UpdateItem", func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			came(tenant)
			return next.RoundTrip(r)
		}, wirefault.LoseReply)
		ok(t, v.keys.Erase(t.Context(), tenant))
		key, err := plain.Current(t.Context(), tenant)
		wantErased(t, key, err)
	}
}

// A call whose reply was lost, and which the SDK sends again, meets its own key: it is not another's.
func TestACallMeetsItsOwnKey(t *testing.T) {
	v, wire := wired(t)
	ok(t, v.keys.Erase(t.Context(), "ada"))
	wire.Inject("PutItem", wirefault.LoseReply)
	ok(t, v.keys.Renew(t.Context(), "ada"))
	if key := current(t, v.keys, "ada"); key.ID != 2 {
		t.Errorf("renewed once, the current key is %d, want 2", key.ID)
	}
	wire.Inject("PutItem", wirefault.LoseReply)
	ok(t, v.keys.Rotate(t.Context(), "ada"))
	if key := current(t, v.keys, "ada"); key.ID != 3 {
		t.Errorf("rotated once, the current key is %d, want 3", key.ID)
	}
	wire.Inject("PutItem", wirefault.LoseReply)
	ok(t, v.keys.Rotate(t.Context(), "new"))
	if key := current(t, v.keys, "new"); key.ID != 1 {
		t.Errorf("given its first key, the current one is %d", key.ID)
	}
}

// An erasure that comes after a renewal was asked for stands: the renewal does not undo it when it is sent again.
func TestARenewalDoesNotUndoALaterErasure(t *testing.T) {
	v, wire := wired(t)
	plain := v.beside(t)
	ok(t, plain.Erase(t.Context(), "ada"))
	wire.Inject("PutItem", func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		_, err := wirefault.LoseReply(r, next)
		ok(t, plain.Erase(t.Context(), "ada"))
		return nil, err
	})
	if err := v.keys.Renew(t.Context(), "ada"); !errors.Is(err, storage.ErrErased) {
		t.Errorf("got %v, want ErrErased", err)
	}
	key, err := plain.Current(t.Context(), "ada")
	wantErased(t, key, err)
}

// beside is another process on the table, over a wire of its own.
func (v *vault) beside(t *testing.T) *tablekeys.Keys {
	t.Helper()
	plain := &vault{client: dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Names()[0])), table: v.table}
	return plain.open(t)
}

func TestATenantMayBeErasedBeforeItsFirstKey(t *testing.T) {
	each(t, func(t *testing.T, v *vault) {
		ok(t, v.keys.Erase(t.Context(), "ada"))
		for range 2 { // erasing again changes nothing
			key, err := v.keys.Current(t.Context(), "ada")
			wantErased(t, key, err)
			for _, id := range []uint32{1, 2} { // of which a restore may bring back rows
				key, err := v.other.Open(t.Context(), "ada", id)
				wantErased(t, key, err)
			}
			ok(t, v.keys.Erase(t.Context(), "ada"))
		}
		ok(t, v.keys.Renew(t.Context(), "ada"))
		if key := current(t, v.keys, "ada"); key.ID != 2 { // no key of before comes back under its id
			t.Errorf("key %d", key.ID)
		}
		key, err := v.keys.Open(t.Context(), "ada", 1)
		wantErased(t, key, err)
	})
}

func TestRotationKeepsTheOldKeys(t *testing.T) {
	each(t, func(t *testing.T, v *vault) {
		ok(t, v.keys.Rotate(t.Context(), "ada")) // also of a tenant without a key
		first := current(t, v.keys, "ada")
		var all sync.WaitGroup
		var rotated atomic.Int32
		for range 4 {
			all.Go(func() {
				if v.keys.Rotate(context.Background(), "ada") == nil {
					rotated.Add(1)
				}
			})
		}
		all.Wait()
		newest := current(t, v.other, "ada")
		if rotated.Load() < 1 || newest.ID != uint32(1+rotated.Load()) {
			t.Errorf("%d rotations led to key %d", rotated.Load(), newest.ID)
		}
		old, err := v.other.Open(t.Context(), "ada", 1)
		if err != nil || old.Secret != first.Secret || old.Current {
			t.Errorf("the first opens as %d, current %v, %v", old.ID, old.Current, err)
		}
	})
}

// What can't be told is an error and no erasure: it must not be answered as one.
func TestWhatIsNoErasure(t *testing.T) {
	each(t, func(t *testing.T, v *vault) {
		ada := current(t, v.keys, "ada")
		put := func(tenant string, change func(map[string]types.AttributeValue)) {
			it := v.item(t, "ada")
			it[schema.Tenant] = &types.AttributeValueMemberS{Value: tenant}
			change(it)
			_, err := v.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &v.table, Item: it})
			ok(t, err)
		}
		text := &types.AttributeValueMemberS{Value: "x"}
		put("copied", func(map[string]types.AttributeValue) {})
		put("no id", func(it map[string]types.AttributeValue) { delete(it, schema.CurrentKey) })
		put("bad id", func(it map[string]types.AttributeValue) {
			it[schema.CurrentKey] = &types.AttributeValueMemberN{Value: "-1"}
		})
		put("bad tombstone", func(it map[string]types.AttributeValue) { it[schema.ErasedThrough] = text })
		put("no map", func(it map[string]types.AttributeValue) { it[schema.WrappedKeys] = text })
		put("empty map", func(it map[string]types.AttributeValue) {
			it[schema.WrappedKeys] = &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}}
		})
		put("bad name", func(it map[string]types.AttributeValue) {
			it[schema.WrappedKeys] = &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"x": &types.AttributeValueMemberB{Value: []byte{1}}}}
		})
		put("other id", func(it map[string]types.AttributeValue) {
			it[schema.CurrentKey] = &types.AttributeValueMemberN{Value: "9"}
		})
		for _, tenant := range []string{"copied", "no id", "bad id", "bad tombstone", "no map", "empty map", "bad name", "other id"} {
			if key, err := v.keys.Current(t.Context(), tenant); err == nil || errors.Is(err, storage.ErrErased) || key.Secret == ada.Secret {
				t.Errorf("%s: key %d, %v", tenant, key.ID, err)
			}
		}
		for tenant, id := range map[string]uint32{"copied": 1, "never seen": 1, "ada": 2} {
			if _, err := v.keys.Open(t.Context(), tenant, id); err == nil || errors.Is(err, storage.ErrErased) {
				t.Errorf("%s, key %d: %v", tenant, id, err)
			}
		}
		away, err := tablekeys.New(v.client, tablekeys.Config{Table: "another-table", Wrapper: wrapperOf{}})
		ok(t, err)
		if _, err := away.Open(t.Context(), "ada", 1); err == nil || errors.Is(err, storage.ErrErased) {
			t.Errorf("another table: %v", err)
		}
		if err := away.Erase(t.Context(), "ada"); err == nil {
			t.Error("an erasure in a table that is not there succeeded")
		}
	})
}

// wrapperOf is a KMS that does not answer, or answers with something else than a key.
type wrapperOf struct{ secret []byte }

var errKMS = errors.New("KMS does not answer")

func (w wrapperOf) Wrap(context.Context, string, []byte) ([]byte, error) {
	if w.secret == nil {
		return nil, errKMS
	}
	return []byte("wrapped"), nil
}

func (w wrapperOf) Unwrap(context.Context, string, []byte) ([]byte, error) {
	if w.secret == nil {
		return nil, errKMS
	}
	return w.secret, nil
}

// Nothing is stored for a tenant whose key could not be wrapped.
func TestKMSIsDown(t *testing.T) {
	each(t, func(t *testing.T, v *vault) {
		down, err := tablekeys.New(v.client, tablekeys.Config{Table: v.table, Wrapper: wrapperOf{}})
		ok(t, err)
		if _, err := down.Current(t.Context(), "ada"); !errors.Is(err, errKMS) || v.item(t, "ada") != nil {
			t.Errorf("got %v, stored %v", err, v.item(t, "ada"))
		}
		current(t, v.keys, "ada")
		if _, err := down.Current(t.Context(), "ada"); !errors.Is(err, errKMS) {
			t.Errorf("got %v", err)
		}
		ok(t, down.Erase(t.Context(), "ada")) // needs no KMS
		strange, err := tablekeys.New(v.client, tablekeys.Config{Table: v.table, Wrapper: wrapperOf{[]byte("too short")}})
		ok(t, err)
		current(t, v.keys, "bob")
		if _, err := strange.Current(t.Context(), "bob"); err == nil {
			t.Error("a key of 9 bytes was taken")
		}
		if _, err := v.keys.Current(t.Context(), "ada"); !errors.Is(err, storage.ErrErased) {
			t.Errorf("got %v", err)
		}
	})
}

func TestNoRandomnessNoKey(t *testing.T) {
	each(t, func(t *testing.T, v *vault) {
		keys, err := tablekeys.New(v.client, tablekeys.Config{Table: v.table, Wrapper: wrapperOf{[]byte("x")}, Random: strings.NewReader("short")})
		ok(t, err)
		if _, err := keys.Current(t.Context(), "ada"); err == nil || v.item(t, "ada") != nil {
			t.Errorf("got %v, stored %v", err, v.item(t, "ada"))
		}
	})
}

func TestNewNamesWhatItRefuses(t *testing.T) {
	client := dynamotest.Client("http://127.0.0.1:1")
	for field, cfg := range map[string]tablekeys.Config{
		"Config.Table": {Table: "a b", Wrapper: wrapperOf{}}, "Config.Wrapper": {Table: "keys"},
	} {
		var rejected *idem.ConfigError
		if _, err := tablekeys.New(client, cfg); !errors.As(err, &rejected) || rejected.Field != field {
			t.Errorf("got %v, want %s rejected", err, field)
		}
	}
	var rejected *idem.ConfigError
	if _, err := tablekeys.New(nil, tablekeys.Config{Table: "keys", Wrapper: wrapperOf{}}); !errors.As(err, &rejected) {
		t.Errorf("no client: %v", err)
	}
}
