// Package openapi reads the OpenAPI document of the payments application and holds exchanges against it. It is for tests
// only.
package openapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

// metaSchema is the JSON Schema of OpenAPI 3.1 documents, release 2022-10-07, as the OpenAPI Initiative publishes it under
// the Apache License 2.0. It leaves the schemas in a document to JSON Schema itself.
//
//go:embed openapi-3.1.json
var metaSchema []byte

// location is the URL of the document within its own references.
const location = "file:///openapi.json"

// Document is an OpenAPI document. It is safe for concurrent use.
type Document struct {
	root map[string]any

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema // by JSON pointer
}

// Find returns the payments application's document, functions/api/openapi.yaml of the checkout around the working
// directory.
func Find() (*Document, error) {
	directory, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for {
		text, err := os.ReadFile(filepath.Join(directory, "functions", "api", "openapi.yaml"))
		if err == nil {
			return Parse(text)
		}
		if directory == filepath.Dir(directory) {
			return nil, err
		}
		directory = filepath.Dir(directory)
	}
}

// Parse reads a document in YAML and checks it against OpenAPI's own schema. Every object whose members it lists is closed
// from then on, responses too: what an API says beyond its document is what tests look for.
func Parse(text []byte) (*Document, error) {
	var loaded any
	if err := yaml.Load(text, &loaded); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	raw, err := json.Marshal(loaded)
	if err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	if err := checkForm(parsed); err != nil {
		return nil, err
	}
	d := &Document{root: parsed.(map[string]any), compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	closeObjects(d.root)
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource(location, d.root); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	return d, nil
}

// checkForm holds the document against the meta-schema, which admits objects only.
func checkForm(document any) error {
	meta, err := jsonschema.UnmarshalJSON(bytes.NewReader(metaSchema))
	if err != nil {
		return fmt.Errorf("openapi: meta-schema: %w", err)
	}
	compiler := jsonschema.NewCompiler() // formats stay annotations: a server's URL with variables is no URI
	if err := compiler.AddResource("meta.json", meta); err != nil {
		return fmt.Errorf("openapi: meta-schema: %w", err)
	}
	schema, err := compiler.Compile("meta.json")
	if err != nil {
		return fmt.Errorf("openapi: meta-schema: %w", err)
	}
	if err := schema.Validate(document); err != nil {
		return fmt.Errorf("openapi: no OpenAPI 3.1 document: %w", err)
	}
	return nil
}

// closeObjects forbids members that an object's schema does not list.
func closeObjects(node any) {
	switch node := node.(type) {
	case map[string]any:
		_, lists := node["properties"].(map[string]any)
		_, decided := node["additionalProperties"]
		if node["type"] == "object" && lists && !decided {
			node["additionalProperties"] = false
		}
		for _, child := range node {
			closeObjects(child)
		}
	case []any:
		for _, child := range node {
			closeObjects(child)
		}
	}
}

// at is a place in the document: a node and the JSON pointer (RFC 6901) to it.
type at struct {
	node    any
	pointer string
}

func (p at) member(name string) (at, bool) {
	object, ok := p.node.(map[string]any)
	if !ok {
		return at{}, false
	}
	child, ok := object[name]
	return at{child, p.pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)}, ok
}

// members are those of an object, by name.
func (p at) members() []string {
	object, _ := p.node.(map[string]any)
	return slices.Sorted(maps.Keys(object))
}

func (p at) text(name string) string {
	child, _ := p.member(name)
	s, _ := child.node.(string)
	return s
}

// find walks from the root to a place, and through references on the way.
func (d *Document) find(names ...string) (at, bool) { return d.follow(at{d.root, ""}, names...) }

func (d *Document) follow(p at, names ...string) (at, bool) {
	p = d.resolve(p)
	for _, name := range names {
		child, ok := p.member(name)
		if !ok {
			return at{}, false
		}
		p = d.resolve(child)
	}
	return p, true
}

// resolve follows a reference that has nothing beside it: an object of OpenAPI's, where a schema's may have siblings.
func (d *Document) resolve(p at) at {
	object, _ := p.node.(map[string]any)
	reference, ok := object["$ref"].(string)
	if !ok || len(object) > 1 {
		return p
	}
	target := at{d.root, ""}
	for name := range strings.SplitSeq(strings.TrimPrefix(reference, "#/"), "/") {
		target, ok = target.member(strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
		if !ok {
			return p
		}
	}
	return d.resolve(target)
}

// schema compiles the schema at a place.
func (d *Document) schema(p at) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.compiled[p.pointer]; ok {
		return s, nil
	}
	s, err := d.compiler.Compile(location + "#" + p.pointer)
	if err != nil {
		return nil, fmt.Errorf("openapi: schema at %s: %w", p.pointer, err)
	}
	d.compiled[p.pointer] = s
	return s, nil
}

// validate holds a value against the schema at a place.
func (d *Document) validate(p at, value any) error {
	s, err := d.schema(p)
	if err != nil {
		return err
	}
	return s.Validate(value)
}

// validateJSON is validate for a JSON text.
func (d *Document) validateJSON(p at, text []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return d.validate(p, value)
}

// Validate holds a JSON text against one of the document's schemas, by its name.
func (d *Document) Validate(schema string, text []byte) error {
	p, ok := d.find("components", "schemas", schema)
	if !ok {
		return fmt.Errorf("openapi: no schema %s", schema)
	}
	return d.validateJSON(p, text)
}

// validateText is validate for the value of a header or a parameter, which is read as its schema's type says.
func (d *Document) validateText(p at, text string) error {
	if schema := d.resolve(p); schema.text("type") == "integer" {
		number, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		return d.validate(p, number)
	}
	return d.validate(p, text)
}
