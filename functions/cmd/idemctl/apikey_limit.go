package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

// limitKeys writes a tenant's limits on all of its keys, revoked ones too: the next key has them from the newest one.
type limitKeys struct {
	Tenant     string `arg:"" help:"The tenant."`
	NewKeys    *int64 `help:"New keys a second."`
	ActiveKeys *int64 `help:"Keys of the last retention."`
	LookUps    *int64 `help:"Look-ups of an operation's status a second."`
	Waits      *int64 `help:"Waits (Prefer: wait) that begin in a second."`
	Default    bool   `help:"Give the tenant the deployment's limits again."`
	idemctl.Reasoned
}

// Validate judges the command line. What is not named has the deployment's limit, which 0 would not say clearly enough.
func (l *limitKeys) Validate() error {
	if !tenantForm.MatchString(l.Tenant) {
		return fmt.Errorf("the tenant must have 1..64 letters, digits, dots, dashes and underscores")
	}
	named := 0
	for _, one := range []struct {
		flag  string
		value *int64
	}{{"--new-keys", l.NewKeys}, {"--active-keys", l.ActiveKeys}, {"--look-ups", l.LookUps}, {"--waits", l.Waits}} {
		if one.value == nil {
			continue
		}
		if named++; *one.value < 1 || *one.value > apikey.LimitMax {
			return fmt.Errorf("%s must be 1 to %d; without the flag the tenant has the deployment's limit", one.flag, apikey.LimitMax)
		}
	}
	if l.Default == (named > 0) {
		return errors.New("name at least one limit, or --default and none")
	}
	return nil
}

func (l *limitKeys) limits() apikey.Limits {
	at := func(value *int64) int64 {
		if value == nil {
			return 0
		}
		return *value
	}
	return apikey.Limits{NewKeysPerSecond: at(l.NewKeys), ActiveKeys: at(l.ActiveKeys), LookUpsPerSecond: at(l.LookUps), WaitsPerSecond: at(l.Waits)}
}

// Run implements the command. Whoever dies on the way leaves some keys with the limits of before: the same command goes on.
func (l *limitKeys) Run(d *idemctl.Desk) error {
	table, clerk, err := keyDesk(d.Context())
	if err != nil {
		return err
	}
	keys, err := table.List(d.Context(), l.Tenant)
	switch {
	case err != nil:
		return err
	case len(keys) == 0:
		return operator.ErrNotFound
	}
	limits := l.limits()
	change := limitWords(limits) + " in place of " + limitWords(limitsOf(keys)) // what was there is gone after it: nothing else says what to give back
	result, err := clerk.Do(d.Context(), operator.Task{
		Name: "apikey limit", Subject: l.Tenant, Tenant: l.Tenant,
		Would: fmt.Sprintf("give %d keys of %s %s", len(keys), l.Tenant, change),
		Act: func(ctx context.Context) (string, error) {
			if err := limitAll(ctx, table, keys, limits); err != nil {
				return "", err
			}
			since, err := table.List(ctx, l.Tenant) // apikey create gives a key the limits that it finds
			if err != nil {
				return "", err
			}
			behind := slices.DeleteFunc(since, func(k apikey.Key) bool { return k.Limits == limits })
			if err := limitAll(ctx, table, behind, limits); err != nil {
				return "", err
			}
			return change, nil
		},
	}, l.Change())
	return shown(d, l.Write, result, err)
}

// limitAll writes limits on keys. One that is gone needs none.
func limitAll(ctx context.Context, table apikey.Table, keys []apikey.Key, limits apikey.Limits) error {
	for _, key := range keys {
		if err := table.Limit(ctx, key.Tenant, key.ID, limits); err != nil && !errors.Is(err, apikey.ErrNoKey) {
			return err
		}
	}
	return nil
}

// limitsOf are the tenant's: those of its newest key.
func limitsOf(keys []apikey.Key) (limits apikey.Limits) {
	for _, key := range keys { // oldest first
		limits = key.Limits
	}
	return limits
}

// limitWords says limits for people.
func limitWords(limits apikey.Limits) string {
	if words := limits.String(); words != "" {
		return words
	}
	return "the deployment's limits"
}
