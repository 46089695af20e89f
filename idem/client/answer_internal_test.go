package client

import (
	"net/http"
	"testing"
	"time"
)

// Servers behind one another each say something, on lines of their own or on one: scenarios.json has the same of all three clients.
func TestHeadersThatComeTwice(t *testing.T) {
	const name = "Idempotency-Status"
	for _, c := range []struct {
		status int
		head   http.Header
		want   verdict
	}{
		{404, http.Header{name: {"unknown", "unknown"}}, verdictUnknown},
		{404, http.Header{name: {"executed", "unknown"}}, verdictUnknown},
		{404, http.Header{name: {"unknown,executed"}}, verdictUnknown},
		{404, http.Header{name: {"replayed", "unknown"}}, verdictUnknown},
		{404, http.Header{name: {"replayed", "ignored"}}, verdictUnprotected},
		{404, http.Header{name: {"executed", "replayed"}}, verdictStored},
		{404, http.Header{"Idempotent-Replayed": {"true", "true"}}, verdictStored},
		{404, http.Header{"Idempotency-Expires": {"", ","}}, verdictUnproven},
		{409, http.Header{name: {"executed", "in_progress"}}, verdictAgain},
		{422, http.Header{name: {"executed", "mismatch"}}, verdictMismatch},
	} {
		a := &answer{res: &http.Response{StatusCode: c.status, Header: c.head}}
		if got := a.judge(); got != c.want {
			t.Errorf("%d %v: %s, want %s", c.status, c.head, got, c.want)
		}
	}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		lines []string
		want  time.Duration
	}{
		{[]string{"2", "9"}, 9 * time.Second},
		{[]string{"9, 2"}, 9 * time.Second},
		{[]string{"soon", "5"}, 5 * time.Second},
		{[]string{"3", "Sat, 21 Nov 2026 12:00:09 GMT"}, 9 * time.Second},
		{[]string{"Saturday, 21-Nov-26 12:00:09 GMT, Sat, 21 Nov 2026 12:00:04 GMT"}, 9 * time.Second},
		{[]string{"soon, later"}, 0},
	} {
		if got := retryAfter(http.Header{"Retry-After": c.lines}, now); got != c.want {
			t.Errorf("%q: %v, want %v", c.lines, got, c.want)
		}
	}
}
