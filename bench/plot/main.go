// Command plot draws the newest measurements of this folder as the pictures of docs/reference/measurements.md.
//
//	go run ./bench/plot
//
// It measures nothing: each picture is drawn from a table that stands in a dated result, in the README, or in a golden file.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/idem-go/idem-aws/internal/localtool"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

// folder is where the pictures are, below the checkout.
const folder = "docs/assets/plots"

func run(out io.Writer) error {
	root, err := localtool.Root()
	if err != nil {
		return err
	}
	pictures, err := Draw(root)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
		return err
	}
	for name, svg := range pictures {
		if err := os.WriteFile(filepath.Join(root, folder, name), svg, 0o644); err != nil {
			return err
		}
		fmt.Fprintln(out, folder+"/"+name)
	}
	return nil
}
