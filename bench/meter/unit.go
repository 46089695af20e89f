// Package meter prices calls to DynamoDB by its documented rules, from the items that each call meets and leaves: for a client of
// the AWS SDK for Go ([Meter.Option]), or for any client that speaks DynamoDB's protocol ([Wire]).
package meter

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/bench/price"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// Item is a row as the SDK has it.
type Item = map[string]types.AttributeValue

// DynamoDB's units (Developer Guide, "DynamoDB read and write operations" and "Managing complex workflows with DynamoDB
// transactions"): a write unit is 1 KB and a strong read unit 4 KB of one item, rounded up per item; in a transaction
// DynamoDB writes each item twice, to prepare and to commit.
const (
	writeUnitBytes    = 1 << 10
	readUnitBytes     = 4 << 10
	transactionFactor = 2
)

// Units are what one path consumes, by what it is consumed on.
type Units struct {
	Records, Messages, Indexes, Business float64 // write units
	Reads                                float64 // read units
}

// Plus is the sum of both.
func (u Units) Plus(v Units) Units {
	return Units{u.Records + v.Records, u.Messages + v.Messages, u.Indexes + v.Indexes, u.Business + v.Business, u.Reads + v.Reads}
}

// Writes sums up the write units.
func (u Units) Writes() float64 { return u.Records + u.Messages + u.Indexes + u.Business }

// Dollars is the price of a million such paths.
func (u Units) Dollars() float64 { return u.Writes()*price.Writes + u.Reads*price.Reads }

// readUnits is what a read of an item consumes; one that is absent consumes as much as the smallest.
func readUnits(it Item, consistent bool) float64 {
	n := roundedUp(itemBytes(it), readUnitBytes)
	if !consistent {
		return n / 2
	}
	return n
}

// writeUnits is what a write of an item consumes: by the larger of what it was and what it is or would have been. A
// failed condition consumes as much.
func writeUnits(before, after Item) float64 {
	return roundedUp(max(itemBytes(before), itemBytes(after)), writeUnitBytes)
}

// indexUnits is what a write consumes on a sparse index (Developer Guide, "Provisioned throughput considerations for
// global secondary indexes"): one to enter or leave it or to change what it shows, two to move within it. Index entries
// follow the commit, so a transaction does not double them.
func indexUnits(table schema.Table, before, after Item) float64 {
	was, is := entry(table, before), entry(table, after)
	size := roundedUp(max(itemBytes(was), itemBytes(is)), writeUnitBytes)
	switch {
	case was == nil && is == nil, same(was, is, nil):
		return 0
	case was != nil && is != nil && !same(was, is, []string{table.Index.Partition, table.Index.Sort}):
		return 2 * size
	}
	return size
}

// entry is what the table's index shows of an item; nil where it is not in it.
func entry(table schema.Table, it Item) Item {
	index := table.Index
	if it[index.Partition] == nil || it[index.Sort] == nil {
		return nil
	}
	shown := Item{}
	for _, name := range append([]string{table.Key, index.Partition, index.Sort}, index.Projected...) {
		if v := it[name]; v != nil {
			shown[name] = v
		}
	}
	return shown
}

// same compares the named attributes, which are strings and numbers; nil names all.
func same(a, b Item, names []string) bool {
	if names == nil {
		if len(a) != len(b) || (a == nil) != (b == nil) {
			return false
		}
		for name := range a {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if scalar(a[name]) != scalar(b[name]) {
			return false
		}
	}
	return true
}

func scalar(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return "S" + v.Value
	case *types.AttributeValueMemberN:
		return "N" + v.Value
	}
	return ""
}

func roundedUp(bytes, unit int) float64 { return float64(max(1, (bytes+unit-1)/unit)) }

// itemBytes is the size of an item (Developer Guide, "DynamoDB item sizes and formats"): names and strings in UTF-8, a
// number as a byte for two digits and one more, 3 bytes for a list or map and 1 for each of its elements.
func itemBytes(it Item) int {
	size := 0
	for name, v := range it {
		size += len(name) + valueBytes(v)
	}
	return size
}

func valueBytes(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		digits := strings.Trim(strings.NewReplacer("-", "", ".", "").Replace(v.Value), "0")
		return (len(digits)+1)/2 + 1
	case *types.AttributeValueMemberL:
		size := 3
		for _, element := range v.Value {
			size += 1 + valueBytes(element)
		}
		return size
	case *types.AttributeValueMemberM:
		return 3 + len(v.Value) + itemBytes(v.Value)
	}
	return 1 // a flag or null; sets are not written here
}
