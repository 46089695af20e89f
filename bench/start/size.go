package main

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
)

// counter counts what is written.
type counter int64

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// sizes returns how large a binary is, and how large the zip that Lambda is given of it, in bytes.
func sizes(path string) (size, zipped int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	var archived counter
	archive := zip.NewWriter(&archived)
	entry, err := archive.Create("bootstrap")
	if err != nil {
		return 0, 0, err
	}
	if size, err = io.Copy(entry, file); err != nil {
		return 0, 0, fmt.Errorf("zip %s: %w", path, err)
	}
	err = archive.Close()
	return size, int64(archived), err
}
