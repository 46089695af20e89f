package localtool

import "syscall"

// dieWithParent asks the kernel to kill the child when its starting thread ends, so that a test binary that is killed
// leaves nothing behind.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
