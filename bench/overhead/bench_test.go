package main

import (
	"net/http"
	"testing"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
)

// BenchmarkRequest is for allocations, which are the same in every run and on every machine: -benchmem counts them, and
// -memprofile with -memprofilerate 1 says where they are made.
func BenchmarkRequest(b *testing.B) {
	all, err := open(b.Context(), dynamotest.Endpoint(b, dynamotest.Dynoxide), paths())
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range all {
		b.Run(s.path.name+"/idem", func(b *testing.B) { s.benchmark(b, s.idem) })
		b.Run(s.path.name+"/hand", func(b *testing.B) { s.benchmark(b, s.hand) })
	}
}

func (s *sides) benchmark(b *testing.B, side http.Handler) {
	b.ReportAllocs()
	for _, key := range s.batch(b.N) {
		if err := post(side, key); err != nil {
			b.Fatal(err)
		}
	}
}
