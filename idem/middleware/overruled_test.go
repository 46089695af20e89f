package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/storage"
)

// unreadable is a quota that nobody can read.
type unreadable struct{ usedUp }

func (unreadable) NewKey(context.Context, string) (func(), error) {
	return nil, errors.New("connection refused")
}

// semantics.md "Policies", observe mode: no request is refused, and what is executed although enforcement would have refused it to
// begin has a record. Without one, its retry is executed again by the release that enforces.
func TestWhatEnforcementWouldNotHaveBegunHasARecordAllTheSame(t *testing.T) {
	for name, c := range map[string]struct {
		config idem.Config
		unread bool
		sent   time.Duration // after now; 0 is not at all
		want   string
	}{
		"the quota is used up":                {config: idem.Config{Quota: usedUp{}}, want: "429  " + header.CodeQuotaExceeded},
		"the quota can't be read":             {config: idem.Config{Quota: unreadable{}}, want: "503  " + header.CodeStoreUnavailable},
		"sent in the future":                  {sent: time.Hour, want: "400  " + header.CodeKeyInvalid},
		"sent longer ago than records live":   {sent: -48 * time.Hour, want: "412  " + header.CodeKeyExpired},
		"records may have been lost":          {config: idem.Config{RefuseBefore: time.Now().Add(time.Hour)}, want: "503  " + header.CodeRefusedBefore},
		"nobody knows when records were lost": {unread: true, want: "503  " + header.CodeStoreUnavailable},
	} {
		for _, kind := range []idem.Kind{idem.KindAtomic, idem.KindOptimistic, idem.KindWrapped} {
			t.Run(fmt.Sprintf("%s, %s", name, kind), func(t *testing.T) {
				told, store := &reports{}, (*lossy)(nil)
				before := newLocalAPI(t, func(s storage.Store) storage.Store { store = &lossy{Store: s}; return store })
				store.unread.Store(c.unread)
				c.config.Now, c.config.Logger = before.now, slog.New(slog.DiscardHandler)
				var err error
				if before.engine, err = idem.New(store, c.config); err != nil {
					t.Fatal(err)
				}
				before.reportTo(told.add)
				runs, fails := 0, false
				if kind == idem.KindWrapped {
					before.wrap("POST /orders", idem.Operation{Policy: idem.Observe(idem.IETF())}, func(w http.ResponseWriter, _ *http.Request) {
						if runs++; fails {
							w.WriteHeader(500)
							return
						}
						w.WriteHeader(201)
					})
				} else {
					before.handle("POST /orders", idem.Operation{Kind: kind, Policy: idem.Observe(idem.IETF())}, middleware.Route{}, func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
						if runs++; fails {
							return idem.Response{}, errors.New("no")
						}
						return idem.Response{Status: 201}, nil
					})
				}
				asked, failing := key(ask{}), ask{keys: []string{"fails"}}
				if c.sent != 0 {
					at := rfc3339(before.now().Add(c.sent))
					asked, failing = sent(asked, at), sent(failing, at)
				}
				before.observes(told, asked, 201, c.want)
				before.observes(told, asked, 201, "201 replayed")
				fails = true
				before.observes(told, failing, 500, c.want)
				if runs != 3 {
					t.Errorf("3 requests ran %d times", runs)
				}

				after, ran := enforcing(t, before, kind)
				if r := after.do(asked); r.StatusCode != 201 || r.Header.Get("Idempotent-Replayed") != "true" || len(ran.all) != 0 {
					t.Errorf("the release that enforces: %d %s, %d runs", r.StatusCode, r.body, len(ran.all))
				}
			})
		}
	}
}
