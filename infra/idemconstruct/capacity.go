package idemconstruct

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/spec"
)

// Provisioned has tables and their indexes provisioned, and scaled between two rates: cheaper than on demand where traffic is
// steady. The zero value is on demand.
type Provisioned = spec.Provisioned

// TargetPercentDefault leaves room for what comes before DynamoDB has scaled, which takes minutes.
const TargetPercentDefault = spec.TargetPercentDefault

// ownUnits are those of a table of an application's own, where it says nothing: a row that is written once in a transaction, below
// 1 KB, and read once.
var ownUnits = spec.Units{Writes: 2, Reads: 1, IndexWrites: 1, IndexReads: 1}

// check panics where the rates make no sense.
func check(p Provisioned) {
	if r, percent := p.Operations, p.Target(); r.Min < 1 || r.Max < r.Min || p.ReadBurst < 0 || percent < 20 || percent > 90 {
		panic(fmt.Sprintf("idemconstruct: Provisioned = %+v: must be 1 operation a second or more, at the most as many as at the least, no negative burst, and 20 to 90 percent", p))
	}
}

// scaled has DynamoDB scale capacity. The seed is what there is when a table that was on demand becomes provisioned: the most,
// because traffic is there already and scaling up would come too late.
func scaled(capacity spec.Range, percent int) awsdynamodb.Capacity {
	return awsdynamodb.Capacity_Autoscaled(&awsdynamodb.AutoscaledCapacityOptions{
		MinCapacity: jsii.Number(capacity.Min), MaxCapacity: jsii.Number(capacity.Max), SeedCapacity: jsii.Number(capacity.Max),
		TargetUtilizationPercent: jsii.Number(percent),
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
		check(p.Provisioned)
		if p.Max != (Throughput{}) {
			panic(fmt.Sprintf("idemconstruct: TablesProps.Max = %+v: must be none with Provisioned, which has a bound of its own", p.Max))
		}
		return awsdynamodb.Billing_Provisioned(&awsdynamodb.ThroughputProps{
			ReadCapacity:  scaled(p.Provisioned.Reads(p.units().Reads), p.Provisioned.Target()),
			WriteCapacity: scaled(p.Provisioned.Of(p.units().Writes), p.Provisioned.Target()),
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
		index.ReadCapacity = scaled(p.Provisioned.Of(of.IndexReads), p.Provisioned.Target())
		index.WriteCapacity = scaled(p.Provisioned.Of(of.IndexWrites), p.Provisioned.Target())
	case p.Max != (Throughput{}):
		index.MaxReadRequestUnits, index.MaxWriteRequestUnits = jsii.Number(p.Max.Read), jsii.Number(p.Max.Write)
	}
}
