package dynamo

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// itemOf makes an item of whatever the fuzzer finds: a JSON object whose members become attributes of every type.
func itemOf(raw []byte) (item, bool) {
	var object map[string]any
	if json.Unmarshal(raw, &object) != nil {
		return nil, false
	}
	return attributesOf(object), true
}

func attributesOf(object map[string]any) item {
	it := item{}
	for name, v := range object {
		it[name] = attributeOf(v)
	}
	return it
}

// attributeOf takes a string with the prefix "b:" for bytes and one with "n:" for a number, so that each type can come
// under each name.
func attributeOf(v any) types.AttributeValue {
	switch v := v.(type) {
	case string:
		if len(v) >= 2 && v[:2] == "b:" {
			return &types.AttributeValueMemberB{Value: []byte(v[2:])}
		}
		if len(v) >= 2 && v[:2] == "n:" {
			return &types.AttributeValueMemberN{Value: v[2:]}
		}
		return stringValue(v)
	case float64:
		return numberValue(int64(v))
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}
	case []any:
		list := make([]types.AttributeValue, len(v))
		for i, element := range v {
			list[i] = attributeOf(element)
		}
		return &types.AttributeValueMemberL{Value: list}
	case map[string]any:
		return &types.AttributeValueMemberM{Value: attributesOf(v)}
	}
	return &types.AttributeValueMemberNULL{Value: true}
}

// FuzzDecodeRecord: whatever lies in the table, decoding ends in an error or in a record; and a record that counts as
// readable is stored and read back as the same.
func FuzzDecodeRecord(f *testing.F) {
	store := offline(f)
	for _, seed := range []string{
		`{}`, `{"pk":"key","op":"op_1","sv":1,"st":"completed","kd":"atomic","ea":1,"rs":201,"rh":["A","b"],"rb":"b:{}"}`,
		`{"pk":"key","op":"op_1","sv":2,"st":7,"kd":[]}`, `{"sv":"1"}`, `{"pk":"key","op":"op_1","sv":1,"re":"z","rb":"b:(\u00b5/\u00fd"}`,
		`{"pk":"key","op":"op_1","sv":1,"st":"unknown","kd":"wrapped","ep":"n:1e3","rt":-5,"fp":"b:x","rc":3,"an":1}`,
		`{"pk":"key","op":"op_1","sv":1,"st":"completed","kd":"atomic","ea":2,"au":1,"gn":true,"rl":true,"kf":1,"al":true,"re":"s","sl":true,"rb":"b:x"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		it, ok := itemOf(raw)
		if !ok {
			return
		}
		r, err := store.decodeRecord(it)
		if (r == nil) == (err == nil) {
			t.Fatalf("got %v and %v", r, err)
		}
		if r == nil || !r.Readable() || r.Chunks > 0 {
			return
		}
		again, chunks, err := store.encodeRecord(*r)
		if err != nil {
			if len(raw) < tooMuchToStore {
				t.Errorf("it can't be stored again: %v", err)
			}
			return
		}
		if len(chunks) > 0 {
			return // another program stored so much inline: what is read back lies beside the record
		}
		back, err := store.decodeRecord(again)
		if err != nil || !reflect.DeepEqual(normal(*back), normal(*r)) {
			t.Errorf("stored again it reads\n%+v, %v\nwant\n%+v", back, err, r)
			return
		}
		if third, _, err := store.encodeRecord(*back); err != nil || !reflect.DeepEqual(third, again) {
			t.Errorf("stored a third time it is\n%s, %v\nwant\n%s", fingerprintOf(third), err, fingerprintOf(again))
		}
	})
}

// tooMuchToStore is what no input stays below whose record does not fit in an item again: zstd makes a thousand times
// more of a body at most, and that is stored in chunks.
const tooMuchToStore = 1 << 10

func normal(r storage.Record) storage.Record {
	r.Response.Body = append([]byte(nil), r.Response.Body...)
	if len(r.Response.Header) == 0 {
		r.Response.Header = nil
	}
	return r
}

// FuzzDecodeMessage is the same for messages.
func FuzzDecodeMessage(f *testing.F) {
	store := offline(f)
	for _, seed := range []string{
		`{}`, `{"id":"op_1.1","n":1,"op":"op_1","pk":"key","sv":1,"st":"pending","qa":5,"q":"offer#0","pl":"b:{}","rt":1}`,
		`{"id":"op_1.1","sv":3,"st":[],"qa":"x"}`, `{"id":"op_1.1","sv":1,"st":"dead","qa":0,"dt":true,"ev":"b:x","ref":"ch_1"}`,
		`{"id":"op_1.1","sv":101,"st":"pending","sl":true,"pl":"b:x","kf":1,"gn":true,"rl":true}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		it, ok := itemOf(raw)
		if !ok {
			return
		}
		m, err := store.decodeMessage(it)
		if (m == nil) == (err == nil) {
			t.Fatalf("got %v and %v", m, err)
		}
		if m == nil || !m.Readable() {
			return
		}
		again, err := store.encodeMessage(*m)
		if err != nil {
			if len(raw) < tooMuchToStore {
				t.Errorf("it can't be stored again: %v", err)
			}
			return
		}
		back, err := store.decodeMessage(again)
		if len(m.Payload) == 0 {
			m.Payload = nil
		}
		for _, k := range []*storage.Kept{m.KeptDelivered, m.KeptDeclined} {
			if k != nil && len(k.Evidence) == 0 {
				k.Evidence = nil
			}
		}
		if err != nil || !reflect.DeepEqual(back, m) {
			t.Errorf("stored again it reads\n%+v, %v\nwant\n%+v", back, err, m)
		}
	})
}

// FuzzJoinChunks loses, damages, doubles or exchanges chunks of a body: it is put together as it was written, or not at
// all (peers.md H13).
func FuzzJoinChunks(f *testing.F) {
	shared := offline(f)
	f.Add([]byte("a body in chunks, one of which is exchanged"), []byte("another body, as long as the first one was."), uint8(4), uint8(1), uint8(1), uint8(0))
	f.Add(bytes.Repeat([]byte("idem"), 1<<10), bytes.Repeat([]byte("idem "), 1<<10), uint8(9), uint8(0), uint8(2), uint8(7))
	f.Add(bytes.Repeat([]byte("0"), 22), bytes.Repeat([]byte("0"), 23), uint8(21), uint8(3), uint8(1), uint8(0)) // but for one chunk the same
	f.Add([]byte("x"), []byte("y"), uint8(1), uint8(3), uint8(0), uint8(0))
	f.Fuzz(func(t *testing.T, body, other []byte, size, fault, at, by uint8) {
		store := *shared
		store.cfg.ChunkBytes, store.cfg.InlineBytesMax = max(int(size), max(len(body), len(other))/chunksMax+1), 0
		chunksOf := func(body []byte) (storage.Record, []item) {
			r := everyField()
			r.Response.Body = body
			it, chunks, err := store.encodeRecord(r)
			if err != nil {
				t.Fatal(err)
			}
			stored, err := store.decodeRecord(it)
			if err != nil {
				t.Fatal(err)
			}
			return *stored, chunks
		}
		r, chunks := chunksOf(body)
		if len(chunks) == 0 {
			return
		}
		found := map[string]item{}
		for _, chunk := range chunks {
			found[keyOf(chunk)] = chunk
		}
		if whole, err := store.joinChunks(found, r); err != nil || !bytes.Equal(whole, body) {
			t.Fatalf("joined %q, %v, want %q", whole, err, body)
		}
		chosen := keyOf(chunks[int(at)%len(chunks)])
		switch fault % 4 {
		case 0:
			delete(found, chosen)
		case 1:
			piece := bytes.Clone(found[chosen][schema.ResponseBody].(*types.AttributeValueMemberB).Value)
			piece[int(by)%len(piece)] ^= 1 + by
			found[chosen] = maps.Clone(found[chosen])
			found[chosen][schema.ResponseBody] = &types.AttributeValueMemberB{Value: piece}
		case 2:
			found[chosen] = found[keyOf(chunks[int(by)%len(chunks)])]
		case 3:
			_, torn := chunksOf(other)
			if len(chunks) == 1 || int(at)%len(chunks) >= len(torn) {
				return // a whole body of one chunk
			}
			found[chosen] = torn[int(at)%len(chunks)]
		}
		if joined, err := store.joinChunks(found, r); err == nil && !bytes.Equal(joined, body) {
			t.Fatalf("joined %q, want %q or an error", joined, body)
		}
	})
}
