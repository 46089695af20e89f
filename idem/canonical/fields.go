package canonical

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Fields picks the fields of a JSON body that count in a fingerprint, by JSON pointer (RFC 6901). It is immutable and safe
// for concurrent use; nil picks everything.
type Fields struct {
	include, exclude *branch // nil: no such rule
	// included and excluded are the pointers that they were compiled of.
	included, excluded []string
}

// branch is a set of pointers that share a beginning.
type branch struct {
	// whole says that a pointer ends here: it names this value with all it holds.
	whole bool
	// next holds the branches below by unescaped reference token.
	next map[string]*branch
}

// NewFields compiles pointers. Where include has any, only the values they name count; of what is left, the values that
// exclude names do not. A value that is missing is no error. An included value whose ancestor is not the container that
// the pointer expects takes that ancestor along: what stands in its place counts. Elements of arrays are named by index
// ("/items/0"). The empty pointer, which names the whole body, is rejected: with exclude all bodies would be equal.
func NewFields(include, exclude []string) (*Fields, error) {
	included, err := newBranch("include", include)
	if err != nil {
		return nil, err
	}
	excluded, err := newBranch("exclude", exclude)
	if err != nil {
		return nil, err
	}
	if included == nil && excluded == nil {
		return nil, nil // as the text of the selection has it
	}
	return &Fields{include: included, exclude: excluded, included: slices.Clone(include), excluded: slices.Clone(exclude)}, nil
}

func newBranch(rule string, pointers []string) (*branch, error) {
	if len(pointers) == 0 {
		return nil, nil
	}
	root := &branch{next: map[string]*branch{}}
	for _, p := range pointers {
		pointer := jsontext.Pointer(p)
		if p == "" || !pointer.IsValid() {
			return nil, fmt.Errorf("canonical: %s: %q is not a JSON pointer (RFC 6901) below the root", rule, p)
		}
		node := root
		for token := range pointer.Tokens() {
			child := node.next[token]
			if child == nil {
				child = &branch{next: map[string]*branch{}}
				node.next[token] = child
			}
			node = child
		}
		node.whole = true
	}
	return root, nil
}

// apply returns the body with the fields that count. The body is canonical, and what is left of it is again.
func (f *Fields) apply(body []byte) []byte {
	if f == nil {
		return body
	}
	if f.include != nil {
		body = f.include.filter(body, true)
	}
	if f.exclude != nil {
		body = f.exclude.filter(body, false)
	}
	return body
}

// filter keeps what the branch names, or, with keep false, all but that.
func (b *branch) filter(body []byte, keep bool) []byte {
	// Names are unique already: the body went through canonicalJSON.
	decoder := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true))
	return b.appendFiltered(make([]byte, 0, len(body)), decoder, keep)
}

// appendFiltered appends the next value of the decoder, which reads canonical JSON from memory and so never fails.
func (b *branch) appendFiltered(dst []byte, decoder *jsontext.Decoder, keep bool) []byte {
	kind := decoder.PeekKind()
	if kind != jsontext.KindBeginObject && kind != jsontext.KindBeginArray {
		return appendValue(dst, decoder)
	}
	dst = appendToken(dst, decoder)
	first := len(dst)
	for index := 0; more(decoder); index++ {
		before := len(dst)
		if before > first {
			dst = append(dst, ',')
		}
		token := strconv.Itoa(index)
		if kind == jsontext.KindBeginObject {
			name := len(dst)
			dst = appendValue(dst, decoder)
			unquoted, _ := jsontext.AppendUnquote(nil, dst[name:])
			token = string(unquoted)
			dst = append(dst, ':')
		}
		child := b.next[token]
		switch {
		case child != nil && !child.whole:
			dst = child.appendFiltered(dst, decoder, keep)
		case (child != nil) == keep:
			dst = appendValue(dst, decoder)
		default:
			_ = decoder.SkipValue()
			dst = dst[:before]
		}
	}
	return appendToken(dst, decoder)
}

// more says whether the array or object that the decoder is in has another element.
func more(decoder *jsontext.Decoder) bool {
	kind := decoder.PeekKind()
	return kind != jsontext.KindEndObject && kind != jsontext.KindEndArray && kind != jsontext.KindInvalid
}

func appendValue(dst []byte, decoder *jsontext.Decoder) []byte {
	value, _ := decoder.ReadValue()
	return append(dst, value...)
}

func appendToken(dst []byte, decoder *jsontext.Decoder) []byte {
	token, _ := decoder.ReadToken()
	return append(dst, token.String()...)
}
