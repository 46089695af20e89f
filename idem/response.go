package idem

import (
	"encoding/json"
	"fmt"
)

// JSON makes a response with the value's JSON encoding as its body. It returns the encoder's error.
func JSON(status int, value any) (Response, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return Response{}, fmt.Errorf("idem: encode response: %w", err)
	}
	return Response{Status: status, Header: []Field{{Name: "Content-Type", Value: "application/json"}}, Body: body}, nil
}

// Problem is an RFC 9457 problem document with a stable code.
type Problem struct {
	// Type is the URI that names the kind of problem: [ProblemTypePrefix] and Code.
	Type string `json:"type"`
	// Title is a short summary, the same for every problem with this code.
	Title string `json:"title"`
	// Status is the HTTP status.
	Status int `json:"status"`
	// Detail says what is the matter with this request.
	Detail string `json:"detail"`
	// Code is the stable name that programs branch on.
	Code string `json:"code"`
	// Errors are the single errors of a validation; nil where there are none.
	Errors []ProblemError `json:"errors,omitempty"`
}

// ProblemError is one of the errors that a validation problem lists.
type ProblemError struct {
	// Pointer is a JSON pointer (RFC 6901) into the request body.
	Pointer string `json:"pointer"`
	// Detail says what is wrong there.
	Detail string `json:"detail"`
}

// ProblemTypePrefix is what a problem's type URI begins with; its code follows.
const ProblemTypePrefix = "urn:idem:problem:"

// NewProblem makes a problem document whose type is derived from its code.
func NewProblem(status int, code, title, detail string) Problem {
	return Problem{Type: ProblemTypePrefix + code, Title: title, Status: status, Detail: detail, Code: code}
}

// Response renders the problem as application/problem+json.
func (p Problem) Response() Response {
	body, err := json.Marshal(p)
	if err != nil { // strings and ints always encode
		panic(err)
	}
	return Response{Status: p.Status, Header: []Field{{Name: "Content-Type", Value: "application/problem+json"}}, Body: body}
}
