package spec_test

import (
	"fmt"

	"github.com/idem-go/idem-aws/infra/spec"
)

// What a table of orders needs, of which each operation writes two units and reads one, at 100 to 1,000 operations a second
// that use 70 % of the capacity.
func ExampleRange_Capacity() {
	order := spec.Units{Writes: 2, Reads: 1}
	rates := spec.Range{Min: 100, Max: 1000}
	fmt.Println("writes:", rates.Capacity(order.Writes, 70))
	fmt.Println("reads:", rates.Capacity(order.Reads, 70))
	// Output:
	// writes: {286 2858}
	// reads: {143 1429}
}

// The functions of an application, for a tool that deploys them.
func ExampleFunctions() {
	for _, f := range spec.Functions(spec.Choices{Relay: true}) {
		fmt.Println(f.Role, f.Timeout, "reads the stream:", f.ReadsStream())
	}
	// Output:
	// api 28s reads the stream: false
	// worker 1m0s reads the stream: false
	// sweep 55s reads the stream: false
	// reconcile 55s reads the stream: false
	// relay 30s reads the stream: true
}
