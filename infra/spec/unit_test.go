package spec_test

import (
	"testing"

	"github.com/idem-go/idem-aws/infra/spec"
)

// Capacity is what the rates take at the target, rounded up; a burst raises what is below it, and nothing else.
func TestCapacityCarriesRatesAndBursts(t *testing.T) {
	rates := spec.Range{Min: 100, Max: 1000}
	if got := rates.Capacity(6, 70); got != (spec.Range{Min: 858, Max: 8572}) {
		t.Errorf("%+v", got)
	}
	for burst, want := range map[int]spec.Range{
		0: {Min: 858, Max: 8572}, 600: {Min: 858, Max: 8572}, 1600: {Min: 2286, Max: 8572}, 7000: {Min: 10000, Max: 10000},
	} {
		if got := rates.Capacity(6, 70).AtLeast(burst, 70); got != want {
			t.Errorf("burst %d: %+v, want %+v", burst, got, want)
		}
	}
}
