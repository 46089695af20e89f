package header_test

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/idem-go/idem-aws/idem/header"
)

func ExampleParseKey() {
	for _, line := range []string{`"order-17"`, `order-17`, `"order-17", "order-17"`, ``} {
		h := http.Header{header.NameKey: {line}}
		key, err := header.ParseKey(h.Values(header.NameKey), header.KeyRule{Syntax: header.SyntaxStructured})
		var invalid *header.InvalidError
		switch {
		case errors.Is(err, header.ErrMissing), errors.Is(err, header.ErrEmpty):
			fmt.Println("no key: the policy decides")
		case errors.As(err, &invalid):
			fmt.Println("400:", invalid.Reason)
		default:
			fmt.Println("key", key)
		}
	}
	// Output:
	// key order-17
	// key order-17
	// 400: not a single quoted string (RFC 9651 section 3.3.3)
	// no key: the policy decides
}
