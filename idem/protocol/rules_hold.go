//go:build !prove

package protocol

// switches has nothing to switch: every rule holds.
type switches struct{}

func (switches) off(Rule) bool { return false }
