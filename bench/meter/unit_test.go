package meter

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// Examples of the Developer Guide: "DynamoDB item sizes and formats", "DynamoDB read and write operations".
func TestUnitsAreDynamoDBs(t *testing.T) {
	text := func(bytes int) Item {
		return Item{"k": &types.AttributeValueMemberS{Value: strings.Repeat("x", bytes-1)}}
	}
	for name, row := range map[string]struct{ got, want float64 }{
		"an absent item":                       {readUnits(nil, true), 1},
		"3,500 bytes are read as 4 KB":         {readUnits(text(3500), true), 1},
		"4 KB and a byte":                      {readUnits(text(4<<10+1), true), 2},
		"8 KB, eventually consistent":          {readUnits(text(8<<10), false), 1},
		"500 bytes are written as 1 KB":        {writeUnits(nil, text(500)), 1},
		"the larger of before and after":       {writeUnits(text(300<<10), text(310<<10)), 310},
		"the larger of before and after, less": {writeUnits(text(300<<10), text(10)), 300},
		"a number of 13 digits":                {float64(itemBytes(Item{"ca": &types.AttributeValueMemberN{Value: "1795262400123"}})), 2 + 8},
		"a number's trailing zeros":            {float64(itemBytes(Item{"rt": &types.AttributeValueMemberN{Value: "86400000"}})), 2 + 3},
		"a list":                               {float64(valueBytes(&types.AttributeValueMemberL{Value: []types.AttributeValue{text(5)["k"]}})), 3 + 1 + 4},
	} {
		if row.got != row.want {
			t.Errorf("%s: got %g, want %g", name, row.got, row.want)
		}
	}
}

// Developer Guide, "Provisioned throughput considerations for global secondary indexes".
func TestIndexUnitsAreDynamoDBs(t *testing.T) {
	table := schema.Table{Key: "pk", Index: schema.Index{Partition: "q", Sort: "qa", Projected: []string{"tn"}}}
	row := func(queue, at, tenant, state string) Item {
		it := Item{"pk": &types.AttributeValueMemberS{Value: "a"}, "tn": &types.AttributeValueMemberS{Value: tenant}, "st": &types.AttributeValueMemberS{Value: state}}
		if queue != "" {
			it["q"], it["qa"] = &types.AttributeValueMemberS{Value: queue}, &types.AttributeValueMemberN{Value: at}
		}
		return it
	}
	for name, change := range map[string]struct {
		before, after Item
		want          float64
	}{
		"never in it":                  {nil, row("", "", "t", "a"), 0},
		"enters":                       {nil, row("q", "1", "t", "a"), 1},
		"leaves":                       {row("q", "1", "t", "a"), row("", "", "t", "b"), 1},
		"moves":                        {row("q", "1", "t", "a"), row("q", "2", "t", "a"), 2},
		"changes what is shown":        {row("q", "1", "t", "a"), row("q", "1", "u", "a"), 1},
		"changes what is not shown":    {row("q", "1", "t", "a"), row("q", "1", "t", "b"), 0},
		"stays out, changes otherwise": {row("", "", "t", "a"), row("", "", "u", "b"), 0},
	} {
		if got := indexUnits(table, change.before, change.after); got != change.want {
			t.Errorf("%s: got %g, want %g", name, got, change.want)
		}
	}
}
