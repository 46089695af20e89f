package openapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// found is the document, which is a valid one: Parse holds it against OpenAPI's own schema.
func found(t *testing.T) *Document {
	t.Helper()
	d, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// walk visits every node of the document.
func walk(p at, visit func(at)) {
	visit(p)
	switch node := p.node.(type) {
	case map[string]any:
		for _, name := range p.members() {
			child, _ := p.member(name)
			walk(child, visit)
		}
	case []any:
		for i, child := range node {
			walk(at{child, fmt.Sprintf("%s/%d", p.pointer, i)}, visit)
		}
	}
}

// Every schema is one of JSON Schema 2020-12, and every example is what its schema admits.
func TestSchemasAndExamples(t *testing.T) {
	d := found(t)
	schemas, examples := 0, 0
	walk(at{d.root, ""}, func(p at) {
		schema, ok := p.member("schema")
		if !ok {
			return
		}
		schemas++
		if _, err := d.schema(schema); err != nil {
			t.Error(err)
		}
		for _, example := range examplesOf(p) {
			examples++
			if err := d.validate(schema, example.node); err != nil {
				t.Errorf("example at %s: %v", example.pointer, err)
			}
		}
	})
	if schemas < 40 || examples < 15 {
		t.Errorf("%d schemas and %d examples were looked at: too few to be all", schemas, examples)
	}
}

func examplesOf(p at) (examples []at) {
	if example, ok := p.member("example"); ok {
		examples = append(examples, example)
	}
	named, _ := p.member("examples")
	for _, name := range named.members() {
		example, _ := named.member(name)
		value, _ := example.member("value")
		examples = append(examples, value)
	}
	return examples
}

// Every reference leads somewhere, and every component is referred to.
func TestReferences(t *testing.T) {
	d := found(t)
	used := map[string]bool{}
	walk(at{d.root, ""}, func(p at) {
		reference := p.text("$ref")
		if reference == "" {
			return
		}
		used[strings.TrimPrefix(reference, "#")] = true
		if _, ok := d.find(strings.Split(strings.TrimPrefix(reference, "#/"), "/")...); !ok {
			t.Errorf("%s refers to %s, which is not there", p.pointer, reference)
		}
	})
	components, _ := d.find("components")
	for _, kind := range components.members() {
		named, _ := components.member(kind)
		for _, name := range named.members() {
			if component, _ := named.member(name); kind != "securitySchemes" && !used[component.pointer] {
				t.Errorf("nothing refers to %s", component.pointer)
			}
		}
	}
}

// Every operation has an id of its own, and every link leads to one, with all of its path's parameters.
func TestLinks(t *testing.T) {
	d := found(t)
	paths := map[string]string{}
	for _, o := range d.Operations() {
		if o.ID == "" || paths[o.ID] != "" {
			t.Errorf("%s %s has the operationId %q", o.Method, o.Path, o.ID)
		}
		paths[o.ID] = o.Path
	}
	links := 0
	walk(at{d.root, ""}, func(p at) {
		named, ok := p.member("links")
		if !ok {
			return
		}
		for _, name := range named.members() {
			link, _ := named.member(name)
			parameters, _ := link.member("parameters")
			path := paths[link.text("operationId")]
			links++
			if path == "" || strings.Contains(path, "{id}") != (parameters.text("id") != "") {
				t.Errorf("%s leads to %q with %v", link.pointer, link.text("operationId"), parameters.node)
			}
		}
	})
	if links == 0 {
		t.Error("there are no links")
	}
}

// What Check is for: each of these is wrong in one way.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	d := found(t)
	const link = `<https://github.com/idem-go/idem-aws/blob/main/docs/semantics.md>; rel="describedby"`
	right := func() Exchange {
		return Exchange{
			Method: "POST", Path: "/v1/transfers", RequestHeader: http.Header{"Idempotency-Key": {`"k"`}}, Status: 201,
			RequestBody: []byte(`{"from":"acct_1","to":"acct_2","amount":500,"currency":"EUR"}`),
			Header: http.Header{
				"Content-Type": {"application/json"}, "Link": {link}, "Idempotency-Status": {"executed"}, "Idempotency-Expires": {"2026-11-22T12:15:00.000Z"},
				"Cache-Control": {"no-store"}, "X-Content-Type-Options": {"nosniff"},
			},
			Body: []byte(`{"id":"tr_CQoLDA0OgAAQID0QFBgcIk","from":"acct_1","to":"acct_2","amount":500,"currency":"EUR","created_at":"2026-11-21T12:15:00.000Z"}`),
		}
	}
	if id, answer, err := d.Check(right()); err != nil || id != "createTransfer" || answer != (Answer{Status: 201}) {
		t.Fatalf("%s, %+v, %v", id, answer, err)
	}
	unavailable := func(x *Exchange) {
		x.Status, x.Header = 503, http.Header{"Content-Type": {"application/problem+json"}, "Link": {link}, "Retry-After": {"2"}, "Cache-Control": {"no-store"}, "X-Content-Type-Options": {"nosniff"}}
		x.Body = []byte(`{"type":"about:blank","title":"t","status":503,"detail":"d","code":"idempotency_store_unavailable"}`)
	}
	noted := func(x *Exchange) {
		*x = Exchange{
			Method: "POST", Path: "/v1/webhooks/provider", RequestHeader: http.Header{"Provider-Signature": {"t=1,v1=2"}}, Status: 204,
			RequestBody: []byte(`{"id":"evt_1"}`), Header: http.Header{"Cache-Control": {"no-store"}, "X-Content-Type-Options": {"nosniff"}},
		}
	}
	var empty Exchange
	noted(&empty)
	if _, _, err := d.Check(empty); err != nil {
		t.Errorf("an answer without a body: %v", err)
	}
	for name, c := range map[string]struct {
		spoil func(*Exchange)
		want  string
	}{
		"status":                       {func(x *Exchange) { x.Status = 202 }, "status 202 is not documented"},
		"unknown path":                 {func(x *Exchange) { x.Path = "/v1/transfer" }, "status 201 is not documented"},
		"other method":                 {func(x *Exchange) { x.Method = "PUT" }, "status 201 is not documented"},
		"media type":                   {func(x *Exchange) { x.Header.Set("Content-Type", "text/plain") }, "media type"},
		"header missing":               {func(x *Exchange) { x.Header.Del("Link") }, "Link is missing"},
		"header twice":                 {func(x *Exchange) { x.Header.Add("Link", link) }, "Link is there 2 times"},
		"header's value":               {func(x *Exchange) { x.Header.Set("Idempotency-Status", "unknown") }, "Idempotency-Status"},
		"header unknown":               {func(x *Exchange) { x.Header.Set("X-Debug", "1") }, "X-Debug is not documented"},
		"member missing":               {func(x *Exchange) { x.Body = []byte(`{"id":"tr_CQoLDA0OgAAQID0QFBgcIk"}`) }, "missing propert"},
		"member unknown":               {func(x *Exchange) { x.Body = slices.Concat(x.Body[:len(x.Body)-1], []byte(`,"memo":""}`)) }, "additional properties 'memo'"},
		"no JSON":                      {func(x *Exchange) { x.Body = []byte("{") }, "body {"},
		"accepted body":                {func(x *Exchange) { x.RequestBody = []byte(`{"from":"acct_1"}`) }, "accepted the body"},
		"accepted without a key":       {func(x *Exchange) { x.RequestHeader = nil }, "accepted without Idempotency-Key"},
		"accepted two keys":            {func(x *Exchange) { x.RequestHeader["Idempotency-Key"] = []string{"a", "b"} }, "accepted Idempotency-Key"},
		"code":                         {func(x *Exchange) { unavailable(x); x.Status = 500; x.Header.Del("Retry-After") }, "status 500"},
		"missing from the application": {func(x *Exchange) { unavailable(x); x.Header.Del("Retry-After") }, "Retry-After is missing"},
		"body where there is none":     {func(x *Exchange) { noted(x); x.Body = []byte("{}") }, "body {} is not documented"},
		"media type of no body":        {func(x *Exchange) { noted(x); x.Header = http.Header{"Content-Type": {"application/json"}} }, "not documented"},
		"no number":                    {func(x *Exchange) { unavailable(x); x.Header.Set("Retry-After", "soon") }, "Retry-After"},
	} {
		x := right()
		c.spoil(&x)
		if _, _, err := d.Check(x); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	gateway := right()
	gateway.Status, gateway.Header, gateway.Body = 503, http.Header{"Content-Type": {"application/json"}}, []byte(`{"message":"Service Unavailable"}`)
	if _, _, err := d.Check(gateway); err != nil {
		t.Errorf("the gateway's own answer: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"no YAML":           "a: [",
		"a name twice":      "openapi: 3.1.0\nopenapi: 3.1.0",
		"no object":         "- openapi",
		"no OpenAPI":        "openapi: 3.1.0",
		"an unknown member": "openapi: 3.1.0\ninfo: {title: t, version: v}\npaths: {/a: {fetch: {}}}",
	} {
		if d, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s: %+v", name, d.root)
		}
	}
}
