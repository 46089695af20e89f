package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/internal/token"
)

// answered reads an answer in JSON.
func answered[T any](d *desk, args ...string) (answer T) {
	d.Helper()
	out, _ := d.exits(idemctl.ExitOK, append(args, "--output", "json")...)
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		d.Fatalf("%v: %s", err, out)
	}
	return answer
}

// A key is shown once, works, is listed without itself, and works no more once it is revoked; the audit log knows its id.
func TestAPIKeysLife(t *testing.T) {
	d := newDesk(t)
	in := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	made := answered[created](d, "apikey", "create", "--tenant", "tenant-b", "--name", "back office", "--scopes", "payments:read,accounts:read",
		"--expires", in.Format(time.RFC3339), "--reason", "ticket 1", "--write")
	if !token.WellFormed(made.Key) || !strings.HasPrefix(made.Key, token.Live) || made.Subject != token.ID(made.Key) || made.State != operator.EntryDone {
		t.Fatalf("%+v", made)
	}
	key, err := d.Keys(t).Caller(t.Context(), "Bearer "+made.Key)
	if err != nil || key.Tenant != "tenant-b" || key.Name != "back office" || apikey.JoinScopes(key.Scopes) != "accounts:read payments:read" ||
		!key.ExpiresAt.Equal(in) || key.CreatedBy != "ada" {
		t.Errorf("%+v, %v", key, err)
	}
	listed := answered[[]apikey.Key](d, "apikey", "list", "--tenant", "tenant-b")
	if len(listed) != 1 || listed[0].ID != made.Subject || listed[0].LastUsed.IsZero() {
		t.Errorf("%+v", listed)
	}

	revoke := []string{"apikey", "revoke", made.Subject, "--reason", "ticket 2"}
	if out, _ := d.exits(idemctl.ExitOK, revoke...); !strings.Contains(out, `dry run: would revoke the key "back office" of tenant-b`) {
		t.Error(out)
	}
	if _, err := d.Keys(t).Caller(t.Context(), "Bearer "+made.Key); err != nil {
		t.Errorf("a dry run revoked it: %v", err)
	}
	for range 2 { // the second changes nothing
		d.exits(idemctl.ExitOK, append(revoke, "--write")...)
	}
	if _, err := d.Keys(t).Caller(t.Context(), "Bearer "+made.Key); err != apikey.ErrRevoked {
		t.Errorf("after: %v", err)
	}
	out, _ := d.exits(idemctl.ExitOK, "apikey", "list")
	if !strings.Contains(out, "revoked") || !strings.Contains(out, "valid") || strings.Contains(out, made.Key) {
		t.Error(out)
	}
	entries := answered[[]operator.Entry](d, "audit", "--subject", made.Subject)
	if len(entries) != 3 || entries[2].Action != "apikey create" || entries[2].Tenant != "tenant-b" || entries[2].Reason != "ticket 1" || entries[0].State != operator.EntryDone {
		t.Errorf("%+v", entries)
	}
	if log, _ := json.Marshal(entries); strings.Contains(string(log), made.Key) {
		t.Errorf("the audit log tells the key: %s", log)
	}
}

func TestAPIKeyCreateWithoutWriteMakesNone(t *testing.T) {
	d := newDesk(t)
	create := []string{"apikey", "create", "--tenant", "tenant-b", "--name", "shop", "--test", "--reason", "ticket 1"}
	if out, _ := d.exits(idemctl.ExitOK, create...); !strings.Contains(out, "dry run: would create a key of tenant-b") || strings.Contains(out, "idem_") {
		t.Error(out)
	}
	if keys := d.Items(t, d.APIKeys); len(keys) != 1 { // the samples'
		t.Errorf("%d keys", len(keys))
	}
	if entries := answered[[]operator.Entry](d, "audit"); len(entries) != 0 {
		t.Errorf("%+v", entries)
	}
	out, errs := d.exits(idemctl.ExitOK, append(create, "--write")...)
	_, key, _ := strings.Cut(strings.TrimSpace(out), "key  ")
	if !token.WellFormed(key) || !strings.HasPrefix(key, token.Test) || strings.Contains(errs, key) {
		t.Errorf("%s%s", out, errs)
	}
	if caller, err := d.Keys(t).Caller(t.Context(), "Bearer "+key); err != nil || len(caller.Scopes) != len(apikey.Scopes()) || !caller.ExpiresAt.IsZero() {
		t.Errorf("%+v, %v", caller, err)
	}
}

// A key that may not be there is not shown, whatever became of its entry in the audit log. One that is there is: it is told only once.
func TestAPIKeyThatMayNotBeThereIsNotShown(t *testing.T) {
	d := newDesk(t)
	d.entriesStayIntended()
	create := []string{"apikey", "create", "--tenant", "tenant-b", "--name", "shop", "--reason", "ticket 1", "--write"}
	if out, errs := d.exits(idemctl.ExitTrouble, create...); !strings.Contains(out, token.Live) || !strings.Contains(errs, "stays intended") {
		t.Errorf("%s%s, want the key, and to be told of its entry", out, errs)
	}
	d.before("PutItem", func(body string) (refused bool) { return strings.Contains(body, `"`+d.APIKeys+`"`) })
	if out, errs := d.exits(idemctl.ExitTrouble, create...); strings.Contains(out, token.Live) || !strings.Contains(errs, "stays intended") {
		t.Errorf("%s%s, want no key", out, errs)
	}
}

// One that is there is shown, whatever fails after it: nobody could ever read its secret again.
func TestAPIKeyThatIsThereIsShown(t *testing.T) {
	d := newDesk(t)
	made := false
	d.before("PutItem", func(body string) bool { made = made || strings.Contains(body, `"`+d.APIKeys+`"`); return false })
	d.before("Scan", func(body string) bool { return made })
	out, errs := d.exits(idemctl.ExitOK, "apikey", "create", "--tenant", "tenant-b", "--name", "shop", "--reason", "ticket 1", "--write")
	if !made || !strings.Contains(out, token.Live) || !strings.Contains(out, "apikey limit") {
		t.Errorf("%s%s, want the key, and that its limits were not compared", out, errs)
	}
}

// A test key is no sandbox: who makes one is told so, by the help and by the answer, and nobody else is.
func TestAPIKeyCreateSaysWhatATestKeyIs(t *testing.T) {
	d := newDesk(t)
	create := []string{"apikey", "create", "--tenant", "tenant-b", "--name", "shop", "--reason", "ticket 1", "--write"}
	const moves = "it moves money wherever test keys are accepted"
	if made := answered[created](d, append(create, "--test")...); !strings.Contains(made.Note, moves) {
		t.Errorf("%+v", made)
	}
	if made := answered[created](d, create...); made.Note != "" {
		t.Errorf("%+v", made)
	}
	for _, write := range []int{len(create) - 1, len(create)} {
		if out, _ := d.exits(idemctl.ExitOK, append(create[:write:write], "--test")...); !strings.Contains(out, moves) {
			t.Error(out)
		}
		if out, _ := d.exits(idemctl.ExitOK, create[:write:write]...); strings.Contains(out, moves) {
			t.Error(out)
		}
	}
	if out, _ := d.exits(idemctl.ExitOK, "apikey", "create", "--help"); !strings.Contains(strings.Join(strings.Fields(out), " "), "It is no sandbox") {
		t.Error(out)
	}
}

// A key that is created while its tenant's limits are set has the new ones, whichever of the two commands ends last.
func TestAPIKeyThatIsCreatedWhileLimitsAreSetHasThem(t *testing.T) {
	create := []string{"apikey", "create", "--tenant", "tenant-b", "--name", "shop", "--reason", "ticket 1", "--write"}
	limit := []string{"apikey", "limit", "tenant-b", "--reason", "ticket 2", "--new-keys", "5", "--write"}
	for name, c := range map[string]struct {
		outer, inner []string
		action       string
	}{
		"limits are set before the key is there":   {create, limit, "PutItem"},
		"a key is created before limits are there": {limit, create, "UpdateItem"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.exits(idemctl.ExitOK, create...)
			begun := false
			d.before(c.action, func(body string) (refused bool) {
				if strings.Contains(body, `"`+d.APIKeys+`"`) && !begun {
					begun = true
					d.exits(idemctl.ExitOK, c.inner...)
				}
				return false
			})
			d.exits(idemctl.ExitOK, c.outer...)
			keys := answered[[]apikey.Key](d, "apikey", "list", "--tenant", "tenant-b")
			if len(keys) != 2 || keys[0].Limits.NewKeysPerSecond != 5 || keys[1].Limits != keys[0].Limits {
				t.Errorf("%+v, want two keys with the new limits", keys)
			}
		})
	}
}

// A tenant's limits are on each of its keys, on those that are made later too, and on nobody else's; the audit log has them.
func TestAPIKeyLimit(t *testing.T) {
	d := newDesk(t)
	create := []string{"apikey", "create", "--tenant", "tenant-b", "--name", "shop", "--reason", "ticket 1", "--write"}
	first := answered[created](d, create...)
	limit := []string{"apikey", "limit", "tenant-b", "--reason", "ticket 2", "--new-keys", "5", "--waits", "1"}
	limits := func() (all []string) {
		t.Helper()
		for _, key := range answered[[]apikey.Key](d, "apikey", "list") {
			all = append(all, key.Tenant+" "+key.Limits.String())
		}
		return all
	}
	out, _ := d.exits(idemctl.ExitOK, limit...)
	if got := limits(); !strings.Contains(out, "dry run: would give 1 keys of tenant-b new_keys=5 waits=1 in place of the deployment's limits") ||
		!slices.Equal(got, []string{"tenant-a ", "tenant-b "}) {
		t.Errorf("%s%q", out, got)
	}
	for range 2 { // the second changes nothing
		d.exits(idemctl.ExitOK, append(limit, "--write")...)
	}
	answered[created](d, create...)
	if got := limits(); !slices.Equal(got, []string{"tenant-a ", "tenant-b new_keys=5 waits=1", "tenant-b new_keys=5 waits=1"}) {
		t.Errorf("%q", got)
	}
	if out, _ := d.exits(idemctl.ExitOK, "apikey", "list", "--tenant", "tenant-b", "--wide"); strings.Count(out, "new_keys=5 waits=1") != 2 {
		t.Error(out)
	}
	if key, err := d.Keys(t).Caller(t.Context(), "Bearer "+first.Key); err != nil || key.Limits.NewKeysPerSecond != 5 {
		t.Errorf("%+v, %v", key, err)
	}
	out, _ = d.exits(idemctl.ExitOK, "apikey", "limit", "tenant-b", "--look-ups", "9", "--reason", "ticket 3", "--write") // what is not named is the deployment's
	if !strings.Contains(out, "look_ups=9 in place of new_keys=5 waits=1") {
		t.Errorf("it does not say what to give back: %s", out)
	}
	if got := limits(); !slices.Equal(got[1:], []string{"tenant-b look_ups=9", "tenant-b look_ups=9"}) {
		t.Errorf("%q", got)
	}
	d.exits(idemctl.ExitOK, "apikey", "limit", "tenant-b", "--default", "--reason", "ticket 4", "--write")
	if got := limits(); !slices.Equal(got, []string{"tenant-a ", "tenant-b ", "tenant-b "}) {
		t.Errorf("%q", got)
	}
	entries := answered[[]operator.Entry](d, "audit", "--subject", "tenant-b")
	if len(entries) != 4 || entries[3].Action != "apikey limit" || entries[3].Reason != "ticket 2" || entries[3].State != operator.EntryDone ||
		entries[1].Outcome != "look_ups=9 in place of new_keys=5 waits=1" {
		t.Errorf("%+v", entries)
	}
}

// Where the audit log can't be written, no key is made.
func TestAPIKeyCreateNeedsTheAuditLog(t *testing.T) {
	d := newDesk(t)
	t.Setenv("AUDIT_TABLE", "there-is-none")
	d.exits(idemctl.ExitTrouble, "apikey", "create", "--tenant", "tenant-b", "--name", "shop", "--reason", "ticket 1", "--write")
	if keys := d.Items(t, d.APIKeys); len(keys) != 1 {
		t.Errorf("%d keys", len(keys))
	}
}

func TestAPIKeyCommandLinesThatAreRefused(t *testing.T) {
	d := newDesk(t)
	create := func(args ...string) []string { return append([]string{"apikey", "create", "--reason", "r"}, args...) }
	limit := func(args ...string) []string {
		return append([]string{"apikey", "limit", "--reason", "r", "--write"}, args...)
	}
	for name, args := range map[string][]string{
		"no tenant":        create("--name", "n"),
		"no name":          create("--tenant", "t"),
		"no reason":        {"apikey", "create", "--tenant", "t", "--name", "n"},
		"a bad tenant":     create("--tenant", "a/b", "--name", "n"),
		"a name of lines":  create("--tenant", "t", "--name", "a\nb"),
		"an unknown scope": create("--tenant", "t", "--name", "n", "--scopes", "payments:read,everything"),
		"in the past":      create("--tenant", "t", "--name", "n", "--expires", "2020-01-01T00:00:00Z"),
		"no limit":         limit(lambdatest.Tenant),
		"no reason to":     {"apikey", "limit", lambdatest.Tenant, "--new-keys", "5"},
		"a limit of 0":     limit(lambdatest.Tenant, "--new-keys", "0"),
		"a negative limit": limit(lambdatest.Tenant, "--waits=-1"),
		"too high a limit": limit(lambdatest.Tenant, "--look-ups", "1000000001"),
		"half a key":       limit(lambdatest.Tenant, "--active-keys", "5.5"),
		"two minds":        limit(lambdatest.Tenant, "--new-keys", "5", "--default"),
		"limits of nobody": limit("a/b", "--new-keys", "5"),
		"the key itself":   {"apikey", "revoke", lambdatest.Token, "--reason", "r"},
	} {
		if _, errs := d.exits(idemctl.ExitUsage, args...); errs == "" || strings.Contains(errs, lambdatest.Token) {
			t.Errorf("%s: %q", name, errs)
		}
	}
	if key := answered[[]apikey.Key](d, "apikey", "list")[0]; key.Limits != (apikey.Limits{}) {
		t.Errorf("what is refused has written %+v", key.Limits)
	}
	d.exits(idemctl.ExitRefused, "apikey", "limit", "tenant-b", "--new-keys", "5", "--reason", "r", "--write")
	d.exits(idemctl.ExitRefused, "apikey", "revoke", token.ID("nobody's"), "--reason", "r", "--write")
	t.Setenv("API_KEYS_TABLE", "")
	if _, errs := d.exits(idemctl.ExitUsage, "apikey", "list"); !strings.Contains(errs, "API_KEYS_TABLE") {
		t.Error(errs)
	}
}
