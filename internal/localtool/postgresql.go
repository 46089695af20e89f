package localtool

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ErrNoPostgreSQL says that no server was found for the tests that need one.
var ErrNoPostgreSQL = errors.New("a PostgreSQL server is needed (not found; POSTGRESQL names the folder of its programs, and Debian's package is postgresql)")

// PostgreSQLVariable names the environment variable that holds the folder of a server's programs: initdb and postgres.
const PostgreSQLVariable = "POSTGRESQL"

// PostgreSQLPrograms is the folder of a server's programs: the one that POSTGRESQL names, else that of PATH, else Debian's
// newest. It returns [ErrNoPostgreSQL] where there is none.
func PostgreSQLPrograms() (string, error) {
	if named := os.Getenv(PostgreSQLVariable); named != "" {
		return programsIn(named)
	}
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if folder, err := programsIn(filepath.Dir(initdb)); err == nil {
			return folder, nil
		}
	}
	installed, err := filepath.Glob(debianPrograms)
	if err != nil {
		return "", err
	}
	slices.SortFunc(installed, func(a, b string) int { return debianVersion(b) - debianVersion(a) })
	for _, folder := range installed {
		if folder, err := programsIn(folder); err == nil {
			return folder, nil
		}
	}
	return "", ErrNoPostgreSQL
}

// debianPrograms are the folders of Debian's packages, which are not on PATH.
const debianPrograms = "/usr/lib/postgresql/*/bin"

func debianVersion(folder string) int {
	version, _ := strconv.Atoi(filepath.Base(filepath.Dir(folder))) // what is no number sorts last
	return version
}

func programsIn(folder string) (string, error) {
	for _, program := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(folder, program)); err != nil {
			return "", ErrNoPostgreSQL
		}
	}
	return folder, nil
}

// PostgreSQL is a running server of this process, empty and with one user.
type PostgreSQL struct {
	// Address is the host and port, on 127.0.0.1.
	Address string

	password string
	child    *child
	scratch  string
}

// postgresUser is the database's one user, and the account that the server runs as where this process is root's.
const postgresUser = "postgres"

// OpenPostgreSQL starts a server with a data folder of its own on a free port of 127.0.0.1, and waits until it answers. It
// does not write through to the disk. The caller stops it; on Linux it also ends when this process ends in any other way.
// It returns [ErrNoPostgreSQL] where no server is installed.
func OpenPostgreSQL(ctx context.Context) (*PostgreSQL, error) {
	programs, err := PostgreSQLPrograms()
	if err != nil {
		return nil, err
	}
	account, err := unprivileged()
	if err != nil {
		return nil, fmt.Errorf("open PostgreSQL: %w", err)
	}
	scratch, err := os.MkdirTemp("", "postgresql-")
	if err != nil {
		return nil, fmt.Errorf("open PostgreSQL: %w", err)
	}
	server := &PostgreSQL{scratch: scratch, password: rand.Text()}
	if err = server.initialize(ctx, programs, account); err == nil {
		err = server.start(ctx, programs, account)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open PostgreSQL: %w", err), os.RemoveAll(scratch))
	}
	return server, nil
}

// account is whom the server runs as; nil is the account of this process.
type account struct{ uid, gid int }

// unprivileged is an account for the server: PostgreSQL refuses to run as root.
func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	found, err := user.Lookup(postgresUser)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root, and there is no other account for it: %w", err)
	}
	uid, err := strconv.Atoi(found.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(found.Gid)
	return &account{uid, gid}, err
}

func (s *PostgreSQL) data() string { return filepath.Join(s.scratch, "data") }

// initialize makes the data folder. The password goes over the loopback as it is: a client of package crypto spends a tenth of a
// second on a challenge under the race detector, for each connection.
func (s *PostgreSQL) initialize(ctx context.Context, programs string, as *account) error {
	secret := filepath.Join(s.scratch, "password")
	if err := os.WriteFile(secret, []byte(s.password), 0o600); err != nil {
		return err
	}
	if as != nil {
		if err := errors.Join(os.Chown(s.scratch, as.uid, as.gid), os.Chown(secret, as.uid, as.gid)); err != nil {
			return err
		}
	}
	command := exec.CommandContext(ctx, filepath.Join(programs, "initdb"), "--pgdata", s.data(), "--username", postgresUser,
		"--pwfile", secret, "--auth", "password", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	command.Dir, command.Env, command.SysProcAttr = s.scratch, childEnvironment(), runAs(as, syscall.SIGKILL)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, Tail(string(output)))
	}
	return nil
}

// start starts the server on a free port.
func (s *PostgreSQL) start(ctx context.Context, programs string, as *account) error {
	return onFreePort(func(port int) error {
		command := exec.Command(filepath.Join(programs, "postgres"), "-D", s.data(), "-F",
			"-c", "listen_addresses=127.0.0.1", "-c", "port="+strconv.Itoa(port), "-c", "unix_socket_directories=")
		command.Dir, command.Env, command.SysProcAttr = s.scratch, childEnvironment(), runAs(as, syscall.SIGQUIT)
		c, err := startChild(command)
		if err != nil {
			return err
		}
		if err := c.waitReady(ctx, s.probe); err != nil {
			c.stop()
			return err
		}
		s.child, s.Address = c, "127.0.0.1:"+strconv.Itoa(port)
		return nil
	})
}

// probe reads what the server says of itself: the last line of its pid file.
func (s *PostgreSQL) probe(context.Context) error {
	told, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(told)), "\n")
	if state := strings.TrimSpace(lines[len(lines)-1]); state != "ready" {
		return fmt.Errorf("the server is %q", state)
	}
	return nil
}

// URL is the connection string of a database, without encryption. The server has one called postgres. An address is where to
// connect instead, such as a proxy's; "" is the server itself.
func (s *PostgreSQL) URL(address, database string) string {
	if address == "" {
		address = s.Address
	}
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword(postgresUser, s.password), Host: address, Path: "/" + database, RawQuery: "sslmode=disable",
	}).String()
}

// Stop ends the server and removes its data. It may be called more than once.
func (s *PostgreSQL) Stop() {
	s.child.end(syscall.SIGQUIT) // at once, and its processes with it
	_ = os.RemoveAll(s.scratch)  // what is left is the temporary folder's
}
