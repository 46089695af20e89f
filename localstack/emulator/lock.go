package emulator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockPoll is how often a lock that another process holds is tried. The kernel's own wait for it can't be interrupted.
const lockPoll = 100 * time.Millisecond

// lock takes an exclusive advisory lock on the file at path. While another process holds it, lock waits for that, after it has
// called waits once, or until ctx ends, which it returns the error of. The kernel gives the lock back when the process dies, so
// an interrupted install blocks nobody.
func lock(ctx context.Context, path string, waits func()) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = flock(file)
	if held(err) {
		waits()
		err = waitFor(ctx, file)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}

func waitFor(ctx context.Context, file *os.File) error {
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			if err := flock(file); !held(err) {
				return err
			}
		}
	}
}

func flock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// held tells whether flock failed because another process has the lock, or because a signal came first.
func held(err error) bool {
	return errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR)
}
