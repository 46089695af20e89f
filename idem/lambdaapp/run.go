package lambdaapp

import (
	"errors"
	"slices"
)

// Run is the event of one run of the sweep or the reconciler.
type Run struct {
	// Shards are those that the run looks into, {"shards":[0,8]}: 0 to the number of shards less 1, each once, which the runner checks. Absent:
	// all, as in the event of a schedule without an input of its own.
	Shards []int `json:"shards"`
}

var errNoShard = errors.New("event: shards = []: must name a shard; leave it out for all shards")

// Check refuses an event that names no shard, although it names them.
func (r Run) Check() error {
	if r.Shards != nil && len(r.Shards) == 0 {
		return errNoShard
	}
	return nil
}

// First says that the run is the one of its minute that does what one of them has to: that of shard 0, or of all.
func (r Run) First() bool { return r.Shards == nil || slices.Contains(r.Shards, 0) }
