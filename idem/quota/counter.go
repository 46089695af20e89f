package quota

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"time"
)

// What is counted; part of the counters' names.
const (
	countsKeys    = "new keys per second"
	countsActive  = "active keys"
	countsLookUps = "look-ups per second"
	countsWaits   = "waits per second"
)

// count is the field of a rate's counter.
const count = "n"

// counterName hashes what a counter is about: it spreads counters evenly over partitions, and shows no tenant.
func counterName(limit, tenant string, begins int64, shard int) string {
	h := sha256.New()
	for _, part := range []string{limit, tenant} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	var numbers [16]byte
	binary.BigEndian.PutUint64(numbers[:8], uint64(begins))
	binary.BigEndian.PutUint64(numbers[8:], uint64(shard))
	h.Write(numbers[:])
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:24])
}

// within is what of a block of n lies within the limit, sum being the counter with the block.
func within(limit, sum, n int64) int64 { return min(max(limit-(sum-n), 0), n) }

// rateKeptFor is how long after its window a counter of a rate may be removed: past every clock's difference.
const rateKeptFor = time.Hour

const (
	secondsPerHour = 3600
	hoursPerDay    = 24
)

// dayOf and fieldOf say where an hour is counted: its day's counter, a field for each hour.
func dayOf(hour int64) int64 { return hour / hoursPerDay }

func fieldOf(hour int64) string { return "h" + strconv.FormatInt(hour%hoursPerDay, 10) }

func startOf(hour int64) time.Time { return time.Unix(hour*secondsPerHour, 0) }
