package idem_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
)

// The margins around a handler take 3.5 s by default, and half of a time that is shorter than twice that. A function that has no
// time left between them does not start, and the error says what would do; one with Lambda's default of 3 s does.
func TestAFunctionTimeoutThatLeavesNoTimeIsRefusedAtStart(t *testing.T) {
	mem, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, timeout := range []time.Duration{-time.Second, time.Millisecond, 750 * time.Millisecond} {
		var broken *idem.ConfigError
		_, err := idem.New(mem, idem.Config{FunctionTimeout: timeout})
		if !errors.As(err, &broken) || broken.Field != "Config.FunctionTimeout" || broken.Value != timeout || !strings.Contains(broken.Rule, "must") {
			t.Errorf("%v: %v, want Config.FunctionTimeout refused", timeout, err)
		}
	}
	for _, cfg := range []idem.Config{
		{}, {FunctionTimeout: 800 * time.Millisecond}, {FunctionTimeout: 3 * time.Second}, {FunctionTimeout: 28 * time.Second},
		{FunctionTimeout: 2 * time.Second, HandlerMargin: time.Second},
	} {
		if _, err := idem.New(mem, cfg); err != nil {
			t.Error(err)
		}
	}
}
