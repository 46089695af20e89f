package spec

// Units are what one operation consumes of a table and of its index, in write and read units.
type Units struct {
	// Writes and Reads are those of the table, IndexWrites and IndexReads those of its index.
	Writes, Reads, IndexWrites, IndexReads int
}

// What one deferred operation with a response below 1 KB consumes, from its request to the last look-up of its response. Writes are
// those of bench/cost: a record that is made and settled in transactions of twice 2, a message that is made in one, claimed, and
// settled in another, and its index entry that comes and goes. Reads are the look at the key, a look-up, and a replay now and then;
// the message that a wake-up names; and three passes of a job that compares all rows with their messages and records, a unit each.
//
// The index of the records has entries of wrapped operations only. It has a little all the same, because an index that is
// throttled throttles its table.
var (
	RecordUnits  = Units{Writes: 4, Reads: 6, IndexWrites: 1, IndexReads: 1}
	MessageUnits = Units{Writes: 5, Reads: 4, IndexWrites: 2, IndexReads: 1}
)

// CompareRows is how many rows a second one piece of the drift job compares: it reads each in all three tables, a unit each. Assumed.
const CompareRows = 400

// Range is from the least to the most of something.
type Range struct {
	// Min is the least and Max the most of it, both included.
	Min, Max int
}

// AtLeast raises the range to the least that comes in bursts, whatever the rate of operations: so many units a second that take the
// given share of what there is, in percent.
func (r Range) AtLeast(burst, percent int) Range {
	least := (burst*100 + percent - 1) / percent
	return Range{max(r.Min, least), max(r.Max, least)}
}

// Capacity are the units a second that so many operations a second take to the given share of what there is, in percent.
func (r Range) Capacity(units, percent int) Range {
	of := func(rate int) int { return max(1, (rate*units*100+percent-1)/percent) }
	return Range{of(r.Min), of(r.Max)}
}
