package main

import (
	"testing"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/docs/examples/internal/protection"
	"github.com/idem-go/idem-aws/docs/examples/internal/shop"
)

func TestProtectionTakesThirteenLines(t *testing.T) { check.Lines(t, "main.go", 13) }

func TestAnOrderIsPaidOnce(t *testing.T) {
	check.Router(t, newService(protection.New(), new(shop.Till)))
}
