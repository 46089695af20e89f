package dynamo

import (
	"crypto/sha256"
	"fmt"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// responseAttributes are those that hold a response beside its chunks.
var responseAttributes = []string{
	schema.ResponseStatus, schema.ResponseHeaders, schema.ResponseBody, schema.ResponseEncoding, schema.ResponseChunks,
	schema.ChunkDigest, schema.Sealed,
}

// encodingSealed is of what package seal has encrypted. Release 1 does not know it, so it answers 503 where it would replay
// what it can't open.
const encodingSealed = "s"

// writeResponse writes a record's response, and returns the part of its body that lies in chunks.
//
// Only final responses are chunked: they change with another execution alone, which a cache-bust may make under the same operation
// id, and they get a ttl with their record. The record has the chunks' digest, so that it is never joined with another one's. A
// pending record's 202 is small by nature and lies in the item.
func (s *Store) writeResponse(w *writer, r storage.Record) (body encodedBody, err error) {
	if n := r.Response.Bytes(); n > s.cfg.ResponseBytesMax {
		return encodedBody{}, fmt.Errorf("%w: %d bytes, at most %d are allowed", storage.ErrResponseTooLarge, n, s.cfg.ResponseBytesMax)
	}
	w.number(schema.ResponseStatus, int64(r.Response.Status))
	if len(r.Response.Header) > 0 {
		w.item[schema.ResponseHeaders] = headerValue(r.Response.Header)
	}
	w.flag(schema.Sealed, r.Sealed)
	if r.Sealed { // what is encrypted can't be compressed
		body = encodedBody{r.Response.Body, encodingSealed}
		w.name(schema.ResponseEncoding, encodingSealed) // chunked or not
	} else {
		body.bytes, body.encoding = s.codec.Compress(r.Response.Body)
	}
	if len(body.bytes) > s.cfg.InlineBytesMax && r.State.Final() {
		digest := sha256.Sum256(body.bytes)
		w.number(schema.ResponseChunks, int64(body.chunks(s.cfg.ChunkBytes)))
		w.bytes(schema.ChunkDigest, digest[:])
		return body, nil
	}
	w.bytes(schema.ResponseBody, body.bytes)
	w.name(schema.ResponseEncoding, body.encoding)
	return encodedBody{}, nil
}

// readResponse reads a record's response, how many chunks hold its body, and their digest.
func (s *Store) readResponse(r *reader) (response storage.Response, chunks int, digest string) {
	response.Status = r.count(schema.ResponseStatus, 999)
	response.Header = r.header(schema.ResponseHeaders)
	chunks = r.count(schema.ResponseChunks, chunksMax)
	body, err := s.decode(r.bytes(schema.ResponseBody), r.text(schema.ResponseEncoding))
	if err != nil {
		r.malformed(schema.ResponseBody)
	}
	response.Body = body
	return response, chunks, string(r.bytes(schema.ChunkDigest))
}

// decode undoes the encoding of a body, except that what is sealed stays so.
func (s *Store) decode(body []byte, encoding string) ([]byte, error) {
	if encoding == encodingSealed {
		return body, nil
	}
	return s.codec.Decompress(body, encoding)
}

// sealed says whether a record's response is sealed. The flag alone doesn't: release 1 leaves it where it ends a record.
func (r *reader) sealed() bool {
	sealed := r.text(schema.ResponseEncoding) == encodingSealed
	if sealed && !r.flag(schema.Sealed) {
		r.malformed(schema.Sealed)
	}
	return sealed
}

// headerValue makes the most compact form that keeps order and repetition: name, value, name, value. A value that is not
// UTF-8 is kept as bytes.
func headerValue(fields []storage.Field) types.AttributeValue {
	values := make([]types.AttributeValue, 0, 2*len(fields))
	for _, field := range fields {
		values = append(values, exact(field.Name), exact(field.Value))
	}
	return &types.AttributeValueMemberL{Value: values}
}

func exact(s string) types.AttributeValue {
	if utf8.ValidString(s) {
		return stringValue(s)
	}
	return &types.AttributeValueMemberB{Value: []byte(s)}
}

func (r *reader) header(attribute string) []storage.Field {
	value, ok := r.item[attribute]
	if !ok {
		return nil
	}
	list, ok := value.(*types.AttributeValueMemberL)
	if !ok || len(list.Value)%2 != 0 {
		r.malformed(attribute)
		return nil
	}
	fields := make([]storage.Field, len(list.Value)/2)
	for i := range fields {
		name, nameOK := exactString(list.Value[2*i])
		value, valueOK := exactString(list.Value[2*i+1])
		if !nameOK || !valueOK {
			r.malformed(attribute)
			return nil
		}
		fields[i] = storage.Field{Name: name, Value: value}
	}
	return fields
}

func exactString(value types.AttributeValue) (string, bool) {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return v.Value, true
	case *types.AttributeValueMemberB:
		return string(v.Value), true
	}
	return "", false
}
