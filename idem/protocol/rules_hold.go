//go:build !prove

package protocol

// switches has nothing to switch: every rule holds.
type switches struct{}

func (switches) off(Rules) bool { return false }
