package payments_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// docs/payments-api.md "The provider simulator": a call that the provider does not tell from its repetition is made once. An idle
// connection may have been closed by the provider a moment ago, and what is sent on it then is a call whose outcome nobody knows. So
// each such call has a connection of its own; the others take what is there.
func TestCallsWithoutKeysReuseNoConnection(t *testing.T) {
	const calls = 3
	for _, e := range effects("ch_1", "scr_1") {
		t.Run(e.topic, func(t *testing.T) {
			var opened, asked atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, `{"id":"x_1","status":"succeeded"}`)
			}))
			server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					opened.Add(1)
				}
			}
			server.Start()
			defer server.Close()
			topic := topics(t, server.URL)[e.topic]
			for range calls {
				topic.Call(t.Context(), e.m)
			}
			want := int64(calls)
			if topic.Keys.Honoured {
				want = 1
			}
			if opened.Load() != want || asked.Load() != calls {
				t.Errorf("%d connections for %d calls, want %d for %d", opened.Load(), asked.Load(), want, calls)
			}
		})
	}
}
