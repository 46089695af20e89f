package idemctl

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/console"
)

type page struct {
	Write bool   `help:"Allow changes. Without it the console only reads."`
	Port  int    `default:"0" help:"Port of 127.0.0.1; 0 takes a free one."`
	Open  bool   `help:"Also open it in the browser."`
	Actor string `env:"IDEMCTL_ACTOR,USER" help:"Who you are. With changes it goes to the audit log."`
}

// Run implements the command. It ends with an interrupt, and not with the command line's patience.
func (p *page) Run(s *session) (err error) {
	lasting := *s
	lasting.ctx = s.until
	cfg := console.Config{}
	if p.Write {
		if cfg.Actor = strings.TrimSpace(p.Actor); cfg.Actor == "" {
			return &operator.InvalidError{Field: operator.FieldActor, Rule: "must be given where changes are admitted"}
		}
	}
	if cfg.Desk, err = lasting.desk(); err != nil {
		return err
	}
	if s.app.Find != nil {
		cfg.Find = func(ctx context.Context, tenant, id string) (idem.OperationID, error) {
			return s.app.Find(ctx, tenant, id)
		}
	}
	if s.app.Console != nil {
		if err := s.app.Console(&cfg); err != nil {
			return Environment(err)
		}
	}
	listener, err := console.Listen(p.Port)
	if err != nil {
		return &usageError{err.Error(), "Give another port with --port, or leave it out: then a free one is taken."}
	}
	cfg.Address = listener.Addr().String()
	served, err := console.New(cfg)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return p.serve(&lasting, served, listener)
}

// addressed is the answer to console.
type addressed struct {
	Address string `json:"address"`
}

func (p *page) serve(s *session, served *console.Console, listener net.Listener) error {
	answer := addressed{served.Enter()}
	if err := s.show(answer, func(t *table) { t.line("console: %s", answer.Address) }); err != nil {
		return errors.Join(err, listener.Close())
	}
	if p.Open {
		ctx, cancel := context.WithCancel(s.ctx)
		var opening sync.WaitGroup
		defer opening.Wait()
		defer cancel()
		opening.Go(func() { // some openers end with the browser, which waits for the page
			remove, err := browse(ctx, answer.Address)
			defer remove()
			if err != nil && ctx.Err() == nil { // the address is printed
				fmt.Fprintln(s.errs, "idemctl: the browser could not be opened:", err)
			}
			<-ctx.Done() // the browser may read the file after its opener has ended
		})
	}
	return served.Serve(s.ctx, listener)
}

// browse opens an address in the browser, by a file that its owner alone can read: everybody on the machine can read a command
// line. The caller removes the file.
func browse(ctx context.Context, address string) (remove func(), err error) {
	folder, err := os.MkdirTemp("", "idemctl")
	if err != nil {
		return func() {}, err
	}
	remove = func() { _ = os.RemoveAll(folder) } // in the folder for temporary files
	file := filepath.Join(folder, "console.html")
	text := fmt.Sprintf("<!doctype html><meta http-equiv=\"refresh\" content=\"0;url=%s\"><title>idem console</title>", html.EscapeString(address))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return remove, err
	}
	opener := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if opener == nil {
		opener = []string{"xdg-open"}
	}
	return remove, exec.CommandContext(ctx, opener[0], append(opener[1:], file)...).Run() //nolint:gosec // a constant program, and a file that was made here
}
