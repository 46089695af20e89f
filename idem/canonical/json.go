package canonical

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Reason says why a body was refused as JSON. It never quotes the body.
type Reason string

// The reasons for refusing a body.
const (
	ReasonSyntax        Reason = "not JSON (RFC 8259)"
	ReasonDuplicateName Reason = "an object has a name twice"
	ReasonInvalidUTF8   Reason = "invalid UTF-8"
	ReasonSurrogate     Reason = "a lone surrogate in a string"
	ReasonNumberRange   Reason = "a number beyond the range of a double"
	ReasonDepth         Reason = "nested too deeply"
)

// SyntaxError refuses a body that is declared to be JSON: 400, before any look-up.
type SyntaxError struct {
	Reason Reason
	// Offset is the byte of the body at or after which the trouble was found.
	Offset int
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("canonical: body refused at byte %d: %s", e.Offset, e.Reason)
}

// canonicalJSON returns the canonical form of a body: RFC 8785, but for numbers, where appendCanonicalNumber has the
// rule. The result shares no memory with the body. Errors are [*SyntaxError].
func canonicalJSON(body []byte, depthMax int) ([]byte, error) {
	formatted, err := jsontext.AppendFormat(make([]byte, 0, len(body)), body, jsontext.ReorderRawObjects(true))
	if err != nil {
		return nil, refuse(body, depthMax, err)
	}
	canonical, err := rewriteNumbers(formatted, depthMax)
	if err == nil {
		return canonical, nil
	}
	// Once more over the body as it was sent, for an offset that means something to its sender.
	if _, sentErr := rewriteNumbers(body, depthMax); sentErr != nil {
		err = sentErr
	}
	return nil, err
}

// refuse says why the body is not acceptable, without the parser's message, which quotes the body.
func refuse(body []byte, depthMax int, err error) error {
	refused := &SyntaxError{Reason: ReasonSyntax}
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		refused.Offset = int(syntactic.ByteOffset)
	}
	var rewritten *SyntaxError
	switch _, scanErr := rewriteNumbers(body, depthMax); {
	case errors.As(scanErr, &rewritten) && rewritten.Reason == ReasonDepth:
		return rewritten
	case errors.Is(err, jsontext.ErrDuplicateName):
		refused.Reason = ReasonDuplicateName
	case jsontext.Value(body).IsValid(jsontext.AllowInvalidUTF8(true)):
		// Nothing else is wrong with it.
		refused.Reason = ReasonSurrogate
		if !utf8.Valid(body) {
			refused.Reason = ReasonInvalidUTF8
		}
	}
	return refused
}

// rewriteNumbers returns src with every number in its canonical form, and src itself where all of them are already. It
// returns a [*SyntaxError] for a number out of range and for nesting deeper than depthMax. It doesn't check the grammar
// and takes any bytes.
func rewriteNumbers(src []byte, depthMax int) ([]byte, error) {
	var dst []byte
	copied, depth := 0, 0
	for i := 0; i < len(src); {
		switch c := src[i]; {
		case c == '"':
			i = skipString(src, i)
		case c == '{' || c == '[':
			if depth++; depth > depthMax {
				return nil, &SyntaxError{Reason: ReasonDepth, Offset: i}
			}
			i++
		case c == '}' || c == ']':
			depth--
			i++
		case c == '-' || isDigit(c):
			end, plain := scanNumber(src, i)
			if !plain {
				if dst == nil {
					dst = make([]byte, 0, len(src)+len(src)/8)
				}
				dst = append(dst, src[copied:i]...)
				var ok bool
				if dst, ok = appendCanonicalNumber(dst, src[i:end]); !ok {
					return nil, &SyntaxError{Reason: ReasonNumberRange, Offset: i}
				}
				copied = end
			}
			i = end
		default:
			i++
		}
	}
	if dst == nil {
		return src, nil
	}
	return append(dst, src[copied:]...), nil
}

// skipString returns the offset after the string that begins at i, or the end of src.
func skipString(src []byte, i int) int {
	for i++; ; i++ {
		quote := bytes.IndexByte(src[i:], '"')
		if quote < 0 {
			return len(src)
		}
		i += quote
		escapes := 0
		for src[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}
