package rpc

import (
	"bytes"
	"encoding/hex"
	"math"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/idem-go/idem-aws/docs/examples/internal/shoprpc/shopv1"
)

func paying(labels map[string]string) *shopv1.PayRequest {
	return &shopv1.PayRequest{Order: "o_1", Amount: 1200, Labels: labels}
}

// A release that changes this form answers every retry of an earlier one's requests with a mismatch.
func TestTheFormOfAMessageStaysAsItIs(t *testing.T) {
	// Field 1 of 3 bytes; field 2, 1200 as a zigzag varint; field 3 of 2 entries, the shorter key first; the end, nothing unknown.
	const want = "01" + "03" + "6f5f31" + "02" + "e012" + "03" + "02" + "01" + "62" + "01" + "32" + "03" + "612d31" + "01" + "31" + "00" + "00"
	labels := map[string]string{"a-1": "1", "b": "2"}
	for range 20 { // Go walks a map in another order each time
		if got := hex.EncodeToString(fingerprinted(paying(labels))); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
}

func TestMessagesThatMeanAnotherThingHaveAnotherForm(t *testing.T) {
	later := paying(nil)
	later.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 9, protowire.BytesType), "new"))
	nested := func(values ...any) proto.Message {
		list, err := structpb.NewList(values)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	var forms [][]byte
	for _, m := range []proto.Message{
		paying(nil), later, &shopv1.PayRequest{Order: "o_1", Amount: 1201}, &shopv1.PayRequest{Amount: 1200},
		paying(map[string]string{"a": "bc"}), paying(map[string]string{"ab": "c"}),
		nested(), nested("a", "b"), nested("ab"), nested([]any{"a"}, "b"), nested([]any{"a", "b"}), nested(1.5), nested(true), nested(false),
	} {
		forms = append(forms, fingerprinted(m))
	}
	for i, a := range forms {
		for j, b := range forms[:i] {
			if bytes.Equal(a, b) {
				t.Errorf("messages %d and %d have one form, %x", i, j, a)
			}
		}
	}
}

// A retry through another encoder may bring a NaN of other bits. It is the same request.
func TestOneMessageHasOneFormWhateverTheBitsOfItsNaN(t *testing.T) {
	nan := func(bits uint64) proto.Message { return structpb.NewNumberValue(math.Float64frombits(bits)) }
	if quiet, other := fingerprinted(nan(0x7ff8000000000001)), fingerprinted(nan(0xfff8000000000042)); !bytes.Equal(quiet, other) {
		t.Errorf("%x, %x", quiet, other)
	}
}
