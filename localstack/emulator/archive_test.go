package emulator

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"
)

func TestAFileIsTakenOutOfAnArchive(t *testing.T) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	files := tar.NewWriter(zipped)
	for name, content := range map[string]string{"package/package.json": "{}", "package/dist/x.js": "let x"} {
		if err := files.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(files.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	if got, err := fileOfArchive(packed.Bytes(), "package/dist/x.js"); err != nil || string(got) != "let x" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := fileOfArchive(packed.Bytes(), "package/none.js"); !errors.Is(err, io.EOF) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := fileOfArchive([]byte("no archive"), "x"); err == nil {
		t.Error("something else counts as an archive")
	}
}
