package dynamo

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// itemBytes is the size of an item as DynamoDB counts it, rounded up where its rule for numbers is not exact: names and
// values in UTF-8, a number as half its digits.
func itemBytes(it item) int {
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
	case *types.AttributeValueMemberN:
		return len(v.Value)/2 + 2
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberSS:
		return stringsBytes(v.Value)
	case *types.AttributeValueMemberNS:
		return stringsBytes(v.Value)
	case *types.AttributeValueMemberBS:
		size := 0
		for _, b := range v.Value {
			size += len(b)
		}
		return size
	case *types.AttributeValueMemberL:
		size := 3
		for _, element := range v.Value {
			size += 1 + valueBytes(element)
		}
		return size
	case *types.AttributeValueMemberM:
		return 3 + len(v.Value) + itemBytes(v.Value)
	}
	return 1 // a flag or null
}

func stringsBytes(values []string) int {
	size := 0
	for _, s := range values {
		size += len(s)
	}
	return size
}

// fingerprintOf makes two items equal strings exactly where they are equal, whatever order their maps have.
func fingerprintOf(it item) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(it)) {
		fmt.Fprintf(&b, "%q:", name)
		writeFingerprint(&b, it[name])
	}
	return b.String()
}

func writeFingerprint(b *strings.Builder, v types.AttributeValue) {
	switch v := v.(type) {
	case *types.AttributeValueMemberM:
		fmt.Fprintf(b, "M{%s}", fingerprintOf(v.Value))
	case *types.AttributeValueMemberL:
		b.WriteString("L[")
		for _, element := range v.Value {
			writeFingerprint(b, element)
		}
		b.WriteString("]")
	case nil:
		b.WriteString("-;")
	default:
		fmt.Fprintf(b, "%T%q;", v, scalar(v))
	}
}

func scalar(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberB:
		return string(v.Value)
	case *types.AttributeValueMemberBOOL:
		return fmt.Sprint(v.Value)
	case *types.AttributeValueMemberSS:
		return fmt.Sprintf("%q", v.Value)
	case *types.AttributeValueMemberNS:
		return fmt.Sprintf("%q", v.Value)
	case *types.AttributeValueMemberBS:
		return fmt.Sprintf("%q", v.Value)
	}
	return ""
}
