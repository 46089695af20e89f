package spec

import "cmp"

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

// PaymentUnits are what one payment consumes of the payments table: its row is made and settled, each in a transaction, and its place
// in the ledger never changes. It is read when somebody asks for it, and by three passes of the drift job.
var PaymentUnits = Units{Writes: 4, Reads: 4, IndexWrites: 1, IndexReads: 1}

// TableUnits are the units of one table, by the name that an operator knows.
type TableUnits struct {
	// Name of the table in the documents.
	Name string
	// Units that one operation consumes there.
	Units Units
}

// PaymentTables are the tables of the payments application that context provisioned has capacity for.
func PaymentTables() []TableUnits {
	return []TableUnits{{"records", RecordUnits}, {"messages", MessageUnits}, {"payments", PaymentUnits}}
}

// What DynamoDB lets an account provision in a Region unless it asks for more, of write units and of read units each: for all tables
// together, and for a table with its indexes.
const (
	AccountUnitsDefault = 80_000
	TableUnitsDefault   = 40_000
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

// Provisioned has tables and their indexes provisioned, and scaled between two rates: cheaper than on demand where traffic is
// steady. The zero value is on demand.
type Provisioned struct {
	// Operations are how many operations a second there is capacity for at the least, and at the most. Both are required.
	Operations Range
	// ReadBurst are read units a second of each table, without its index, that are there whatever the rate of operations: of a job
	// that reads in bursts, which auto scaling would follow too late. Default 0.
	ReadBurst int
	// TargetPercent is the share of the capacity that is used when none is added and none taken away, 20 to 90. Default 70.
	TargetPercent int
}

// OperationsMax keeps every capacity below what DynamoDB's API takes.
const OperationsMax = 1_000_000

// TargetPercentDefault leaves room for what comes before DynamoDB has scaled, which takes minutes.
const TargetPercentDefault = 70

// Target is TargetPercent or its default.
func (p Provisioned) Target() int { return cmp.Or(p.TargetPercent, TargetPercentDefault) }

// Of is the capacity that so many units of each operation take.
func (p Provisioned) Of(units int) Range { return p.Operations.Capacity(units, p.Target()) }

// Reads is the capacity that so many read units of each operation take of a table, which serves bursts; its index does not.
func (p Provisioned) Reads(units int) Range { return p.Of(units).AtLeast(p.ReadBurst, p.Target()) }

// Most are the write and read units a second that the largest of the tables grows to.
func (p Provisioned) Most(tables ...TableUnits) (writes, reads int) {
	for _, of := range tables {
		writes = max(writes, p.Of(of.Units.Writes).Max)
		reads = max(reads, p.Reads(of.Units.Reads).Max)
	}
	return writes, reads
}

// Whole are the write and read units a second that a table grows to together with its index: what DynamoDB's quota of a table counts.
func (p Provisioned) Whole(of Units) (writes, reads int) {
	return p.Of(of.Writes).Max + p.Of(of.IndexWrites).Max, p.Reads(of.Reads).Max + p.Of(of.IndexReads).Max
}

// All are the write and read units a second that the tables grow to together with their indexes: what DynamoDB's quota of an account
// counts.
func (p Provisioned) All(tables ...TableUnits) (writes, reads int) {
	for _, of := range tables {
		w, r := p.Whole(of.Units)
		writes, reads = writes+w, reads+r
	}
	return writes, reads
}
