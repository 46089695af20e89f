//go:build !linux

package localtool

import "syscall"

// dieWithParent has no counterpart outside Linux: there only stop ends the child.
func dieWithParent() *syscall.SysProcAttr {
	return nil
}

// runAs has no counterpart outside Linux: there the child is this process's account's.
func runAs(*account, syscall.Signal) *syscall.SysProcAttr {
	return nil
}
