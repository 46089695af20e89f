package idem_test

import (
	"fmt"
	"net/http"

	"github.com/idem-go/idem-aws/idem"
)

// A handler returns a Response, which is stored with its writes and replayed to every retry.
func ExampleJSON() {
	response, err := idem.JSON(http.StatusCreated, map[string]string{"id": "order-17"})
	fmt.Println(response.Status, string(response.Body), err)
	// Output: 201 {"id":"order-17"} <nil>
}
