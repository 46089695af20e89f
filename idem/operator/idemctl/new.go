package idemctl

import (
	"cmp"
	"errors"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/idem-go/idem-aws/idem/scaffold"
)

type newService struct {
	Name    string `arg:"" help:"Name of the service, as shop, or the path of its Go module, as github.com/acme/shop."`
	Into    string `help:"Folder to write into; it must be empty or not be there. Default: the last part of the name."`
	Library string `type:"existingdir" help:"Folder of a checkout of idem to use instead of a release."`
	Release string `help:"Release of idem to use, as v1.2.3. Default: the one that this command is of."`
}

// written is the answer to new.
type written struct {
	Module string   `json:"module"`
	Folder string   `json:"folder"`
	Files  []string `json:"files"`
	Next   []string `json:"next"`
}

// Run implements the command.
func (n *newService) Run(s *session) error {
	service := scaffold.Service{Module: n.Name, Library: n.Library, Release: n.Release}
	if n.Library == "" {
		service.Release = cmp.Or(n.Release, scaffold.Released())
	}
	folder := cmp.Or(n.Into, service.Name())
	files, err := service.Write(folder)
	if input := (*scaffold.InputError)(nil); errors.As(err, &input) {
		return &usageError{input.Wrong, input.Do}
	}
	if err != nil {
		return &usageError{"The service could not be written: " + err.Error() + ".", "What was written of it is removed again. Choose another folder with --into FOLDER."}
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return err
	}
	answer := written{service.Module, folder, files, nextOf(service, folder)}
	return s.show(answer, func(t *table) {
		t.line("wrote %d files into %s", len(files), folder)
		t.line("next:")
		for _, line := range answer.Next {
			t.line("  %s", line)
		}
	})
}

// nextOf are the commands that a person runs next.
func nextOf(service scaffold.Service, folder string) []string {
	next := []string{"cd " + shellWord(folder)}
	if service.Library == "" {
		return append(next, "go mod tidy", "make test", "make up IDEM=<the folder of a checkout of idem>")
	}
	return append(next, "make test", "make up")
}

// plainPath is what every shell takes for one word as it stands.
var plainPath = regexp.MustCompile(`^[\p{L}\p{N}/\\:._+~@-]+$`)

// shellWord is a path as a shell takes it for one word.
func shellWord(path string) string {
	if plainPath.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
