// Package failing has a test that fails: while it does, no table is written whose source it is.
package failing

import "testing"

func TestFails(t *testing.T) { t.Error("as it should") }
