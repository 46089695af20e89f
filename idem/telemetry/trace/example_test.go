package trace_test

import (
	"fmt"
	"net/http"

	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// A position in a trace is read from a request's headers, is stored as a few bytes, and is written as headers again.
func ExampleFromHeader() {
	h := http.Header{}
	h.Set(trace.ParentHeader, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	h.Set(trace.StateHeader, "congo=t61rcWkgMzE")

	stored := trace.FromHeader(h).Bytes()
	position := trace.FromBytes(stored)
	fmt.Println(len(stored), "bytes")
	fmt.Println(position.Parent())
	fmt.Println(position.State())

	h.Set(trace.ParentHeader, "damaged")
	fmt.Println("a malformed position is none:", trace.FromHeader(h) == "")
	// Output:
	// 42 bytes
	// 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
	// congo=t61rcWkgMzE
	// a malformed position is none: true
}
