package dynamo

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// item is what DynamoDB stores under one key.
type item = map[string]types.AttributeValue

func stringValue(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func numberValue(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// writer fills an item. A zero value leaves its attribute out. It keeps the first error.
type writer struct {
	item item
	err  error
	// What the item's values are made of. A record has some 25 of them, and lives or goes as a whole.
	texts   slab[types.AttributeValueMemberS]
	numbers slab[types.AttributeValueMemberN]
	blobs   slab[types.AttributeValueMemberB]
	digits  strings.Builder
}

// newRecordWriter makes a writer with room for what a record usually has.
func newRecordWriter() *writer {
	w := &writer{
		item: make(item, 28), texts: make(slab[types.AttributeValueMemberS], 12),
		numbers: make(slab[types.AttributeValueMemberN], 12), blobs: make(slab[types.AttributeValueMemberB], 6),
	}
	w.digits.Grow(128)
	return w
}

// slab is room for values that were allocated together. Where it is used up, each value is allocated by itself.
type slab[T any] []T

func (s *slab[T]) put(v T) *T {
	if len(*s) == 0 {
		own := new(T)
		*own = v
		return own
	}
	place := &(*s)[0]
	*s = (*s)[1:]
	*place = v
	return place
}

func (w *writer) text(s string) types.AttributeValue {
	return w.texts.put(types.AttributeValueMemberS{Value: s})
}

// decimal makes a number of digits that follow each other in one buffer.
func (w *writer) decimal(n int64) types.AttributeValue {
	var buffer [20]byte
	begin := w.digits.Len()
	w.digits.Write(strconv.AppendInt(buffer[:0], n, 10))
	return w.numbers.put(types.AttributeValueMemberN{Value: w.digits.String()[begin:]})
}

// name writes a string that identifies something. Invalid UTF-8 is refused: JSON would change it on the way.
func (w *writer) name(attribute, s string) {
	if s == "" {
		return
	}
	if !utf8.ValidString(s) && w.err == nil {
		w.err = fmt.Errorf("attribute %s is not valid UTF-8", attribute)
	}
	w.item[attribute] = w.text(s)
}

// note writes a free text, which comes from anywhere and is read by people. What can't be stored of it is replaced:
// evidence is never refused because of its description.
func (w *writer) note(attribute, s string) {
	if s != "" {
		w.item[attribute] = w.text(strings.ToValidUTF8(s, "\uFFFD"))
	}
}

// revision writes a revision as the 16 bytes that it stands for: every write of a row is billed by its size. Any other text
// is kept as it is.
func (w *writer) revision(attribute string, r storage.Revision) {
	bits, ok := storage.Bits(r)
	if !ok || r == "" {
		w.name(attribute, string(r))
		return
	}
	raw := storage.Raw(bits)
	w.bytes(attribute, raw[:])
}

// operation writes an operation's id as its incarnation: its other part is the key of the record, which stands there anyway.
// An id that does not belong to the key is kept as it is.
func (w *writer) operation(attribute string, key storage.RecordKey, id storage.OperationID) {
	incarnation, ok := key.Incarnation(id)
	if !ok {
		w.name(attribute, string(id))
		return
	}
	raw := storage.Raw(incarnation)
	w.bytes(attribute, raw[:])
}

func (w *writer) number(attribute string, n int64) {
	if n != 0 {
		w.item[attribute] = w.decimal(n)
	}
}

func (w *writer) instant(attribute string, t time.Time) {
	if !t.IsZero() {
		w.item[attribute] = w.decimal(t.UnixMilli())
	}
}

func (w *writer) duration(attribute string, d time.Duration) { w.number(attribute, d.Milliseconds()) }

func (w *writer) bytes(attribute string, b []byte) {
	if len(b) > 0 {
		w.item[attribute] = w.blobs.put(types.AttributeValueMemberB{Value: b})
	}
}

func (w *writer) trace(c trace.Context) { w.bytes(schema.Trace, c.Bytes()) }

func (w *writer) flag(attribute string, set bool) {
	if set {
		w.item[attribute] = &types.AttributeValueMemberBOOL{Value: true}
	}
}

// expiry writes native TTL's attribute, rounded up: DynamoDB reads seconds.
func (w *writer) expiry(attribute string, t time.Time, may bool) {
	if may {
		w.item[attribute] = w.decimal(int64(math.Ceil(float64(t.UnixMilli()) / 1000)))
	}
}

// reader reads an item. An absent attribute is the zero value; one of another type, or beyond its range, is malformed
// and the first such error is kept.
type reader struct {
	item item
	// lenient takes what is malformed for absent: the attributes of an item that another release wrote may mean anything,
	// and that it can't be read is told by its schema version.
	lenient bool
	err     error
}

func (r *reader) malformed(attribute string) {
	if r.err == nil && !r.lenient {
		r.err = fmt.Errorf("malformed attribute %s", attribute)
	}
}

func (r *reader) text(attribute string) string {
	switch v := r.item[attribute].(type) {
	case nil:
	case *types.AttributeValueMemberS:
		return v.Value
	default:
		r.malformed(attribute)
	}
	return ""
}

func (r *reader) revision() storage.Revision {
	if _, raw := r.item[schema.Revision].(*types.AttributeValueMemberB); raw {
		return storage.Revision(base64.RawURLEncoding.EncodeToString(r.bytes(schema.Revision)))
	}
	return storage.Revision(r.text(schema.Revision))
}

func (r *reader) operation(key storage.RecordKey) storage.OperationID {
	if _, raw := r.item[schema.OperationID].(*types.AttributeValueMemberB); !raw {
		return storage.OperationID(r.text(schema.OperationID))
	}
	if incarnation, ok := storage.FromRaw(r.bytes(schema.OperationID)); ok {
		if id, err := key.Operation(incarnation); err == nil {
			return id
		}
	}
	r.malformed(schema.OperationID)
	return ""
}

func (r *reader) number(attribute string) int64 {
	switch v := r.item[attribute].(type) {
	case nil:
	case *types.AttributeValueMemberN:
		if n, err := strconv.ParseInt(v.Value, 10, 64); err == nil {
			return n
		}
		r.malformed(attribute)
	default:
		r.malformed(attribute)
	}
	return 0
}

// count reads a number from 0 to most.
func (r *reader) count(attribute string, most int64) int {
	n := r.number(attribute)
	if n < 0 || n > most {
		r.malformed(attribute)
		return 0
	}
	return int(n)
}

func (r *reader) instant(attribute string) time.Time {
	if _, ok := r.item[attribute]; !ok {
		return time.Time{}
	}
	return time.UnixMilli(r.number(attribute)).UTC()
}

func (r *reader) duration(attribute string) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	n := r.number(attribute)
	if n < -most || n > most {
		r.malformed(attribute)
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

func (r *reader) bytes(attribute string) []byte {
	switch v := r.item[attribute].(type) {
	case nil:
	case *types.AttributeValueMemberB:
		return v.Value
	default:
		r.malformed(attribute)
	}
	return nil
}

// trace reads a position in a trace. What is none is dropped: a row is worth more than its trace.
func (r *reader) trace() trace.Context {
	if v, ok := r.item[schema.Trace].(*types.AttributeValueMemberB); ok {
		return trace.FromBytes(v.Value)
	}
	return ""
}

func (r *reader) flag(attribute string) bool {
	switch v := r.item[attribute].(type) {
	case nil:
	case *types.AttributeValueMemberBOOL:
		return v.Value
	default:
		r.malformed(attribute)
	}
	return false
}
