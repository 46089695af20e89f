package idemtest_test

import (
	"context"
	"fmt"
)

// printing stands for the *testing.T of a test, which an example has not.
type printing struct{}

var t printing

func (printing) Helper()                           {}
func (printing) Context() context.Context          { return context.Background() }
func (printing) Logf(format string, args ...any)   { fmt.Printf(format+"\n", args...) }
func (printing) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (printing) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
