package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/bench/hand"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// What is compared must be the same calls, with the same attributes of the same sizes, and the same conditions that fail.
func TestBothSidesMakeTheSameCalls(t *testing.T) {
	var calls hand.Recorder
	all, err := open(t.Context(), dynamotest.Endpoint(t, dynamotest.Dynoxide), paths(), calls.Option)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		t.Run(s.path.name, func(t *testing.T) {
			var shapes [2]string
			for i, key := range s.batch(2) {
				side := s.idem
				if i == 1 {
					side = s.hand
				}
				calls.Take()
				if err := post(side, key); err != nil {
					t.Fatal(err)
				}
				shapes[i] = shape(calls.Take())
			}
			if shapes[0] != shapes[1] || shapes[0] == "" {
				t.Errorf("idem makes\n%s\nby hand\n%s", shapes[0], shapes[1])
			}
			if failed := strings.Contains(shapes[0], "failed: true"); failed != (s.path.name == "replay by failed put") {
				t.Errorf("a condition failed: %v", failed)
			}
		})
	}
}

// shape is what makes calls alike: attributes and expressions by name and size.
func shape(calls []hand.Call) string {
	var b strings.Builder
	for _, c := range calls {
		fmt.Fprintf(&b, "%s failed: %v\n", c.Name(), c.Failed)
		switch in := c.Input.(type) {
		case *dynamodb.GetItemInput:
			shapeItems(&b, in.Key)
		case *dynamodb.PutItemInput:
			shapeItems(&b, in.Item, in.ExpressionAttributeValues)
		case *dynamodb.TransactWriteItemsInput:
			for _, w := range in.TransactItems {
				shapeItems(&b, w.Put.Item, w.Put.ExpressionAttributeValues)
			}
		}
	}
	return b.String()
}

func shapeItems(b *strings.Builder, items ...map[string]types.AttributeValue) {
	for _, it := range items {
		for _, name := range slices.Sorted(maps.Keys(it)) {
			switch v := it[name].(type) {
			case *types.AttributeValueMemberS:
				fmt.Fprintf(b, " %s:S%d", name, len(v.Value))
			case *types.AttributeValueMemberN:
				fmt.Fprintf(b, " %s:N%d", name, len(v.Value))
			case *types.AttributeValueMemberB:
				fmt.Fprintf(b, " %s:B%d", name, len(v.Value))
			default:
				fmt.Fprintf(b, " %s:%T", name, v)
			}
		}
		b.WriteString("\n")
	}
}

func TestTheTableHasEveryPathAloneAndManyAtOnce(t *testing.T) {
	all, err := open(t.Context(), dynamotest.Endpoint(t, dynamotest.Dynoxide), paths())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := measure(&out, all, 5, 2); err != nil {
		t.Fatal(err)
	}
	for _, name := range pathNames() {
		if n := strings.Count(out.String(), "\n"+name+"  "); n != 2 {
			t.Errorf("%s stands there %d times:\n%s", name, n, out.String())
		}
	}
}

func TestAProfileIsWrittenOfEachSide(t *testing.T) {
	only, err := named("wrapped")
	if err != nil {
		t.Fatal(err)
	}
	all, err := open(t.Context(), dynamotest.Endpoint(t, dynamotest.Dynoxide), only)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "wrapped")
	if err := profile(all[0], 10, name); err != nil {
		t.Fatal(err)
	}
	for _, side := range []string{"idem", "hand"} {
		if info, err := os.Stat(name + "." + side + ".pprof"); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, %v", side, info, err)
		}
	}
}
