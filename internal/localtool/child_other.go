//go:build !linux

package localtool

import "syscall"

// dieWithParent has no counterpart outside Linux: there only stop ends the child.
func dieWithParent() *syscall.SysProcAttr {
	return nil
}
