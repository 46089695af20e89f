package stack_test

import (
	"fmt"
	"testing"
)

// The tables of money and their indexes have what was asked for, and the counters of quotas, which take as many writes; the others
// have DynamoDB's.
func TestThroughput(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		asked := chosen(variant, "warmThroughput")
		names := []string{"TablesIdempotency", "TablesOutbox", "Payments", "ApiKeys", "AuditTable"}
		if limits(variant) != nil {
			names = append(names, "Quota")
		}
		for _, name := range names {
			table := template.only(t, "AWS::DynamoDB::GlobalTable", name).Properties
			wanted := asked && name != "ApiKeys" && name != "AuditTable"
			all := []map[string]any{table}
			if indexes, ok := table["GlobalSecondaryIndexes"].([]any); ok {
				all = append(all, indexes[0].(map[string]any))
			}
			for _, each := range all {
				warm := each["WarmThroughput"]
				if (warm != nil) != wanted || wanted && fmt.Sprint(warm) != "map[ReadUnitsPerSecond:20000 WriteUnitsPerSecond:10000]" {
					t.Errorf("%s: warm %v", name, warm)
				}
				most := each["WriteOnDemandThroughputSettings"]
				if (most != nil) != wanted || wanted && fmt.Sprint(most) != "map[MaxWriteRequestUnits:15000]" {
					t.Errorf("%s: at the most %v", name, most)
				}
			}
			replica := table["Replicas"].([]any)[0].(map[string]any)
			if reads := replica["ReadOnDemandThroughputSettings"]; (reads != nil) != wanted || wanted && fmt.Sprint(reads) != "map[MaxReadRequestUnits:30000]" {
				t.Errorf("%s: reads at the most %v", name, reads)
			}
		}
	})
}

func TestThroughputsFit(t *testing.T) {
	context := map[string]any{"providerUrl": "https://provider.example", "account": "111122223333", "region": "eu-central-1", "alarmTopic": "none", "warmThroughput": "20000/10000", "maxThroughput": "20000/9999"}
	if _, err := read(context, nil); err == nil {
		t.Error("a maximum below what is warm was taken")
	}
	if _, err := read(map[string]any{"providerUrl": "http://127.0.0.1:1", "alarmTopic": "none", "local": true, "maxThroughput": "1/1"}, nil); err == nil {
		t.Error("a local stack took a maximum")
	}
}
