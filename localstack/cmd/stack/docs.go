package main

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strconv"

	"github.com/idem-go/idem-aws/localstack/docsite"
	"github.com/idem-go/idem-aws/localstack/emulator"
)

// siteFolder is where the documentation site is built, in the checkout.
var siteFolder = filepath.Join(".local", "site")

type docsCommand struct {
	Serve    bool `help:"Serve the site on 127.0.0.1, and build it again when a page changed."`
	DocsPort int  `default:"8765" help:"Port of --serve; 0 takes a free one."`
}

// Run fails where anything is wrong with the site. With --serve it prints what is wrong, and ends on Ctrl-C.
func (c docsCommand) Run(s call) error {
	if err := emulator.Install(s.ctx, s.root, s.out, emulator.MkDocsTool()); err != nil {
		return err
	}
	out := filepath.Join(s.root, siteFolder)
	if !c.Serve {
		return s.out.Step("documentation site in "+siteFolder, func() error { return checkedSite(s.ctx, s.root, out) })
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(c.DocsPort)))
	if err != nil {
		return err
	}
	s.out.Line("http://%s/", listener.Addr())
	server := docsite.Server{Root: s.root, Out: out, Told: func(err error) {
		if err != nil {
			s.out.Line("%v", err)
			return
		}
		s.out.Line("built")
	}}
	return server.Serve(s.ctx, listener)
}

// checkedSite builds the site, and checks the documents as GitHub shows them.
func checkedSite(ctx context.Context, root, out string) error {
	if err := docsite.Build(ctx, root, out); err != nil {
		return err
	}
	documents, err := docsite.Documents(ctx, root)
	if err != nil {
		return err
	}
	wrong := append(docsite.CheckLinks(root, documents), docsite.CheckBlocks(root, documents)...)
	if len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	return nil
}
