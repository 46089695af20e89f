package dynamo

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

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
func fingerprintOf(it item) string { return string(appendItem(nil, it)) }

func appendItem(dst []byte, it item) []byte {
	for _, name := range slices.Sorted(maps.Keys(it)) {
		dst = append(strconv.AppendQuote(dst, name), ':')
		dst = appendValue(dst, it[name])
	}
	return dst
}

func appendValue(dst []byte, v types.AttributeValue) []byte {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		dst = strconv.AppendQuote(append(dst, 'S'), v.Value)
	case *types.AttributeValueMemberN:
		dst = strconv.AppendQuote(append(dst, 'N'), v.Value)
	case *types.AttributeValueMemberM:
		dst = append(appendItem(append(dst, "M{"...), v.Value), '}')
	case *types.AttributeValueMemberL:
		dst = append(dst, "L["...)
		for _, element := range v.Value {
			dst = appendValue(dst, element)
		}
		dst = append(dst, ']')
	default:
		dst = fmt.Appendf(dst, "%T%q", v, v)
	}
	return append(dst, ';')
}
