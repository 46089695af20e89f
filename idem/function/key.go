package function

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/idem-go/idem-aws/idem/canonical"
)

// Key says what an input's key is: made by [JSONPointer], by [KeyFunc], or by package function/jmespath. The zero value
// is none.
type Key struct {
	// expressions names the parts; nil for a function.
	expressions []string
	read        func(ctx context.Context, input []byte) ([]any, error)
	err         error
}

// IsZero says whether there is no key.
func (k Key) IsZero() bool { return k.read == nil && k.err == nil }

// Expression finds a part of a key in a JSON document: maps, slices, strings, booleans, nil, and numbers, which are
// float64 where a double holds all their digits, else json.Number. It returns nil for what is missing.
type Expression func(document any) (any, error)

// Expressions makes a key of the parts that the expressions find, in that order. What compile does not accept, [New]
// returns.
func Expressions(compile func(expression string) (Expression, error), expressions ...string) Key {
	if len(expressions) == 0 {
		return Key{err: errors.New("must have at least one expression")}
	}
	key := Key{expressions: expressions}
	compiled := make([]Expression, len(expressions))
	for i, expression := range expressions {
		if compiled[i], key.err = compile(expression); key.err != nil {
			return key
		}
	}
	key.read = func(_ context.Context, input []byte) ([]any, error) {
		document, err := decode(input)
		if err != nil {
			return nil, &KeyError{Reason: ReasonNotJSON}
		}
		parts := make([]any, len(compiled))
		for i, find := range compiled {
			if parts[i], err = find(document); err != nil {
				return nil, &KeyError{Part: i, Expression: expressions[i], Reason: ReasonNotEvaluated}
			}
		}
		return parts, nil
	}
	return key
}

// KeyFunc makes a key of what read returns; its error is returned as it is. For a key that is not in the input: Lambda
// gives the retries of an asynchronous invocation the same request id, for one.
func KeyFunc(read func(ctx context.Context, input []byte) (string, error)) Key {
	if read == nil {
		return Key{}
	}
	return Key{read: func(ctx context.Context, input []byte) ([]any, error) {
		key, err := read(ctx, bytes.Clone(input))
		return []any{key}, err
	}}
}

// KeyReason says why an input has no key. It never quotes the input.
type KeyReason string

// The reasons for having no key.
const (
	ReasonNotJSON      KeyReason = "the input is not JSON"
	ReasonNotEvaluated KeyReason = "the expression can't be evaluated"
	ReasonMissing      KeyReason = "null or missing"
	ReasonEmpty        KeyReason = "empty"
	ReasonNotScalar    KeyReason = "neither a string nor a number nor a boolean; give several expressions for a key of several parts"
	ReasonBoolean      KeyReason = "a boolean alone, which most inputs share"
	ReasonNotUTF8      KeyReason = "not UTF-8"
	ReasonUnusable     KeyReason = "a number beyond a double, or too large"
)

// KeyError is an input without a key. Nothing was executed, because its key would be that of others too.
type KeyError struct {
	// Part is the position of the part, from 0, and Expression what it was looked for by, where there is one.
	Part       int
	Expression string
	// Reason says why the part cannot be used.
	Reason KeyReason
}

// Error implements error.
func (e *KeyError) Error() string {
	if e.Expression == "" {
		return fmt.Sprintf("function: no key: %s", e.Reason)
	}
	return fmt.Sprintf("function: no key: part %d (%q): %s", e.Part, e.Expression, e.Reason)
}

// encodingVersion is the version of package canonical that keys are encoded with. It never changes: a key that is
// encoded differently is another key.
const encodingVersion = 1

// of reads and encodes the key of an input.
func (k Key) of(ctx context.Context, input []byte) (string, error) {
	parts, err := k.read(ctx, input)
	if err != nil {
		return "", err
	}
	for i, part := range parts {
		if reason := judge(part, len(parts)); reason != "" {
			return "", k.refuse(i, reason)
		}
	}
	encoded, err := encode(parts)
	if err != nil {
		return "", k.refuse(0, ReasonUnusable)
	}
	return encoded, nil
}

func (k Key) refuse(part int, reason KeyReason) error {
	refused := &KeyError{Part: part, Reason: reason}
	if k.expressions != nil {
		refused.Expression = k.expressions[part]
	}
	return refused
}

// judge says why a part is no part of a key, "" if it is one.
func judge(part any, parts int) KeyReason {
	switch part := part.(type) {
	case nil:
		return ReasonMissing
	case string:
		if part == "" {
			return ReasonEmpty
		}
		if !utf8.ValidString(part) { // encoding it would make it equal to others
			return ReasonNotUTF8
		}
	case bool:
		if parts == 1 {
			return ReasonBoolean
		}
	case float64, json.Number:
	case map[string]any:
		if len(part) == 0 {
			return ReasonEmpty
		}
		return ReasonNotScalar
	case []any:
		if len(part) == 0 {
			return ReasonEmpty
		}
		return ReasonNotScalar
	default:
		return ReasonNotScalar
	}
	return ""
}

// encode hashes the parts as one canonical JSON array: quotes and commas that a part holds are escaped or inside quotes,
// so two lists of parts are equal only if their parts are, and a number is what it is in a fingerprint.
func encode(parts []any) (string, error) {
	array, err := json.Marshal(parts)
	if err != nil {
		return "", err
	}
	hash, err := canonical.New(canonical.Config{BodyBytesMax: len(array)})
	if err != nil {
		return "", err
	}
	sum, err := hash.SumAs(canonical.Fingerprint{Version: encodingVersion}, canonical.Input{MediaType: "application/json", Body: array})
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(sum.Sum[:]), nil
}

// decode reads a document with all digits of its numbers. What JSON leaves open, such as a name that appears twice, is
// refused where the fingerprint is taken.
func decode(input []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.UseNumber()
	var document any
	if err := decoder.Decode(&document); err != nil {
		return nil, err
	}
	return convert(document), nil
}

// convert gives expressions the numbers that they can compare: doubles, where these hold all digits.
func convert(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			value[name] = convert(member)
		}
	case []any:
		for i, element := range value {
			value[i] = convert(element)
		}
	case json.Number:
		double, err := value.Float64()
		digits := significantDigits(string(value))
		if err == nil && digits <= digitsAlwaysHeld && (digits == 0 || math.Abs(double) >= normalMin) {
			return double
		}
	}
	return value
}

const (
	// digitsAlwaysHeld is how many significant digits every normal double holds.
	digitsAlwaysHeld = 15
	// normalMin is 2^-1022: below it a double holds fewer digits.
	normalMin = 0x1p-1022
)

func significantDigits(number string) int {
	mantissa, _, _ := strings.Cut(strings.ToLower(number), "e")
	mantissa = strings.ReplaceAll(strings.TrimPrefix(mantissa, "-"), ".", "")
	return len(strings.Trim(mantissa, "0"))
}
