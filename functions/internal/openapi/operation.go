package openapi

import (
	"strconv"
	"strings"
)

// Operation is a method of a path.
type Operation struct {
	// ID is the operationId; Path is the template.
	ID, Method, Path string
	// Protection is what x-idempotency says; nil where it is absent.
	Protection *Protection
	Answers    []Answer
}

// Protection is x-idempotency: how an operation is protected.
type Protection struct{ Operation, Kind, Policy, Retention string }

// Answer is a status, with the code of a problem or, for a success, none.
type Answer struct {
	Status int
	Code   string
}

// Operations lists what the document has, by path and method.
func (d *Document) Operations() []Operation {
	paths, _ := d.find("paths")
	var operations []Operation
	for _, path := range paths.members() {
		item, _ := d.follow(paths, path)
		for _, method := range item.members() {
			operation, _ := d.follow(item, method)
			operations = append(operations, Operation{
				ID: operation.text("operationId"), Method: strings.ToUpper(method), Path: path,
				Protection: protection(operation), Answers: d.answers(operation, "responses"),
			})
		}
	}
	return operations
}

// Unrouted lists what is answered for every other path, and for every other method of a path.
func (d *Document) Unrouted() []Answer { return d.answers(at{d.root, ""}, "x-unrouted") }

func protection(operation at) *Protection {
	p, ok := operation.member("x-idempotency")
	if !ok {
		return nil
	}
	return &Protection{Operation: p.text("operation"), Kind: p.text("kind"), Policy: p.text("policy"), Retention: p.text("retention")}
}

// answers lists the responses under a member. The codes of a problem are an enum beside its reference.
func (d *Document) answers(p at, member string) []Answer {
	responses, _ := d.follow(p, member)
	var answers []Answer
	for _, name := range responses.members() {
		status, _ := strconv.Atoi(name) // "default" is 0, and no answer has that
		codes, problem := d.follow(responses, name, "content", mediaProblem, "schema", "properties", "code", "enum")
		if !problem {
			answers = append(answers, Answer{Status: status})
			continue
		}
		for _, code := range codes.node.([]any) {
			code, _ := code.(string)
			answers = append(answers, Answer{Status: status, Code: code})
		}
	}
	return answers
}

// route finds the operation that a request is for. Its place is that of the operation, or of what is answered where there
// is none; the template is "" for an unknown path.
func (d *Document) route(method, path string) (place at, template string, ok bool) {
	paths, _ := d.find("paths")
	for _, candidate := range paths.members() {
		if !matches(candidate, path) {
			continue
		}
		place, ok := d.follow(paths, candidate, strings.ToLower(method))
		return place, candidate, ok
	}
	return at{}, "", false
}

// matches says whether a path is one of a template's.
func matches(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if variable := strings.HasPrefix(want[i], "{"); variable && got[i] == "" || !variable && want[i] != got[i] {
			return false
		}
	}
	return true
}
