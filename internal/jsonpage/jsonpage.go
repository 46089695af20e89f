// Package jsonpage compares docs/reference/idemctl-json.md with the types that idemctl prints as JSON, and with what it printed.
// Only tests use it: the library's, and the payments application's.
package jsonpage

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// Application is the heading below which the page has the payments application's answers. What stands before it is the library's.
const Application = "\n## The payments application\n"

// Field is a row of a section.
type Field struct {
	// Kind is the field's type in the page's words: "string", "array of message", "record or null".
	Kind string
	// There is "always" or "if any".
	There string
}

// Page has the fields of each section. A section's name is its heading in lower case.
type Page map[string]map[string]Field

var (
	section = regexp.MustCompile(`(?m)^###? (\w+)\n\| field \| type \| there \| meaning \|\n\|[-|]+\|\n((?:\|.*\n)+)`)
	fieldOf = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]+) \\| (always|if any) \\| [^|]{3,} \\|$")
	linked  = regexp.MustCompile(`\[(\w+)\]\(#\w+\)`)
)

// Read reads the page at path: the library's part, and the payments application's.
func Read(path string) (library, application string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	library, application, ok := strings.Cut(string(text), Application)
	if !ok {
		return "", "", fmt.Errorf("%s has no heading %q", path, strings.TrimSpace(Application))
	}
	return library + "\n", application, nil
}

// Parse returns the sections of a text. A row that is no field is an error.
func Parse(text string) (Page, error) {
	page := Page{}
	for _, found := range section.FindAllStringSubmatch(text, -1) {
		fields := map[string]Field{}
		for _, f := range fieldOf.FindAllStringSubmatch(found[2], -1) {
			fields[f[1]] = Field{linked.ReplaceAllString(f[2], "$1"), f[3]}
		}
		if rows := strings.Count(found[2], "\n"); rows != len(fields) {
			return nil, fmt.Errorf("section %s has %d rows, of which %d are fields", found[1], rows, len(fields))
		}
		page[strings.ToLower(found[1])] = fields
	}
	return page, nil
}

// Types are the types of the answers, by their section.
type Types map[string]reflect.Type

// Fields are a type's fields as JSON has them.
func (t Types) Fields(typ reflect.Type) map[string]Field {
	fields := map[string]Field{}
	for _, f := range reflect.VisibleFields(typ) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || name == "" && (f.Anonymous || !f.IsExported()) { // an embedded struct's fields are visible themselves
			continue
		}
		field := Field{t.kind(f.Type), "always"}
		if options != "" {
			field = Field{strings.TrimSuffix(field.Kind, " or null"), "if any"}
		}
		fields[name] = field
	}
	return fields
}

// kind is a type in the page's words.
func (t Types) kind(typ reflect.Type) string {
	for name, answer := range t {
		if typ == answer {
			return name
		}
	}
	switch {
	case typ == reflect.TypeFor[time.Time]():
		return "time"
	case typ == reflect.TypeFor[json.RawMessage](), typ.Kind() == reflect.Interface:
		return "any"
	case typ.Kind() == reflect.Slice:
		return "array of " + t.kind(typ.Elem())
	case typ.Kind() == reflect.Map:
		return "object of " + t.kind(typ.Elem())
	case typ.Kind() == reflect.Pointer:
		return t.kind(typ.Elem()) + " or null"
	case typ.Kind() == reflect.String:
		return "string"
	case typ.Kind() == reflect.Bool:
		return "boolean"
	case typ.Kind() == reflect.Int, typ.Kind() == reflect.Int64:
		return "integer"
	case typ.Kind() == reflect.Float64:
		return "number"
	}
	return "nothing that the page has a word for: " + typ.String()
}

// Mismatches are where a value, as package json reads it, is not of a kind of the page.
func (p Page) Mismatches(kind string, value any) (wrong []string) {
	if bare, ok := strings.CutSuffix(kind, " or null"); ok {
		if value == nil {
			return nil
		}
		kind = bare
	}
	if of, ok := strings.CutPrefix(kind, "array of "); ok {
		all, ok := value.([]any)
		if !ok {
			return []string{fmt.Sprintf("%v is no array", value)}
		}
		for _, one := range all {
			wrong = append(wrong, p.Mismatches(of, one)...)
		}
		return wrong
	}
	if of, ok := strings.CutPrefix(kind, "object of "); ok {
		all, ok := value.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%v is no object", value)}
		}
		for _, one := range all {
			wrong = append(wrong, p.Mismatches(of, one)...)
		}
		return wrong
	}
	if fields, ok := p[kind]; ok {
		return p.ofObject(kind, fields, value)
	}
	if !isPlain(kind, value) {
		return []string{fmt.Sprintf("%v is no %s", value, kind)}
	}
	return nil
}

// isPlain says whether a value is of a kind that has no fields.
func isPlain(kind string, value any) bool {
	if kind == "any" {
		return true
	}
	switch typed := value.(type) {
	case string:
		_, err := time.Parse(time.RFC3339, typed)
		return kind == "string" || kind == "time" && err == nil && strings.HasSuffix(typed, "Z")
	case float64:
		return kind == "number" || kind == "integer" && typed == float64(int64(typed))
	case bool:
		return kind == "boolean"
	}
	return false
}

func (p Page) ofObject(kind string, fields map[string]Field, value any) (wrong []string) {
	object, ok := value.(map[string]any)
	if !ok {
		return []string{fmt.Sprintf("%v is no %s", value, kind)}
	}
	for name, one := range object {
		f, ok := fields[name]
		if !ok {
			wrong = append(wrong, kind+" has "+name)
			continue
		}
		for _, w := range p.Mismatches(f.Kind, one) {
			wrong = append(wrong, kind+"."+name+": "+w)
		}
	}
	for name, f := range fields {
		if _, ok := object[name]; !ok && f.There == "always" {
			wrong = append(wrong, kind+" lacks "+name)
		}
	}
	return wrong
}
