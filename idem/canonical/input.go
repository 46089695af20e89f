package canonical

import (
	"encoding/binary"
	"maps"
	"mime"
	"slices"
	"strings"
)

// Input is what was asked for. Absent and empty are different everywhere: no parameter and one with an empty value, no
// media type and any, no body and "null".
type Input struct {
	// Operation is the registered name, never the raw path.
	Operation string
	// Path holds the values of the path parameters by name.
	Path map[string]string
	// Query holds the query parameters that count (see [ChooseQuery]), each with all of its values in the order sent.
	Query map[string][]string
	// MediaType is the Content-Type header as it was sent; empty where there was none.
	MediaType string
	// Body is the body as it was sent. It is never changed.
	Body []byte
	// Fields picks the fields of a JSON body that count; nil means the whole body. Other bodies always count whole.
	Fields *Fields
}

// ChooseQuery returns the parameters of the query that the names pick. A name that was not sent is left out, so adding a
// name to an operation leaves the fingerprints of requests without it as they are.
func ChooseQuery(query map[string][]string, names []string) map[string][]string {
	chosen := make(map[string][]string, len(names))
	for _, name := range names {
		if values, ok := query[name]; ok {
			chosen[name] = values
		}
	}
	return chosen
}

// encodings holds one encoder per fingerprint version. An entry is never changed: records are compared under the version
// they were stored with. A new version is a new entry; an old one may go when no record can hold it any more.
var encodings = map[int]func(in Input, depthMax int) ([]byte, error){
	1: encodeV1,
}

// What the body field of an encoding holds.
const (
	bodyAbsent = iota
	bodyJSON
	bodyRaw
)

// encodeV1 writes, each string with its length and each list with its count before it, so that no value can pass for a
// delimiter: version, operation, path parameters by name, query parameters by name, media type, kind of body, body.
func encodeV1(in Input, depthMax int) ([]byte, error) {
	mediaType, isJSON := normalizeMediaType(in.MediaType)
	kind, body := bodyRaw, in.Body
	switch {
	case len(in.Body) == 0:
		kind = bodyAbsent
	case isJSON:
		kind = bodyJSON
		var err error
		if body, err = canonicalJSON(in.Body, depthMax); err != nil {
			return nil, err
		}
		body = in.Fields.apply(body)
	}

	dst := make([]byte, 0, 256+len(body))
	dst = appendNumber(dst, 1)
	dst = appendField(dst, in.Operation)
	dst = appendNumber(dst, len(in.Path))
	for _, name := range slices.Sorted(maps.Keys(in.Path)) {
		dst = appendField(dst, name)
		dst = appendField(dst, in.Path[name])
	}
	dst = appendNumber(dst, len(in.Query))
	for _, name := range slices.Sorted(maps.Keys(in.Query)) {
		dst = appendField(dst, name)
		dst = appendNumber(dst, len(in.Query[name]))
		for _, value := range in.Query[name] {
			dst = appendField(dst, value)
		}
	}
	dst = appendField(dst, mediaType)
	dst = appendNumber(dst, kind)
	return appendField(dst, body), nil
}

func appendNumber(dst []byte, n int) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(n))
}

func appendField[T string | []byte](dst []byte, value T) []byte {
	return append(appendNumber(dst, len(value)), value...)
}

// normalizeMediaType returns the form of a Content-Type that is hashed, and whether its bodies are JSON.
//
// Type, subtype and parameter names are lower-cased and the parameters sorted. The charset of a JSON type is dropped: the
// type defines none (RFC 8259 section 11), the body has to be UTF-8 anyway, and clients add it on one attempt but not on
// the next. Other parameters stay, because they may choose another meaning (a profile, a version); elsewhere the charset
// stays too, lower-cased, because it says what raw bytes mean. A value that is no media type counts as it stands, and
// its body by its bytes.
func normalizeMediaType(value string) (string, bool) {
	value = strings.Trim(value, " \t")
	mediaType, params, err := mime.ParseMediaType(value)
	if err != nil {
		return value, false
	}
	isJSON := mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
	if charset, ok := params["charset"]; ok {
		params["charset"] = strings.ToLower(charset)
		if isJSON {
			delete(params, "charset")
		}
	}
	if formatted := mime.FormatMediaType(mediaType, params); formatted != "" {
		return formatted, isJSON
	}
	return value, isJSON
}
