package provider_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/localstack/provider"
)

// What a reconciler reads: every object of a span exactly once, newest first, page by page, while others are being made.
func TestASpanIsListedInPages(t *testing.T) {
	s := start(t)
	begun := s.clock.Now()
	var made []string
	for i := range 10 {
		made = append(made, s.want(201, "POST", "/charges", fmt.Sprint("k", i), order).object(t).ID)
		s.clock.Advance(time.Second)
	}
	slices.Reverse(made)
	for _, c := range []struct {
		from, to time.Duration
		want     []string
	}{
		{0, 10 * time.Second, made},
		{0, 9 * time.Second, made[1:]},
		{time.Second, 10 * time.Second, made[:9]},
		{time.Millisecond, 8*time.Second + 1*time.Millisecond, made[1:9]},
		{10 * time.Second, time.Minute, nil},
	} {
		span := url.Values{"created_from": {begun.Add(c.from).Format(time.RFC3339Nano)}, "created_to": {begun.Add(c.to).Format(time.RFC3339Nano)}}
		for _, limit := range []int{1, 3, 100} {
			span.Set("limit", fmt.Sprint(limit))
			span.Del("starting_after")
			var got []string
			for {
				page := s.want(200, "GET", "/charges?"+span.Encode(), "", "").list(t)
				if len(page) > limit {
					t.Fatalf("%d objects on a page of %d", len(page), limit)
				}
				for _, o := range page {
					got = append(got, o.ID)
				}
				if len(page) < limit {
					break
				}
				span.Set("starting_after", got[len(got)-1])
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s to %s by %d: %v, want %v", c.from, c.to, limit, got, c.want)
			}
		}
	}
}

func TestAListingIsOfItsKindAndKey(t *testing.T) {
	s := start(t)
	for _, e := range endpoints(s) {
		s.want(201, "POST", e.path, "of-"+string(e.kind), e.body)
		s.clock.Advance(time.Second)
	}
	for _, e := range endpoints(s) {
		for _, o := range s.want(200, "GET", e.look+"?limit=100", "", "").list(t) {
			if o.Kind != e.kind {
				t.Errorf("GET %s lists %+v", e.look, o)
			}
		}
		key := "of-" + string(e.kind)
		if got := s.want(200, "GET", e.look+"?limit=1&key="+key, "", "").list(t); len(got) != 1 || got[0].Key != key {
			t.Errorf("GET %s of %s: %+v", e.look, key, got)
		}
		later := url.Values{"key": {key}, "created_from": {s.clock.Now().Format(time.RFC3339)}}
		if got := s.want(200, "GET", e.look+"?"+later.Encode(), "", "").list(t); len(got) != 0 {
			t.Errorf("GET %s of %s from now on: %+v", e.look, key, got)
		}
	}
}

func TestAListingThatCantBeReadIsRefused(t *testing.T) {
	s := start(t)
	for _, query := range []string{
		"limit=0", "limit=101", "limit=x", "created_from=today", "created_to=1", "starting_after=ch_unknown",
	} {
		if code := s.want(400, "GET", "/charges?"+query, "", "").code(t); code != "request_invalid" {
			t.Errorf("%s: %s", query, code)
		}
	}
}

// A rule about one source is about its look-ups, so that a reconciler's listing doesn't use it up; one without is for all.
func TestListingsMeetOnlyRulesForAll(t *testing.T) {
	s := start(t)
	s.want(201, "POST", "/charges", "k", order)
	s.faults(
		provider.Rule{On: provider.List, Source: "card_ok", Fault: provider.ErrorBefore, Times: 1},
		provider.Rule{On: provider.List, Fault: provider.RateLimit, Times: 1},
	)
	s.want(429, "GET", "/charges?limit=10", "", "")
	s.want(200, "GET", "/charges?limit=10", "", "")
	s.want(500, "GET", "/charges?key=k", "", "")
	s.want(200, "GET", "/charges?key=k", "", "")
}
