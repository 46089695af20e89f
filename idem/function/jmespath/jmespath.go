// Package jmespath reads the keys of functions by JMESPath expressions, as the community edition at jmespath.org
// specifies them. [Key] returns a function.Key for the Config of package function.
//
// Use it where a key is picked by a filter or a projection, or where expressions are taken over from Powertools. A
// plain member of a JSON input needs only function.JSONPointer, which adds no module to a build.
package jmespath

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jmespath-community/go-jmespath"
	"github.com/jmespath-community/go-jmespath/pkg/parsing"

	"github.com/idem-go/idem-aws/idem/function"
)

// Key makes a key of the values that the expressions find in the input, in that order: "detail.id". A list is no part of
// a key, so a key of several parts has several expressions, not a multi-select.
//
// The same input always has the same key: keys, values and items of an object come in the order of its names, which
// JMESPath leaves open, and "*" over an object is refused by function.New; values(@) is the same, in order.
//
// Numbers that a double does not hold keep their digits and can be a part of a key, but JMESPath can't compare them or
// calculate with them.
func Key(expressions ...string) function.Key {
	return function.Expressions(compile, expressions...)
}

func compile(expression string) (find function.Expression, err error) {
	defer guard(&err)
	node, err := jmespath.NewParser().Parse(expression)
	if err != nil {
		return nil, fmt.Errorf("must be JMESPath: %w", err)
	}
	if takesAnyOrder(node) {
		return nil, errors.New("must not have \"*\" over an object, whose values are in no order: values(@) has them by name")
	}
	compiled, err := jmespath.Compile(expression, pure...)
	if err != nil {
		return nil, fmt.Errorf("must be JMESPath: %w", err)
	}
	return func(document any) (part any, err error) {
		defer guard(&err)
		return compiled.Search(document)
	}, nil
}

// guard makes an error of a panic: the library's parser panics on some expressions, and an input, which anybody may send,
// must not end the process.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("must be JMESPath: %v", p)
	}
}

// takesAnyOrder finds "*" over an object, which the interpreter takes in the order of a Go map: another one each time.
func takesAnyOrder(node parsing.ASTNode) bool {
	return node.NodeType == parsing.ASTValueProjection || slices.ContainsFunc(node.Children, takesAnyOrder)
}
