package chaos

import (
	"cmp"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/localstack/provider"
)

// How many requests there are to one event.
const (
	requestsPerKill     = 9
	requestsPerOutage   = 300
	requestsPerWebhooks = 60
)

var victims = []weighed[Victim]{{36, API}, {30, Worker}, {12, Sweep}, {12, Reconcile}, {7, Webhook}, {3, Relay}}

// modes of the provider's webhooks, which are off at first. What is told at once hides what a worker would have done wrong
// without, so it is rare, and twice is late, too.
var modes = []weighed[provider.Mode]{{4, provider.Off}, {1, provider.Normal}, {3, provider.Late}, {2, provider.Twice}}

// events are what happens beside that many requests: each victim's death, each mode of webhooks and an outage at least once,
// however few there are.
func (d dice) events(requests int) []Event {
	var all []Event
	for i := range max(len(Victims()), requests/requestsPerKill) {
		e := d.event(Kill, requests)
		e.Victim, e.All, e.Pick = draw(d, victims), d.share(50), d.IntN(64)
		if i < len(Victims()) {
			e.Victim = Victims()[i]
		}
		all = append(all, e)
	}
	for range 1 + requests/requestsPerOutage {
		e := d.event(Outage, requests)
		e.For = d.between(500, 2500)
		all = append(all, e)
	}
	for i := range len(modes) + requests/requestsPerWebhooks {
		e := d.event(Webhooks, requests)
		e.Mode = draw(d, modes)
		if i < len(modes) {
			e.Mode = modes[i].value
		}
		if e.Mode == provider.Late || e.Mode == provider.Twice {
			e.For = d.between(1500, 5000)
		}
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(a, b Event) int { return cmp.Compare(a.After, b.After) })
	return all
}

func (d dice) event(action Action, requests int) Event {
	return Event{Action: action, After: d.IntN(requests), Delay: time.Duration(d.IntN(500)) * time.Millisecond}
}
