package faultproxy_test

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/localstack/faultproxy"
)

// keys are n keys of a table.
func keys(n int) (all []map[string]types.AttributeValue) {
	for i := range n {
		all = append(all, map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: string(rune('a' + i))}})
	}
	return all
}

func idsOf(items []map[string]types.AttributeValue) (ids string) {
	for _, it := range items {
		ids += it["id"].(*types.AttributeValueMemberS).Value
	}
	return ids
}

func TestPartialGetLeavesTheSecondHalfUnread(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Fault: faultproxy.Partial})
	b.upstream.answers(func(w http.ResponseWriter, _ *http.Request) { // which leaves one of its two tables by itself
		_, _ = io.WriteString(w, `{"Responses":{"a":[{"id":{"S":"a"}}]},"UnprocessedKeys":{"b":{"Keys":[{"id":{"S":"a"}}]}}}`)
	})
	out, err := b.sdk().BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		"a": {Keys: keys(1), ConsistentRead: aws.Bool(true)}, "b": {Keys: keys(4), ConsistentRead: aws.Bool(true)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	left := out.UnprocessedKeys
	if got := slices.Sorted(maps.Keys(left)); !slices.Equal(got, []string{"b"}) || idsOf(left["b"].Keys) != "abcd" {
		t.Errorf("unprocessed %v, want all of b: DynamoDB left a, the proxy b to d", left)
	}
	if sent := string(b.upstream.arrivals()[0].body); !strings.Contains(sent, `"a":{"ConsistentRead":true,"Keys":[{"id":{"S":"a"}}]}`) ||
		!strings.Contains(sent, `"b":{"ConsistentRead":true,"Keys":[{"id":{"S":"a"}}]}`) {
		t.Errorf("forwarded %s, want the first key of each table", sent)
	}
}

func TestPartialWriteWritesTheFirstHalf(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Fault: faultproxy.Partial})
	var writes []types.WriteRequest
	for _, key := range keys(3) {
		writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: key}})
	}
	out, err := b.sdk().BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"a": writes}})
	if err != nil {
		t.Fatal(err)
	}
	left := out.UnprocessedItems["a"]
	if len(left) != 2 || idsOf([]map[string]types.AttributeValue{left[0].PutRequest.Item, left[1].PutRequest.Item}) != "bc" {
		t.Errorf("unprocessed %+v, want b and c", left)
	}
	const want = `{"RequestItems":{"a":[{"PutRequest":{"Item":{"id":{"S":"a"}}}}]}}`
	if sent := string(b.upstream.arrivals()[0].body); sent != want {
		t.Errorf("forwarded %s, want %s", sent, want)
	}
}

// DynamoDB refuses where it can't process any of a batch, and a refused batch is refused whole.
func TestPartialLeavesOtherAnswersAlone(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Fault: faultproxy.Partial})
	one := b.want(200, "BatchGetItem", `{"RequestItems":{"a":{"Keys":[{"id":{"S":"a"}}]}}}`)
	if one.body != "{}" || b.last().Fault != "" {
		t.Errorf("a batch of one key met the fault: %s", one.body)
	}
	b.upstream.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"a#ValidationException"}`)
	})
	if r := b.want(400, "BatchGetItem", `{"RequestItems":{"a":{"Keys":[{},{}]}}}`); r.body != `{"__type":"a#ValidationException"}` {
		t.Errorf("a refusal was changed: %s", r.body)
	}
}

func TestAPartialBatchThatIsNotAnsweredIsAConnectionThatDrops(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Fault: faultproxy.Partial})
	b.upstream.answers(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "no JSON") })
	b.lost("BatchGetItem", `{"RequestItems":{"a":{"Keys":[{},{}]}}}`)
	if e := b.last(); e.Error == "" {
		t.Errorf("log %+v", e)
	}
}
