package pgstore

import (
	"bytes"
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// column is one attribute of a row. The same list of columns writes a row and reads it.
type column[Row any] struct {
	name string
	// field points at what the column holds: a pointer that pgx can scan into, or one of the types below.
	field func(*Row) any
}

// names lists the columns as SQL does.
func names[Row any](columns []column[Row]) string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = c.name
	}
	return strings.Join(all, ", ")
}

// targets are what a row is scanned into.
func targets[Row any](columns []column[Row], row *Row) []any {
	all := make([]any, len(columns))
	for i, c := range columns {
		all[i] = c.field(row)
	}
	return all
}

// values are what is written. They share nothing with the row, so they can be kept.
func values[Row any](columns []column[Row], row *Row) ([]any, error) {
	all := make([]any, len(columns))
	for i, c := range columns {
		field := c.field(row)
		if valuer, ok := field.(driver.Valuer); ok {
			var err error
			if all[i], err = valuer.Value(); err != nil {
				return nil, fmt.Errorf("column %s: %w", c.name, err)
			}
			continue
		}
		all[i] = dereferenced(field)
	}
	return all, nil
}

func dereferenced(field any) any {
	switch p := field.(type) {
	case *string:
		return *p
	case *int:
		return *p
	case *int64:
		return *p
	case *bool:
		return *p
	}
	panic(fmt.Sprintf("pgstore: a column of type %T", field)) // a mistake in the lists of columns, which every test finds
}

// word is a column of a type that is a string: a state, a key, an id.
type word[T ~string] struct{ p *T }

func (c word[T]) Value() (driver.Value, error) { return string(*c.p), nil }

func (c word[T]) Scan(from any) error {
	text, ok := from.(string)
	if !ok {
		return fmt.Errorf("%T is no text", from)
	}
	*c.p = T(text)
	return nil
}

func wordOf[T ~string](p *T) word[T] { return word[T]{p} }

// note is a free text, which comes from anywhere and is read by people. What a column can't hold of it is replaced: evidence
// is never refused because of its description.
type note struct{ p *string }

func (c note) Value() (driver.Value, error) {
	return strings.ReplaceAll(strings.ToValidUTF8(*c.p, "\uFFFD"), "\x00", "\uFFFD"), nil
}

func (c note) Scan(from any) error { return wordOf(c.p).Scan(from) }

// instant is a time in milliseconds; null is the zero time.
type instant struct{ p *time.Time }

func (c instant) Value() (driver.Value, error) {
	if c.p.IsZero() {
		return nil, nil
	}
	return c.p.UTC().Truncate(time.Millisecond), nil
}

func (c instant) Scan(from any) error {
	switch at := from.(type) {
	case nil:
		*c.p = time.Time{}
	case time.Time:
		*c.p = at.UTC()
	default:
		return fmt.Errorf("%T is no time", from)
	}
	return nil
}

// span is a duration in milliseconds.
type span struct{ p *time.Duration }

func (c span) Value() (driver.Value, error) { return c.p.Milliseconds(), nil }

func (c span) Scan(from any) error {
	ms, ok := from.(int64)
	if !ok {
		return fmt.Errorf("%T is no number of milliseconds", from)
	}
	*c.p = time.Duration(ms) * time.Millisecond
	return nil
}

// blob is any bytes; null is none.
type blob struct{ p *[]byte }

func (c blob) Value() (driver.Value, error) { return bytes.Clone(*c.p), nil }

func (c blob) Scan(from any) error {
	raw, err := bytesOf(from)
	*c.p = bytes.Clone(raw)
	return err
}

// fixed is as many bytes as the array has.
type fixed []byte

func (c fixed) Value() (driver.Value, error) { return bytes.Clone(c), nil }

func (c fixed) Scan(from any) error {
	raw, err := bytesOf(from)
	if err == nil && len(raw) != len(c) {
		err = fmt.Errorf("%d bytes, want %d", len(raw), len(c))
	}
	copy(c, raw)
	return err
}

func bytesOf(from any) ([]byte, error) {
	raw, ok := from.([]byte)
	if !ok && from != nil {
		return nil, fmt.Errorf("%T is no bytes", from)
	}
	return raw, nil
}

// position is a position in a trace.
type position struct{ p *trace.Context }

func (c position) Value() (driver.Value, error) { return c.p.Bytes(), nil }

func (c position) Scan(from any) error {
	raw, err := bytesOf(from)
	*c.p = trace.FromBytes(raw)
	return err
}

// header is the header of a response, in order. A value may be any bytes, which text can't be: so both are quoted.
type header struct{ p *[]storage.Field }

func (c header) Value() (driver.Value, error) {
	var text strings.Builder
	for _, field := range *c.p {
		fmt.Fprintf(&text, "%s: %s\n", strconv.Quote(field.Name), strconv.Quote(field.Value))
	}
	return text.String(), nil
}

func (c header) Scan(from any) error {
	text, ok := from.(string)
	if !ok {
		return fmt.Errorf("%T is no header", from)
	}
	*c.p = nil
	for line := range strings.Lines(text) {
		quoted, err := strconv.QuotedPrefix(line)
		if err != nil {
			return err
		}
		name, err := strconv.Unquote(quoted)
		if err != nil {
			return err
		}
		value, err := strconv.Unquote(strings.TrimSpace(strings.TrimPrefix(line[len(quoted):], ":")))
		if err != nil {
			return err
		}
		*c.p = append(*c.p, storage.Field{Name: name, Value: value})
	}
	return nil
}

// evidence is what is kept of a provider's answer; null is nothing kept, and an empty answer is one.
type evidence struct{ p **storage.Kept }

func (c evidence) Value() (driver.Value, error) {
	if *c.p == nil {
		return nil, nil
	}
	return append([]byte{}, (*c.p).Evidence...), nil
}

func (c evidence) Scan(from any) error {
	raw, err := bytesOf(from)
	if from == nil || err != nil {
		return err
	}
	c.kept().Evidence = bytes.Clone(raw)
	return nil
}

func (c evidence) kept() *storage.Kept {
	if *c.p == nil {
		*c.p = &storage.Kept{}
	}
	return *c.p
}

// reference is the provider's name in kept evidence; null where none is kept.
type reference struct{ p **storage.Kept }

func (c reference) Value() (driver.Value, error) {
	if *c.p == nil {
		return nil, nil
	}
	return note{&(*c.p).Reference}.Value()
}

func (c reference) Scan(from any) error {
	if from == nil {
		return nil
	}
	return note{&evidence(c).kept().Reference}.Scan(from)
}
