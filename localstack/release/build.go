package release

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Build is a release that is made of a checkout, in folders of its own. The checkout is not changed.
type Build struct {
	// Root is the checkout, and Version the release's, such as v0.1.0.
	Root, Version string
	// Scratch is an empty folder for everything in between.
	Scratch string
}

// adopter is somebody with an empty folder, a proxy that has the release, and a build cache (empty: the user's).
func (b Build) adopter(name, cache string) (Adopter, error) {
	adopter := Adopter{Folder: filepath.Join(b.Scratch, name), Proxy: filepath.Join(b.Scratch, "proxy"), Cache: cache}
	return adopter, os.MkdirAll(adopter.Folder, 0o755)
}

// Publish makes the zips of the modules, for the methods below.
func (b Build) Publish(ctx context.Context) error {
	files := filepath.Join(b.Scratch, "files")
	if err := Snapshot(ctx, b.Root, files); err != nil {
		return err
	}
	if err := Prepare(files, b.Version); err != nil {
		return err
	}
	return Publish(files, b.Version, filepath.Join(b.Scratch, "proxy"))
}

// Reproduce builds idemctl in two folders, the second time with an empty build cache, and fails where the programs differ.
// It returns the SHA-256 of both.
func (b Build) Reproduce(ctx context.Context) (string, error) {
	var programs [2][]byte
	for i, cache := range []string{"", filepath.Join(b.Scratch, "cache")} {
		adopter, err := b.adopter(fmt.Sprintf("build-%d", i+1), cache)
		if err != nil {
			return "", err
		}
		program, err := adopter.Install(ctx, b.Version, Platform{})
		if err != nil {
			return "", err
		}
		if programs[i], err = os.ReadFile(program); err != nil {
			return "", err
		}
	}
	first, second := sha256.Sum256(programs[0]), sha256.Sum256(programs[1])
	if !bytes.Equal(programs[0], programs[1]) {
		return "", fmt.Errorf("two builds of idemctl differ: SHA-256 %x and %x", first, second)
	}
	return fmt.Sprintf("%x", first), nil
}

// Binaries writes the files of a release into an empty folder: idemctl for each platform with its list of modules, and
// SHA256SUMS of all of them. Each binary is what `go install` makes for that platform.
func (b Build) Binaries(ctx context.Context, out string, platforms ...Platform) error {
	adopter, err := b.adopter("binaries", "")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var sums []string
	for _, on := range platforms {
		program, err := adopter.Install(ctx, b.Version, on)
		if err != nil {
			return fmt.Errorf("idemctl for %s/%s: %w", on.OS, on.Arch, err)
		}
		name := fmt.Sprintf("idemctl_%s_%s_%s", b.Version, on.OS, on.Arch)
		binary := filepath.Join(out, on.executable(name))
		if err := copyFile(program, binary); err != nil {
			return err
		}
		list := filepath.Join(out, name+".cdx.json")
		if err := sbomFile(list, binary); err != nil {
			return err
		}
		for _, file := range []string{binary, list} {
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			sums = append(sums, fmt.Sprintf("%x  %s\n", sha256.Sum256(content), filepath.Base(file)))
		}
	}
	slices.SortFunc(sums, func(a, b string) int { return strings.Compare(a[2*sha256.Size:], b[2*sha256.Size:]) })
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(strings.Join(sums, "")), 0o644)
}
