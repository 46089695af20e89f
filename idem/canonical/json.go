package canonical

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"
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
	// Reason says what is wrong with the body.
	Reason Reason
	// Offset is the byte of the body at or after which the trouble was found.
	Offset int
}

// Error says at which byte of the body parsing stopped, counted from 0, and why.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("canonical: body refused at byte %d: %s", e.Offset, e.Reason)
}

// canonicalJSON returns the canonical form of a body: RFC 8785, but for numbers, where appendCanonicalNumber has the
// rule. The result shares no memory with the body. Errors are [*SyntaxError], for the first trouble in the body.
//
// The parser is this package's own, so that no release of another module or of Go can change a fingerprint. The tests
// compare it with another parser.
func canonicalJSON(body []byte, depthMax int) ([]byte, error) {
	p := parser{src: body, dst: make([]byte, 0, len(body)+len(body)/8), depthLeft: depthMax, members: make([]memberPlace, 0, membersUsual)}
	p.space()
	if err := p.value(); err != nil {
		return nil, err
	}
	p.space()
	if p.at < len(body) {
		return nil, p.refuse(ReasonSyntax)
	}
	return p.dst, nil
}

// membersUsual is for how many members of the open objects there is room from the start.
const membersUsual = 16

// parser reads JSON (RFC 8259) from src and writes its canonical form to dst as it goes.
type parser struct {
	src []byte
	at  int // offset in src of what is read next
	dst []byte
	// depthLeft is how many more arrays and objects may open.
	depthLeft int
	// members are those of all objects that are open, each object's behind those of the object around it.
	members []memberPlace
	// moved is where the members of an object are sorted.
	moved []byte
}

// memberPlace says where a member of an object is in dst: the quoted name, a colon and the value.
type memberPlace struct {
	start, nameEnd, end int
	// sent is the offset of the name in src.
	sent int
}

func (p *parser) refuse(reason Reason) error { return &SyntaxError{Reason: reason, Offset: p.at} }

// peek returns the next byte, and 0 at the end: no valid JSON has a 0 outside a string, nor a raw one inside.
func (p *parser) peek() byte {
	if p.at < len(p.src) {
		return p.src[p.at]
	}
	return 0
}

func (p *parser) space() {
	for p.at < len(p.src) {
		switch p.src[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// value reads a value, which begins here.
func (p *parser) value() error {
	switch c := p.peek(); {
	case c == '"':
		return p.text()
	case c == '{' || c == '[':
		if p.depthLeft == 0 {
			return p.refuse(ReasonDepth)
		}
		p.depthLeft--
		read := (*parser).array
		if c == '{' {
			read = (*parser).object
		}
		err := read(p)
		p.depthLeft++
		return err
	case c == '-' || isDigit(c):
		return p.number()
	}
	for _, literal := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(p.src[p.at:], []byte(literal)) {
			p.dst = append(p.dst, literal...)
			p.at += len(literal)
			return nil
		}
	}
	return p.refuse(ReasonSyntax)
}

// copyByte copies the next byte, which is to be c, and the white space after it goes.
func (p *parser) copyByte(c byte) error {
	if p.peek() != c {
		return p.refuse(ReasonSyntax)
	}
	p.dst = append(p.dst, c)
	p.at++
	p.space()
	return nil
}

func (p *parser) array() error { return p.list('[', ']', (*parser).value) }

func (p *parser) object() error {
	outer := len(p.members)
	if err := p.list('{', '}', (*parser).member); err != nil {
		return err
	}
	err := p.sort(p.members[outer:])
	p.members = p.members[:outer]
	return err
}

// list reads what stands between two brackets, separated by commas.
func (p *parser) list(open, end byte, element func(*parser) error) error {
	if err := p.copyByte(open); err != nil {
		return err
	}
	for more := p.peek() != end; more; {
		if err := element(p); err != nil {
			return err
		}
		p.space()
		if more = p.peek() != end; more {
			if err := p.copyByte(','); err != nil {
				return err
			}
		}
	}
	p.dst = append(p.dst, end)
	p.at++
	return nil
}

func (p *parser) member() error {
	m := memberPlace{start: len(p.dst), sent: p.at}
	if err := p.text(); err != nil {
		return err
	}
	m.nameEnd = len(p.dst)
	p.space()
	if err := p.copyByte(':'); err != nil {
		return err
	}
	if err := p.value(); err != nil {
		return err
	}
	m.end = len(p.dst)
	p.members = append(p.members, m)
	return nil
}

// sort puts the members of one object, which is the last thing in dst, in the order of RFC 8785 section 3.2.3. It refuses a name that is
// there twice, at the first of those that come again.
func (p *parser) sort(members []memberPlace) error {
	name := func(m memberPlace) []byte { return p.dst[m.start:m.nameEnd] }
	compare := func(a, b memberPlace) int { return compareNames(name(a), name(b)) }
	ascending := true
	for i := 1; i < len(members) && ascending; i++ {
		ascending = compare(members[i-1], members[i]) < 0
	}
	if ascending {
		return nil
	}
	start := members[0].start
	slices.SortStableFunc(members, compare)
	again := -1
	p.moved = slices.Grow(p.moved[:0], len(p.dst)-start)
	for i, m := range members {
		if i > 0 {
			p.moved = append(p.moved, ',')
			if bytes.Equal(name(members[i-1]), name(m)) && (again < 0 || m.sent < again) {
				again = m.sent
			}
		}
		p.moved = append(p.moved, p.dst[m.start:m.end]...)
	}
	if again >= 0 {
		return &SyntaxError{Reason: ReasonDuplicateName, Offset: again}
	}
	copy(p.dst[start:], p.moved)
	return nil
}

// number reads a number. Most are copied as they are.
func (p *parser) number() error {
	start := p.at
	if p.peek() == '-' {
		p.at++
	}
	leading := p.peek()
	digits := p.digits()
	if digits == 0 {
		return p.refuse(ReasonSyntax)
	}
	if leading == '0' && digits > 1 {
		p.at -= digits - 1
		return p.refuse(ReasonSyntax)
	}
	integer := true
	if p.peek() == '.' {
		integer = false
		p.at++
		if p.digits() == 0 {
			return p.refuse(ReasonSyntax)
		}
	}
	if p.peek() == 'e' || p.peek() == 'E' {
		integer = false
		p.at++
		if p.peek() == '+' || p.peek() == '-' {
			p.at++
		}
		if p.digits() == 0 {
			return p.refuse(ReasonSyntax)
		}
	}
	literal := p.src[start:p.at]
	if integer && isCanonicalInteger(literal) {
		p.dst = append(p.dst, literal...)
		return nil
	}
	var ok bool
	if p.dst, ok = appendCanonicalNumber(p.dst, literal); !ok {
		return &SyntaxError{Reason: ReasonNumberRange, Offset: start}
	}
	return nil
}

// digits passes over digits and returns how many there are.
func (p *parser) digits() int {
	start := p.at
	for isDigit(p.peek()) {
		p.at++
	}
	return p.at - start
}

// text reads a string. Most of it is copied in runs of bytes that stand for themselves.
func (p *parser) text() error {
	if p.peek() != '"' {
		return p.refuse(ReasonSyntax)
	}
	copied := p.at
	for p.at++; p.at < len(p.src); {
		switch c := p.src[p.at]; {
		case c == '"':
			p.at++
			p.dst = append(p.dst, p.src[copied:p.at]...)
			return nil
		case c == '\\':
			p.dst = append(p.dst, p.src[copied:p.at]...)
			if err := p.escape(); err != nil {
				return err
			}
			copied = p.at
		case c < ' ':
			return p.refuse(ReasonSyntax)
		case c < utf8.RuneSelf:
			p.at++
		default:
			r, size := utf8.DecodeRune(p.src[p.at:])
			if r == utf8.RuneError && size == 1 {
				return p.refuse(ReasonInvalidUTF8)
			}
			p.at += size
		}
	}
	return p.refuse(ReasonSyntax)
}

// escape reads one escape sequence, or two that are a surrogate pair.
func (p *parser) escape() error {
	r, size, reason := unescape(p.src[p.at:])
	if reason != "" {
		return p.refuse(reason)
	}
	p.dst = appendEscaped(p.dst, r)
	p.at += size
	return nil
}
