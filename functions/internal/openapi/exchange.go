package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const (
	mediaJSON    = "application/json"
	mediaProblem = "application/problem+json"
)

// Exchange is a request and its answer.
type Exchange struct {
	Method, Path  string
	RequestHeader http.Header
	RequestBody   []byte
	Status        int
	Header        http.Header
	Body          []byte
}

// carried are headers that belong to HTTP itself and that no document lists.
var carried = []string{"Content-Type", "Content-Length", "Date"}

// Check holds an exchange against the document: the status is documented, and so are the headers that are there; those
// that must be there are; the body is what its media type says; and what was accepted was what the document admits. It
// returns the operation's id, "" where none was asked for, and the answer; the error joins all that is wrong.
func (d *Document) Check(x Exchange) (string, Answer, error) {
	method := x.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	operation, template, routed := d.route(method, x.Path)
	response, ok := d.response(operation, template, routed, x.Status)
	answer := Answer{Status: x.Status, Code: code(x)}
	if !ok {
		return operation.text("operationId"), answer, fmt.Errorf("openapi: %s %s: status %d is not documented", x.Method, x.Path, x.Status)
	}
	err := errors.Join(d.checkHeaders(response, x), d.checkBody(response, x))
	if routed && x.Status < http.StatusBadRequest {
		err = errors.Join(err, d.checkRequest(operation, x))
	}
	if err != nil {
		err = fmt.Errorf("openapi: %s %s, status %d: %w", x.Method, x.Path, x.Status, err)
	}
	return operation.text("operationId"), answer, err
}

func (d *Document) response(operation at, template string, routed bool, status int) (at, bool) {
	switch name := strconv.Itoa(status); {
	case routed:
		return d.follow(operation, "responses", name)
	case template == "" && status != http.StatusNotFound, template != "" && status != http.StatusMethodNotAllowed:
		return at{}, false
	default:
		return d.find("x-unrouted", name)
	}
}

// code is that of a problem.
func code(x Exchange) string {
	var problem struct{ Code string }
	if mediaType(x.Header) != mediaProblem || json.Unmarshal(x.Body, &problem) != nil {
		return ""
	}
	return problem.Code
}

func mediaType(h http.Header) string {
	parsed, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return parsed
}

func (d *Document) checkHeaders(response at, x Exchange) error {
	var wrong []error
	documented, _ := d.follow(response, "headers")
	known := slices.Clone(carried)
	for _, name := range documented.members() {
		known = append(known, http.CanonicalHeaderKey(name))
		header, _ := d.follow(documented, name)
		values := x.Header.Values(name)
		switch required, _ := header.member("required"); {
		case len(values) > 1:
			wrong = append(wrong, fmt.Errorf("%s is there %d times", name, len(values)))
		case len(values) == 1:
			schema, _ := header.member("schema")
			if err := d.validateText(schema, values[0]); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
			}
		case required.node == true, header.text("x-required-of") != "" && header.text("x-required-of") == mediaType(x.Header):
			wrong = append(wrong, fmt.Errorf("%s is missing", name))
		}
	}
	for name := range x.Header {
		if !slices.Contains(known, name) {
			wrong = append(wrong, fmt.Errorf("%s is not documented", name))
		}
	}
	return errors.Join(wrong...)
}

func (d *Document) checkBody(response at, x Exchange) error {
	if x.Method == http.MethodHead {
		return nil
	}
	if _, has := response.member("content"); !has {
		if len(x.Body) > 0 || mediaType(x.Header) != "" {
			return fmt.Errorf("body %s is not documented", x.Body)
		}
		return nil
	}
	schema, ok := d.follow(response, "content", mediaType(x.Header))
	if ok {
		schema, ok = schema.member("schema")
	}
	if !ok {
		return fmt.Errorf("media type %q is not documented", x.Header.Get("Content-Type"))
	}
	if err := d.validateJSON(schema, x.Body); err != nil {
		return fmt.Errorf("body %s: %w", x.Body, err)
	}
	return nil
}

// checkRequest holds an accepted request against what the document admits.
func (d *Document) checkRequest(operation at, x Exchange) error {
	var wrong []error
	if body, ok := d.follow(operation, "requestBody", "content", mediaJSON); ok {
		schema, _ := body.member("schema")
		if err := d.validateJSON(schema, x.RequestBody); err != nil {
			wrong = append(wrong, fmt.Errorf("accepted the body %s: %w", x.RequestBody, err))
		}
	}
	parameters, _ := d.follow(operation, "parameters")
	list, _ := parameters.node.([]any)
	for i := range list {
		p := d.resolve(at{list[i], parameters.pointer + "/" + strconv.Itoa(i)})
		values := x.RequestHeader.Values(p.text("name"))
		required, _ := p.member("required")
		schema, _ := p.member("schema")
		switch {
		case p.text("in") != "header":
		case len(values) == 0 && required.node == true:
			wrong = append(wrong, fmt.Errorf("accepted without %s", p.text("name")))
		case len(values) > 0:
			if err := d.validateText(schema, strings.Join(values, ", ")); err != nil {
				wrong = append(wrong, fmt.Errorf("accepted %s: %w", p.text("name"), err))
			}
		}
	}
	return errors.Join(wrong...)
}
