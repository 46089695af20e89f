package canonical

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
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
		tokens, ok := PointerTokens(p)
		if !ok || p == "" {
			return nil, fmt.Errorf("canonical: %s: %q is not a JSON pointer (RFC 6901) below the root", rule, p)
		}
		node := root
		for _, token := range tokens {
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
	filtered, _ := b.appendFiltered(make([]byte, 0, len(body)), body, keep)
	return filtered
}

// appendFiltered appends what counts of the value that src, which is canonical, begins with. It returns what follows.
func (b *branch) appendFiltered(dst, src []byte, keep bool) (appended, rest []byte) {
	open := src[0]
	if open != '{' && open != '[' {
		end := valueEnd(src)
		return append(dst, src[:end]...), src[end:]
	}
	dst, src = append(dst, open), src[1:]
	first := len(dst)
	for index := 0; src[0] != '}' && src[0] != ']'; index++ {
		src = bytes.TrimPrefix(src, []byte(","))
		before := len(dst)
		if before > first {
			dst = append(dst, ',')
		}
		token := strconv.Itoa(index)
		if open == '{' {
			end := skipString(src, 0)
			token = unquote(src[:end])
			dst = append(append(dst, src[:end]...), ':')
			src = src[end+len(":"):]
		}
		child := b.next[token]
		if child != nil && !child.whole {
			dst, src = child.appendFiltered(dst, src, keep)
			continue
		}
		end := valueEnd(src)
		if (child != nil) == keep {
			dst = append(dst, src[:end]...)
		} else {
			dst = dst[:before]
		}
		src = src[end:]
	}
	return append(dst, src[0]), src[1:]
}

// valueEnd returns the offset after the canonical value that src begins with.
func valueEnd(src []byte) int {
	depth := 0
	for i := 0; i < len(src); {
		switch src[i] {
		case '"':
			i = skipString(src, i)
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		default:
			i++
			if depth > 0 || i < len(src) && src[i] != ',' && src[i] != '}' && src[i] != ']' {
				continue
			}
		}
		if depth == 0 {
			return i
		}
	}
	return len(src)
}

// skipString returns the offset after the string that begins at i.
func skipString(src []byte, i int) int {
	for i++; src[i] != '"'; i++ {
		if src[i] == '\\' {
			i++
		}
	}
	return i + 1
}
