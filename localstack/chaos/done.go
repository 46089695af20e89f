package chaos

import "fmt"

// Done is what came of a plan's events and faults.
type Done struct {
	// Killed are the processes that were killed, by their function.
	Killed map[Victim]int
	// Outages are those that began and ended, Switched how often the provider changed how it announces what it makes. Provider and DynamoDB are the faults of requests that were met.
	Outages, Switched, Provider, DynamoDB int
}

// Of so many kills one is to find somebody: a schedule's function, or one that has just been killed, has no process most of the time.
// Of so few faults none may be met, because their requests end before.
const (
	killsPerDeath = 10
	faultsFew     = 10
)

// Missing says what a run of the plan has had nothing of, although it was planned. Such a run proves nothing: its processes could not be
// found, its rules match no request, or its servers take no orders.
func (p Plan) Missing(d Done) (missing []string) {
	planned := map[Action]int{}
	for _, e := range p.Events {
		planned[e.Action]++
	}
	killed := 0
	for _, n := range d.Killed {
		killed += n
	}
	for _, victim := range []Victim{API, Worker} { // they serve all the time
		if d.Killed[victim] == 0 {
			missing = append(missing, fmt.Sprintf("no process of %s was killed", victim))
		}
	}
	if killed*killsPerDeath < planned[Kill] {
		missing = append(missing, fmt.Sprintf("%d processes were killed, of %d kills that were planned", killed, planned[Kill]))
	}
	if d.Outages == 0 && planned[Outage] > 0 {
		missing = append(missing, fmt.Sprintf("there was no outage of DynamoDB, of %d that were planned", planned[Outage]))
	}
	if d.Switched == 0 && planned[Webhooks] > 0 {
		missing = append(missing, fmt.Sprintf("the provider's webhooks were never switched, of %d times that were planned", planned[Webhooks]))
	}
	atProvider, atDynamoDB := 0, 0
	for _, r := range p.Requests {
		atProvider, atDynamoDB = atProvider+len(r.Provider), atDynamoDB+len(r.DynamoDB)
	}
	if d.Provider == 0 && atProvider >= faultsFew {
		missing = append(missing, fmt.Sprintf("no call met a fault of the provider, of %d that were planned", atProvider))
	}
	if d.DynamoDB == 0 && atDynamoDB >= faultsFew {
		missing = append(missing, fmt.Sprintf("no request to DynamoDB met a fault, of %d that were planned", atDynamoDB))
	}
	return missing
}
