package localtool

import "syscall"

// dieWithParent asks the kernel to kill the child when its starting thread ends, so that a test binary that is killed
// leaves nothing behind.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// runAs makes the child another account's, or this process's where there is none, and has the kernel send it the signal when
// its starting thread ends.
func runAs(as *account, atEnd syscall.Signal) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Pdeathsig: atEnd}
	if as != nil {
		attributes.Credential = &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}
	}
	return attributes
}
