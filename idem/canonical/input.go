package canonical

import (
	"encoding/binary"
	"maps"
	"mime"
	"slices"
	"strings"
)

// Input is what was asked for, and what of it counts. Absent and empty are different everywhere: no parameter and one with
// an empty value, no media type and any, no body and "null".
type Input struct {
	// Operation is the registered name, never the raw path.
	Operation string
	// Method is the method of an HTTP request.
	Method string
	// Path is the whole path of an HTTP request, escaped as it was sent.
	Path string
	// Wildcards are the values of the matched pattern's wildcards, in the order of the pattern; nil where no pattern is known.
	Wildcards []string
	// Parameters are the path's parameters by name, as a router other than http.ServeMux found them; nil where there is none.
	Parameters map[string]string
	// Query holds all parameters of the query, each with all of its values in the order sent.
	Query map[string][]string
	// MediaType is the Content-Type header as it was sent; empty where there was none.
	MediaType string
	// Body is the body as it was sent. It is never changed.
	Body []byte
	// Selection says what of all this counts.
	Selection Selection
}

// encodings holds one encoder per fingerprint version. An entry is never changed: records are compared under the version
// they were stored with. A new version is a new entry; an old one may go when no record can hold it any more.
var encodings = map[int]func(in Input, depthMax int) (encoding, error){
	1: encodeV1,
}

// encoding is the bytes that are hashed.
type encoding struct {
	bytes []byte
	// ends are where the parts of the request end in it, in the order of [Part]; the first begins at begin.
	begin int
	ends  [partCount]int
	// selection is the text of what counts.
	selection string
}

// What the body field of an encoding holds.
const (
	bodyAbsent = iota
	bodyJSON
	bodyRaw
)

// encodeV1 writes, each string with its length and each list with its count before it, so that no value can pass for a
// delimiter: version, operation, what counts of the path by name, what counts of the query by name, media type, kind of
// body, body; and last the method and the selection's text, unless both are empty.
func encodeV1(in Input, depthMax int) (encoding, error) {
	mediaType, isJSON := normalizeMediaType(in.MediaType)
	kind, body := bodyRaw, in.Body
	switch {
	case len(in.Body) == 0:
		kind = bodyAbsent
	case isJSON:
		kind = bodyJSON
		var err error
		if body, err = canonicalJSON(in.Body, depthMax); err != nil {
			return encoding{}, err
		}
		body = in.Selection.Fields.apply(body)
	}
	path, err := in.Selection.path(in)
	if err != nil {
		return encoding{}, err
	}
	query, selection := in.Selection.query(in.Query), in.Selection.String()

	dst := make([]byte, 0, 256+len(body))
	dst = appendNumber(dst, 1)
	dst = appendField(dst, in.Operation)
	e := encoding{begin: len(dst), selection: selection}
	dst = appendNumber(dst, len(path))
	for _, p := range path {
		dst = appendField(appendField(dst, p.name), p.value)
	}
	e.ends[PartPath] = len(dst)
	dst = appendNumber(dst, len(query))
	names := slices.AppendSeq(make([]string, 0, len(query)), maps.Keys(query))
	slices.Sort(names)
	for _, name := range names {
		dst = appendField(dst, name)
		dst = appendNumber(dst, len(query[name]))
		for _, value := range query[name] {
			dst = appendField(dst, value)
		}
	}
	e.ends[PartQuery] = len(dst)
	dst = appendField(dst, mediaType)
	e.ends[PartMediaType] = len(dst)
	dst = appendNumber(dst, kind)
	dst = appendField(dst, body)
	e.ends[PartBody] = len(dst)
	if in.Method != "" || selection != "" {
		dst = appendField(dst, in.Method)
		dst = appendField(dst, selection)
	}
	e.bytes, e.ends[PartMethod] = dst, len(dst)
	return e, nil
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
	if len(params) == 0 {
		return mediaType, isJSON
	}
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
