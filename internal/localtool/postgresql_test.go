package localtool_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// A server answers on this machine's own address, and is gone with its data when it was stopped.
func TestOnPostgreSQLAServerStartsAndStops(t *testing.T) {
	if _, err := localtool.PostgreSQLPrograms(); errors.Is(err, localtool.ErrNoPostgreSQL) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	temporary, err := os.MkdirTemp("", "localtool-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(temporary) })
	if err := os.Chmod(temporary, 0o755); err != nil { // root's server is another account's
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temporary)
	server, err := localtool.OpenPostgreSQL(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(server.Address, "127.0.0.1:") || !strings.Contains(server.URL("", "postgres"), "@"+server.Address+"/") {
		t.Errorf("the address is %s", server.Address)
	}
	connection, err := net.Dial("tcp", server.Address)
	if err != nil {
		t.Fatal(err)
	}
	connection.Close()
	server.Stop()
	server.Stop()
	if _, err := net.Dial("tcp", server.Address); err == nil {
		t.Error("the server answers after it was stopped")
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}

func TestPostgreSQLIsNamed(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(localtool.PostgreSQLVariable, folder)
	if _, err := localtool.OpenPostgreSQL(t.Context()); !errors.Is(err, localtool.ErrNoPostgreSQL) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, want ErrNoPostgreSQL in one line", err)
	}
	for _, program := range []string{"initdb", "postgres"} {
		if err := os.WriteFile(filepath.Join(folder, program), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := localtool.PostgreSQLPrograms(); err != nil || found != folder {
		t.Errorf("%s, %v", found, err)
	}
	t.Setenv(localtool.PostgreSQLVariable, "")
	t.Setenv("PATH", folder)
	if found, err := localtool.PostgreSQLPrograms(); err != nil || found != folder {
		t.Errorf("on PATH: %s, %v", found, err)
	}
}
