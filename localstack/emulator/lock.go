package emulator

import (
	"fmt"
	"os"
	"syscall"
)

// lock takes an exclusive advisory lock on the file at path, waiting for the process that holds it. The kernel gives it back
// when the process dies, so an interrupted install blocks nobody.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}
