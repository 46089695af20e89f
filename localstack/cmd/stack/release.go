package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/idem-go/idem-aws/internal/clients"
	"github.com/idem-go/idem-aws/localstack/emulator"
	"github.com/idem-go/idem-aws/localstack/release"
)

// releaseFolder is where the files of releases are written, in the checkout.
var releaseFolder = filepath.Join(".local", "release")

type releaseCheckCommand struct{}

// checkedVersion is what a checkout is called that is not released.
const checkedVersion = "v0.0.0-check"

// Run fails where the modules of this checkout could not be installed from a release, or where idemctl is not reproducible.
func (releaseCheckCommand) Run(s call) error { return s.checkRelease(checkedVersion) }

type releaseBinariesCommand struct {
	Version string `required:"" help:"The release, such as v0.1.0."`
}

// Run builds what is attached to a release, from its tag. It fails where the checkout is not that tag's commit, and where the tag
// was made by hand.
func (c releaseBinariesCommand) Run(s call) error {
	if err := release.Ready(s.root, c.Version); err != nil {
		return err
	}
	if err := release.Tagged(s.ctx, s.root, c.Version); err != nil {
		return err
	}
	if err := release.Made(s.root, c.Version); err != nil {
		return err
	}
	return s.releasing(c.Version, func(build release.Build) error { return s.binaries(build, release.Platforms()...) })
}

type releaseClientsCommand struct{}

// Run builds the npm package and the wheel as they are published, and installs each once.
func (releaseClientsCommand) Run(s call) error {
	if err := emulator.Install(s.ctx, s.root, s.out, emulator.TypeScriptTool(), emulator.PythonClientTool()); err != nil {
		return err
	}
	out := filepath.Join(s.root, releaseFolder, "clients")
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	for _, client := range []struct {
		name, suffix, folder string
		build                func(context.Context, string) (*clients.Client, error)
	}{
		{"TypeScript", ".tgz", "npm", clients.TypeScript},
		{"Python", ".whl", "pypi", clients.Python},
	} {
		err := s.out.Step("the "+client.name+" client in "+filepath.Join(releaseFolder, "clients", client.folder), func() error {
			return packageOf(s.ctx, client.build, client.suffix, filepath.Join(out, client.folder))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// packageOf builds a client and keeps its package.
func packageOf(ctx context.Context, build func(context.Context, string) (*clients.Client, error), suffix, out string) error {
	scratch, err := os.MkdirTemp("", "client-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if _, err := build(ctx, scratch); err != nil {
		return err
	}
	packages, err := filepath.Glob(filepath.Join(scratch, "*"+suffix))
	if err != nil || len(packages) != 1 {
		return fmt.Errorf("the build made %d files *%s (%v)", len(packages), suffix, err)
	}
	content, err := os.ReadFile(packages[0])
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, filepath.Base(packages[0])), content, 0o644)
}

type releaseCommand struct {
	Version string `required:"" help:"The release, such as v0.1.0."`
}

// Run checks the release, then makes its commit and tags, and prints how to publish them. It pushes nothing.
func (c releaseCommand) Run(s call) error {
	if err := release.Ready(s.root, c.Version); err != nil {
		return err
	}
	commit, err := release.Untagged(s.ctx, s.root, c.Version)
	if err != nil {
		return err
	}
	if err := s.checkRelease(c.Version); err != nil {
		return err
	}
	if err := release.Tag(s.ctx, s.root, commit, c.Version, filepath.Join(s.root, releaseFolder, "commit")); err != nil {
		return err
	}
	s.out.Line("Tagged. These commands publish it, and nothing takes it back:")
	for _, command := range release.Pushes(c.Version) {
		s.out.Line("  %s", command)
	}
	return nil
}

func (s call) checkRelease(version string) error {
	return s.releasing(version, func(build release.Build) error {
		err := s.out.Step("go install of idemctl from two folders, the second with an empty build cache", func() error {
			sum, err := build.Reproduce(s.ctx)
			if err == nil {
				s.out.Line("           identical: SHA-256 %s", sum)
			}
			return err
		})
		if err != nil {
			return err
		}
		return s.binaries(build, release.Platform{OS: "linux", Arch: "amd64"})
	})
}

// releasing publishes the modules to a folder, does something with them, and removes all but the result.
func (s call) releasing(version string, do func(release.Build) error) error {
	folder := filepath.Join(s.root, releaseFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(folder, "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	build := release.Build{Root: s.root, Version: version, Scratch: scratch}
	if err := s.out.Step("zips of the modules", func() error { return build.Publish(s.ctx) }); err != nil {
		return err
	}
	return do(build)
}

// binaries writes the files of a release anew.
func (s call) binaries(build release.Build, platforms ...release.Platform) error {
	out := filepath.Join(s.root, releaseFolder, build.Version)
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	return s.out.Step("binaries, their modules and checksums in "+filepath.Join(releaseFolder, build.Version), func() error {
		return build.Binaries(s.ctx, out, platforms...)
	})
}
