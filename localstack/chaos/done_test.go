package chaos_test

import (
	"maps"
	"testing"

	"github.com/idem-go/idem-aws/localstack/chaos"
)

// A kill loop without kills, outages or faults is no kill loop: what the plan had and the run had not fails it.
func TestARunWithoutWhatWasPlannedFails(t *testing.T) {
	p := planned(t, 7, 200)
	full := chaos.Done{Killed: map[chaos.Victim]int{chaos.API: 9, chaos.Worker: 4}, Outages: 1, Switched: 5, Provider: 30, DynamoDB: 50}
	for name, c := range map[string]struct {
		change func(*chaos.Done)
		want   int
	}{
		"what was planned": {func(*chaos.Done) {}, 0},
		"nothing":          {func(d *chaos.Done) { *d = chaos.Done{} }, 7},
		"no API killed":    {func(d *chaos.Done) { delete(d.Killed, chaos.API) }, 1},
		"no worker killed": {func(d *chaos.Done) { delete(d.Killed, chaos.Worker) }, 1},
		"hardly any kills": {func(d *chaos.Done) { d.Killed = map[chaos.Victim]int{chaos.API: 1, chaos.Worker: 1} }, 1},
		"no outage":        {func(d *chaos.Done) { d.Outages = 0 }, 1},
		"no webhooks":      {func(d *chaos.Done) { d.Switched = 0 }, 1},
		"provider":         {func(d *chaos.Done) { d.Provider = 0 }, 1},
		"DynamoDB":         {func(d *chaos.Done) { d.DynamoDB = 0 }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			done := full
			done.Killed = maps.Clone(full.Killed)
			c.change(&done)
			if missing := p.Missing(done); len(missing) != c.want {
				t.Errorf("%q, want %d", missing, c.want)
			}
		})
	}
}

// However small a plan is, a run that kills both, has its outage and meets its faults has all of it.
func TestASmallRunMayHaveFewFaults(t *testing.T) {
	done := chaos.Done{Killed: map[chaos.Victim]int{chaos.API: 1, chaos.Worker: 1}, Outages: 1, Switched: 1}
	if missing := planned(t, 7, 5).Missing(done); len(missing) > 0 {
		t.Error(missing)
	}
}
