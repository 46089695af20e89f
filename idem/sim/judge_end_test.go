package sim

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// A story has not ended while somebody who lives still sends what the provider told them, be it that their caller has been answered: seed
// 145403496 was judged half a second before the answer was kept.
func TestAnAnswerThatIsSentOnIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		over, dead bool
		sending    int
		quiet      time.Duration
		settles    bool
	}{
		"before its caller's answer":              {quiet: time.Hour, settles: true},
		"after it, in a call":                     {over: true, sending: 1, quiet: time.Hour, settles: true},
		"after it, between two tries":             {over: true, quiet: 10 * time.Second, settles: true},
		"after it, and nothing comes any more":    {over: true, quiet: time.Hour},
		"its process is dead, in whatever it was": {sending: 1, dead: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{}
				a := &act{process: &process{}, over: c.over, sending: c.sending, heard: time.Now()}
				a.process.dead.Store(c.dead)
				time.Sleep(c.quiet)
				m := storage.Message{ID: "op_1.1", State: storage.MessageUnknown}
				w.judge.knows = map[storage.MessageID][]*act{m.ID: {a}}
				if got := w.settling(m); got != c.settles {
					t.Errorf("%t, want %t", got, c.settles)
				}
			})
		})
	}
}
