package canonical

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkSum has a target of 100 µs for a JSON body of 10 KB.
func BenchmarkSum(b *testing.B) {
	payment := `{"amount":1999,"currency":"EUR","source":"card_ok","reference":"order-17"}`
	var items []string
	for i := 0; len(strings.Join(items, ",")) < 10<<10; i++ {
		items = append(items, fmt.Sprintf(
			`{"sku":"item-%d","quantity":%d,"price":%d.99,"description":"A thing worth having, \u20ac and all","tags":["a","b"]}`, i, i%7, i))
	}
	order := `{"items":[` + strings.Join(items, ",") + `],"currency":"EUR"}`
	fields, err := NewFields(nil, []string{"/items/0/sku", "/currency"})
	if err != nil {
		b.Fatal(err)
	}
	f := newFingerprinter(b, Config{})
	for _, bench := range []struct {
		name   string
		body   string
		fields *Fields
	}{
		{"payment", payment, nil}, {"10KB", order, nil}, {"10KB/fields", order, fields},
	} {
		b.Run(bench.name, func(b *testing.B) {
			in := jsonInput(bench.body)
			in.Selection.Fields = bench.fields
			b.SetBytes(int64(len(in.Body)))
			b.ReportAllocs()
			for b.Loop() {
				sum(b, f, in)
			}
		})
	}
}
