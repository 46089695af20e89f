package idemconstruct

import (
	"cmp"
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/spec"
)

// Provisioned has tables and their indexes provisioned, and scaled between two rates: cheaper than on demand where traffic is
// steady. The zero value is on demand.
type Provisioned struct {
	// Operations are how many operations a second there is capacity for at the least, and at the most. Both are required.
	Operations spec.Range
	// ReadBurst are read units a second of each table, without its index, that are there whatever the rate of operations: of a job
	// that reads in bursts, which auto scaling would follow too late. Default 0.
	ReadBurst int
	// TargetPercent is the share of the capacity that is used when none is added and none taken away, 20 to 90. Default 70.
	TargetPercent int
}

// TargetPercentDefault leaves room for what comes before DynamoDB has scaled, which takes minutes.
const TargetPercentDefault = 70

// ownUnits are those of a table of an application's own, where it says nothing: a row that is written once in a transaction, below
// 1 KB, and read once.
var ownUnits = spec.Units{Writes: 2, Reads: 1, IndexWrites: 1, IndexReads: 1}

// check panics where the rates make no sense.
func (p Provisioned) check() {
	if r, percent := p.Operations, p.target(); r.Min < 1 || r.Max < r.Min || p.ReadBurst < 0 || percent < 20 || percent > 90 {
		panic(fmt.Sprintf("idemconstruct: Provisioned = %+v: must be 1 operation a second or more, at the most as many as at the least, no negative burst, and 20 to 90 percent", p))
	}
}

func (p Provisioned) target() int { return cmp.Or(p.TargetPercent, TargetPercentDefault) }

// of is what so many units of each operation take.
func (p Provisioned) of(units int) spec.Range { return p.Operations.Capacity(units, p.target()) }

// reads is what so many read units of each operation take of a table, which serves bursts; its index does not.
func (p Provisioned) reads(units int) spec.Range { return p.of(units).AtLeast(p.ReadBurst, p.target()) }

// scaled has DynamoDB scale capacity. The seed is what there is when a table that was on demand becomes provisioned: the most,
// because traffic is there already and scaling up would come too late.
func (p Provisioned) scaled(capacity spec.Range) awsdynamodb.Capacity {
	return awsdynamodb.Capacity_Autoscaled(&awsdynamodb.AutoscaledCapacityOptions{
		MinCapacity: jsii.Number(capacity.Min), MaxCapacity: jsii.Number(capacity.Max), SeedCapacity: jsii.Number(capacity.Max),
		TargetUtilizationPercent: jsii.Number(p.target()),
	})
}

// units are those of a table that is made with these properties.
func (p TablesProps) units() spec.Units {
	if p.Units == (spec.Units{}) {
		return ownUnits
	}
	return p.Units
}

// billing is the table's.
func (p TablesProps) billing() awsdynamodb.Billing {
	switch {
	case p.Provisioned != (Provisioned{}):
		p.Provisioned.check()
		if p.Max != (Throughput{}) {
			panic(fmt.Sprintf("idemconstruct: TablesProps.Max = %+v: must be none with Provisioned, which has a bound of its own", p.Max))
		}
		return awsdynamodb.Billing_Provisioned(&awsdynamodb.ThroughputProps{
			ReadCapacity: p.Provisioned.scaled(p.Provisioned.reads(p.units().Reads)), WriteCapacity: p.Provisioned.scaled(p.Provisioned.of(p.units().Writes)),
		})
	case p.Max != (Throughput{}):
		return awsdynamodb.Billing_OnDemand(&awsdynamodb.MaxThroughputProps{
			MaxReadRequestUnits: jsii.Number(p.Max.Read), MaxWriteRequestUnits: jsii.Number(p.Max.Write),
		})
	}
	return awsdynamodb.Billing_OnDemand(nil)
}

// billIndex has the index served as its table is.
func (p TablesProps) billIndex(index *awsdynamodb.GlobalSecondaryIndexPropsV2) {
	switch {
	case p.Provisioned != (Provisioned{}):
		of := p.units()
		index.ReadCapacity = p.Provisioned.scaled(p.Provisioned.of(of.IndexReads))
		index.WriteCapacity = p.Provisioned.scaled(p.Provisioned.of(of.IndexWrites))
	case p.Max != (Throughput{}):
		index.MaxReadRequestUnits, index.MaxWriteRequestUnits = jsii.Number(p.Max.Read), jsii.Number(p.Max.Write)
	}
}

// Most are the write and read units a second that the largest of the tables grows to.
func (p Provisioned) Most(tables ...spec.Units) (writes, reads int) {
	for _, of := range tables {
		writes = max(writes, p.of(of.Writes).Max)
		reads = max(reads, p.reads(of.Reads).Max)
	}
	return writes, reads
}

// Whole are the write and read units a second that a table grows to together with its index: what DynamoDB's quota of a table counts.
func (p Provisioned) Whole(of spec.Units) (writes, reads int) {
	return p.of(of.Writes).Max + p.of(of.IndexWrites).Max, p.reads(of.Reads).Max + p.of(of.IndexReads).Max
}
