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
	Type   string         `json:"type"`
	Title  string         `json:"title"`
	Status int            `json:"status"`
	Detail string         `json:"detail"`
	Code   string         `json:"code"`
	Errors []ProblemError `json:"errors,omitempty"`
}

// ProblemError is one of the errors that a validation problem lists.
type ProblemError struct {
	// Pointer is a JSON pointer (RFC 6901) into the request body.
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
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
