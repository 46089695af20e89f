// Package jmespath reads the keys of functions by JMESPath (jmespath.org, as its community edition specifies it).
package jmespath

import (
	"fmt"

	"github.com/jmespath-community/go-jmespath"

	"github.com/idem-go/idem-aws/idem/function"
)

// Key makes a key of the values that the expressions find in the input, in that order: "detail.id". A list is no part of
// a key, so a key of several parts has several expressions, not a multi-select.
//
// Numbers that a double does not hold keep their digits and can be a part of a key, but JMESPath can't compare them or
// calculate with them.
func Key(expressions ...string) function.Key {
	return function.Expressions(compile, expressions...)
}

func compile(expression string) (function.Expression, error) {
	compiled, err := jmespath.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("must be JMESPath: %w", err)
	}
	return compiled.Search, nil
}
