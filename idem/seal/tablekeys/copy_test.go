package tablekeys_test

import (
	"bytes"
	"errors"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/seal/tablekeys"
)

// elsewhere is the vault of another Region: another table, and another key that wraps.
func (v *vault) elsewhere(t *testing.T) (*vault, seal.Wrapper) {
	t.Helper()
	wrapper, err := seal.NewStatic(bytes.Repeat([]byte{8}, seal.KeyBytes))
	ok(t, err)
	there := newVault(t, v.client)
	there.keys, err = tablekeys.New(v.client, tablekeys.Config{Table: there.table, Wrapper: wrapper})
	ok(t, err)
	return there, wrapper
}

// all are the keys of every tenant by its name.
func all(t *testing.T, keys *tablekeys.Keys) map[string]tablekeys.Wrapped {
	t.Helper()
	found := map[string]tablekeys.Wrapped{}
	ok(t, keys.Each(t.Context(), func(w tablekeys.Wrapped) error {
		found[w.Tenant] = w
		return nil
	}))
	return found
}

// keep puts a tenant's keys there and demands whether that changes anything.
func keep(t *testing.T, there *vault, w tablekeys.Wrapped, want bool) {
	t.Helper()
	lacks, err := there.keys.Lacks(t.Context(), w)
	ok(t, err)
	changed, err := there.keys.Keep(t.Context(), w)
	ok(t, err)
	if lacks != want || changed != want {
		t.Errorf("tenant %s: lacks %v, changed %v, want %v", w.Tenant, lacks, changed, want)
	}
}

// What is sealed here opens there: with the same KMS key in both Regions as the table has it, and with another one once it is wrapped
// anew. To do so again changes nothing, and a key that came since is added.
func TestCopiedKeysOpenWhatIsSealed(t *testing.T) {
	each(t, func(t *testing.T, v *vault) {
		first := current(t, v.keys, "ada")
		there, wrapper := v.elsewhere(t)
		rewrapped := func() tablekeys.Wrapped {
			w, err := v.keys.Rewrap(t.Context(), all(t, v.keys)["ada"], wrapper)
			ok(t, err)
			return w
		}
		w := rewrapped()
		if bytes.Contains(w.Keys[1], first.Secret[:]) {
			t.Error("a key is not wrapped")
		}
		keep(t, there, w, true)
		keep(t, there, w, false)
		keep(t, there, rewrapped(), false) // other bytes around the same key
		ok(t, v.keys.Rotate(t.Context(), "ada"))
		keep(t, there, rewrapped(), true)
		for id := uint32(1); id <= 2; id++ {
			here, err := v.keys.Open(t.Context(), "ada", id)
			ok(t, err)
			if got, err := there.keys.Open(t.Context(), "ada", id); err != nil || got != here {
				t.Errorf("key %d: %v, or another one", id, err)
			}
		}
		keep(t, there, w, false) // the older copy takes nothing away
		if current(t, there.keys, "ada").ID != 2 {
			t.Error("an older copy made an older key current")
		}

		same := newVault(t, v.client)
		keep(t, same, all(t, v.keys)["ada"], true)
		if got, err := same.keys.Open(t.Context(), "ada", 1); err != nil || got.Secret != first.Secret {
			t.Errorf("a key that was copied as it was: %v, or another one", err)
		}
	})
}

// Nobody's keys stay behind, however many tenants there are: in the other Region nothing of such a tenant could be read.
func TestTheKeysOfEveryTenantAreCopied(t *testing.T) {
	v, _ := wired(t)
	tenants := []string{"ada", "bob", "eve"}
	for _, tenant := range tenants {
		current(t, v.keys, tenant)
	}
	if found := slices.Sorted(maps.Keys(all(t, v.keys))); !slices.Equal(found, tenants) {
		t.Errorf("the keys of %v, want those of %v", found, tenants)
	}
}

// An erasure on either side stands, whichever copy comes later.
func TestCopiedKeysBringNoErasedOnesBack(t *testing.T) {
	each(t, func(t *testing.T, v *vault) {
		current(t, v.keys, "ada")
		before := all(t, v.keys)["ada"]
		there := newVault(t, v.client)
		keep(t, there, before, true)
		ok(t, v.keys.Erase(t.Context(), "ada"))
		keep(t, there, all(t, v.keys)["ada"], true)
		keep(t, there, before, false)
		_, err := there.keys.Open(t.Context(), "ada", 1)
		wantErased(t, seal.Key{}, err)
		ok(t, there.keys.Renew(t.Context(), "ada"))
		keep(t, there, before, false)
		_, err = there.keys.Open(t.Context(), "ada", 1)
		wantErased(t, seal.Key{}, err)
		if current(t, there.keys, "ada").ID != 2 {
			t.Error("the renewed key is gone")
		}

		ok(t, v.keys.Erase(t.Context(), "bob")) // who never had one
		keep(t, there, all(t, v.keys)["bob"], true)
		_, err = there.keys.Current(t.Context(), "bob")
		wantErased(t, seal.Key{}, err)
	})
}

// A tenant that was erased where it never had a key, or had fewer, stays erased: no key of the other side comes back, and none of what was
// sealed under one is read. That holds in both directions, and the key of a renewal stays.
func TestCopiedKeysBringNobodyBackWhoWasErased(t *testing.T) {
	each(t, func(t *testing.T, v *vault) {
		there := newVault(t, v.client)
		erased := func(keys *tablekeys.Keys, tenant string) {
			t.Helper()
			_, err := keys.Current(t.Context(), tenant)
			wantErased(t, seal.Key{}, err)
			for id := uint32(1); id <= 2; id++ {
				_, err := keys.Open(t.Context(), tenant, id)
				wantErased(t, seal.Key{}, err)
			}
		}
		for _, tenant := range []string{"eve", "fay"} {
			current(t, v.keys, tenant)
			if tenant == "fay" {
				keep(t, there, all(t, v.keys)[tenant], true)
			}
			ok(t, v.keys.Rotate(t.Context(), tenant))
			ok(t, there.keys.Erase(t.Context(), tenant))
			erased(there.keys, tenant)
			keep(t, there, all(t, v.keys)[tenant], true) // it has more keys to erase
			keep(t, there, all(t, v.keys)[tenant], false)
			erased(there.keys, tenant)

			tombstone := all(t, there.keys)[tenant]
			keep(t, v, tombstone, true)
			erased(v.keys, tenant)
			ok(t, v.keys.Renew(t.Context(), tenant))
			keep(t, v, tombstone, false)
			renewed := current(t, v.keys, tenant)
			keep(t, there, all(t, v.keys)[tenant], true)
			if got := current(t, there.keys, tenant); got != renewed || got.ID != 3 {
				t.Errorf("%s: key %d, want the renewed one, which is %d", tenant, got.ID, renewed.ID)
			}
		}
	})
}

// The tombstone of a tenant that had no key anywhere is copied, too, and what is renewed there outlives its next copy.
func TestATombstoneThatIsCopiedAgainErasesNoRenewedKey(t *testing.T) {
	each(t, func(t *testing.T, v *vault) {
		ok(t, v.keys.Erase(t.Context(), "bob"))
		tombstone, there := all(t, v.keys)["bob"], newVault(t, v.client)
		keep(t, there, tombstone, true)
		ok(t, there.keys.Renew(t.Context(), "bob"))
		renewed := current(t, there.keys, "bob")
		keep(t, there, tombstone, false)
		if current(t, there.keys, "bob") != renewed {
			t.Error("the renewed key is gone")
		}
		_, err := there.keys.Open(t.Context(), "bob", 1)
		wantErased(t, seal.Key{}, err)
	})
}

// A tenant that has begun there has keys of its own there: a copy would make what it sealed unreadable.
func TestCopiedKeysReplaceNoOthers(t *testing.T) {
	each(t, func(t *testing.T, v *vault) {
		current(t, v.keys, "ada")
		there := newVault(t, v.client)
		own := current(t, there.keys, "ada")
		for _, err := range []error{
			func() error { _, err := there.keys.Lacks(t.Context(), all(t, v.keys)["ada"]); return err }(),
			func() error { _, err := there.keys.Keep(t.Context(), all(t, v.keys)["ada"]); return err }(),
		} {
			if !errors.Is(err, tablekeys.ErrOtherKeys) {
				t.Errorf("got %v, want ErrOtherKeys", err)
			}
		}
		if current(t, there.keys, "ada") != own {
			t.Error("the tenant's key was replaced")
		}
	})
}

// Keys that a call has put, whose reply was lost, count as changed by it.
func TestACopyMeetsItself(t *testing.T) {
	v, wire := wired(t)
	current(t, v.keys, "ada")
	w := all(t, v.keys)["ada"]
	for _, erased := range []bool{false, true} {
		there := newVault(t, v.client)
		if erased {
			w = tablekeys.Wrapped{Tenant: "ada", Current: 1, ErasedThrough: 1}
			current(t, there.keys, "ada")
		}
		wire.Inject("PutItem", wirefault.LoseReply)
		if changed, err := there.keys.Keep(t.Context(), w); err != nil || !changed {
			t.Errorf("changed %v, %v", changed, err)
		}
	}
}

// A rotation that a copy overtakes takes nothing of it back: the copy adds keys, and erases some, under the current id that was there.
func TestARotationKeepsWhatACopyBroughtMeanwhile(t *testing.T) {
	v, wire := wired(t)
	plain := v.beside(t)
	first := current(t, plain, "ada")
	ok(t, plain.Rotate(t.Context(), "ada"))
	w := all(t, plain)["ada"]
	for name, copied := range map[string]tablekeys.Wrapped{
		"adds a key":   w,
		"erases a key": {Tenant: "ada", Current: 2, ErasedThrough: 1, Keys: map[uint32][]byte{2: w.Keys[2]}},
	} {
		there := newVault(t, v.client)
		beside := there.beside(t)
		before := w
		if name == "adds a key" {
			before.Keys = map[uint32][]byte{2: w.Keys[2]}
		}
		_, err := beside.Keep(t.Context(), before)
		ok(t, err)
		wire.Inject("PutItem", func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			_, err := beside.Keep(t.Context(), copied)
			ok(t, err)
			return next.RoundTrip(r)
		})
		ok(t, there.keys.Rotate(t.Context(), "ada"))
		got, err := beside.Open(t.Context(), "ada", 1)
		if name == "erases a key" {
			wantErased(t, got, err)
		} else if err != nil || got.Secret != first.Secret {
			t.Errorf("the key that was copied: %d, %v", got.ID, err)
		}
		if key := current(t, beside, "ada"); key.ID != 3 {
			t.Errorf("%s: the current key is %d", name, key.ID)
		}
	}
}
