package rpc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// fingerprinted is a message in one form: fields by number, maps in one order. Two encodings of one message can differ, so the bytes that
// arrived are not what counts. Neither are those of proto.MarshalOptions.Deterministic: they may change with the next release of the
// library, and a retry that meets that release would be another request. What an Any packs stays as its bytes: nobody here knows its fields.
func fingerprinted(m proto.Message) []byte { return appendMessage(nil, m.ProtoReflect()) }

func appendMessage(to []byte, m protoreflect.Message) []byte {
	var fields []protoreflect.FieldDescriptor
	m.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		fields = append(fields, field)
		return true
	})
	slices.SortFunc(fields, func(a, b protoreflect.FieldDescriptor) int { return int(a.Number()) - int(b.Number()) })
	for _, field := range fields {
		to = binary.AppendUvarint(to, uint64(field.Number()))
		to = appendField(to, field, m.Get(field))
	}
	to = binary.AppendUvarint(to, 0) // no field has this number: the end, and what a later release of the caller's has sent
	return appendBytes(to, m.GetUnknown())
}

func appendField(to []byte, field protoreflect.FieldDescriptor, value protoreflect.Value) []byte {
	switch {
	case field.IsMap():
		var entries [][]byte
		value.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
			entry := appendOne(nil, field.MapKey(), key.Value())
			entries = append(entries, appendOne(entry, field.MapValue(), value))
			return true
		})
		slices.SortFunc(entries, bytes.Compare)
		to = binary.AppendUvarint(to, uint64(len(entries)))
		return append(to, bytes.Join(entries, nil)...)
	case field.IsList():
		list := value.List()
		to = binary.AppendUvarint(to, uint64(list.Len()))
		for i := range list.Len() {
			to = appendOne(to, field, list.Get(i))
		}
		return to
	}
	return appendOne(to, field, value)
}

// appendOne appends a value that is neither a list nor a map. The field says its kind, so values need no tag.
func appendOne(to []byte, field protoreflect.FieldDescriptor, value protoreflect.Value) []byte {
	switch v := value.Interface().(type) {
	case protoreflect.Message:
		return appendMessage(to, v)
	case string:
		return appendBytes(to, []byte(v))
	case []byte:
		return appendBytes(to, v)
	case bool:
		if v {
			return append(to, 1)
		}
		return append(to, 0)
	case protoreflect.EnumNumber:
		return binary.AppendVarint(to, int64(v))
	case int32, int64:
		return binary.AppendVarint(to, value.Int())
	case uint32, uint64:
		return binary.AppendUvarint(to, value.Uint())
	case float32, float64:
		if math.IsNaN(value.Float()) { // its bits may differ from one encoder to the next
			return binary.BigEndian.AppendUint64(to, math.Float64bits(math.NaN()))
		}
		return binary.BigEndian.AppendUint64(to, math.Float64bits(value.Float()))
	default:
		panic(fmt.Sprintf("rpc: %s has a value of kind %s, which no protobuf message has", field.FullName(), field.Kind()))
	}
}

func appendBytes(to, value []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(value))), value...)
}
