package client_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/idem-go/idem-aws/idem/client"
)

// Whatever the network does and whenever the caller or its process gives up: the handler runs at most once, the client
// ends with the stored answer or with an error that says the outcome is unknown, and whoever asks again, in that process
// or the next, gets the stored answer.
func TestAnyScheduleOfFaults(t *testing.T) {
	faults := []fault{
		pass, dropBefore, dropBefore, dropAfter, dropAfter, torn, torn, after504, after504, status(408, ""), status(425, "1"), status(429, "2"),
		status(500, ""), status(502, ""), status(503, "30"), status(503, "90"), status(403, ""),
	}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		defer w.close()
		dir, err := os.MkdirTemp(t.TempDir(), "journal-*")
		if err != nil {
			rt.Fatal(err)
		}
		w.proxy.spoil(rapid.SliceOfN(rapid.SampledFrom(faults), 0, 12).Draw(rt, "faults")...)
		path := rapid.SampledFrom([]string{"/orders", "/imports", "/stripe"}).Draw(rt, "path")
		body := rapid.SampledFrom([]string{`{}`, `{"item":"book"}`}).Draw(rt, "body")
		if path == "/imports" && rapid.Bool().Draw(rt, "no body") {
			body = "" // and net/http joins in
		}
		processes := rapid.IntRange(1, 4).Draw(rt, "processes")
		for process := range processes + 1 {
			journal, err := client.OpenFileJournal(dir, 0)
			if err != nil {
				rt.Fatal(err)
			}
			ctx, cancel := context.WithCancel(client.WithOperation(context.Background(), "order-17"))
			attempts := rapid.IntRange(1, 6).Draw(rt, "attempts")
			if process == processes { // the last one lives in better times
				w.proxy.spoil()
			} else if after := rapid.IntRange(1, 6).Draw(rt, "canceled after"); after < attempts {
				began := len(w.clock.paused())
				w.clock.meanwhile = func(n int, _ time.Duration) {
					if n-began == after {
						cancel()
					}
				}
			}
			res, err := w.post(ctx, w.transport(client.Config{Journal: journal, AttemptsMax: attempts}), path, body)
			cancel()
			w.clock.meanwhile = nil
			refused := err == nil && res.StatusCode == 403 && process == 0 && len(w.proxy.arrived()) == 1
			switch {
			case err == nil && !refused && (res.StatusCode != 201 || res.body != `{"run":1}`):
				rt.Fatalf("answered %d %s", res.StatusCode, res.body)
			case err != nil && (!errors.Is(err, client.ErrUnknown) || process == processes):
				rt.Fatalf("process %d of %d: %v", process, processes, err)
			}
			if w.runs.Load() > 1 {
				rt.Fatalf("%d runs", w.runs.Load())
			}
		}
		w.ran(1)
	})
}
