// Package scaffold writes a new service that uses idem: a Go module with a handler, a topic, tests, Lambda functions,
// a CDK app and a Makefile. The service is docs/examples/ownstack of this repository, under another name.
//
// The command `idemctl new` calls it, so most users do not need the package. Use it to offer the same in a tool of
// your own. It writes into an empty folder only, and never changes an existing service.
package scaffold

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// template has the files of docs/examples/ownstack, each with .txt behind its name: so no tool takes them for code of this module.
//
//go:embed all:template
var template embed.FS

// What the template has, and a service has otherwise.
const (
	templateModule  = "example.com/shop"
	templateLibrary = "../../.."
	// templateReplaces is the comment before the replacements of go.mod, which are the file's last block.
	templateReplaces = "\n// Until the first release."
	templateVersion  = "v0.0.0"
)

// templateNamed finds where the template names its module, or itself.
var templateNamed = regexp.MustCompile(regexp.QuoteMeta(templateModule) + `|\bshop\b`)

// Service is what is written. Module, and one of Library and Release, are required.
type Service struct {
	// Module is the path of the service's Go module, such as shop or github.com/acme/shop. Its last element names the stack.
	Module string
	// Library is the folder of a checkout of idem, which go.mod then replaces idem by.
	Library string
	// Release is the version of idem that go.mod requires, such as v1.2.3.
	Release string
}

// InputError is an input that can't be used. Nothing was written.
type InputError struct {
	// Field is "module", "library", "release" or "folder".
	Field string
	// Wrong says what is wrong with it, and Do what to do about it: a sentence each.
	Wrong, Do string
}

// Error has both sentences.
func (e *InputError) Error() string { return e.Wrong + " " + e.Do }

// Name is the service's name: the last element of its module's path.
func (s Service) Name() string { return s.Module[strings.LastIndexByte(s.Module, '/')+1:] }

// Write writes the service into folder, which is made if it is not there, and else must be empty but for .git. It returns the
// files' names, sorted. It returns an [*InputError] for an input that can't be used. Where a file can't be written, the files
// before it are removed again.
func (s Service) Write(folder string) (files []string, err error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := empty(folder); err != nil {
		return nil, err
	}
	made := &made{}
	defer func() {
		if err != nil {
			made.remove()
		}
	}()
	err = fs.WalkDir(template, "template", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := template.ReadFile(path)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(path, "template/"), ".txt")
		files = append(files, name)
		return made.file(filepath.Join(folder, filepath.FromSlash(name)), s.file(name, string(text)))
	})
	slices.Sort(files)
	return files, err
}

// file is a file of the template as the service has it.
func (s Service) file(name, text string) string {
	text = templateNamed.ReplaceAllStringFunc(text, func(found string) string {
		if found == templateModule {
			return s.Module
		}
		return s.Name()
	})
	switch name {
	case "go.mod":
		return s.require(text)
	case "Makefile":
		return strings.Replace(text, "IDEM ?= "+templateLibrary, strings.TrimRight("IDEM ?= "+s.Library, " "), 1)
	}
	return text
}

// require has go.mod require the release, or replace the library by the checkout.
func (s Service) require(text string) string {
	requires, replaces, _ := strings.Cut(text, templateReplaces)
	if s.Library == "" {
		return strings.ReplaceAll(requires, " "+templateVersion+"\n", " "+s.Release+"\n")
	}
	_, replaces, _ = strings.Cut(replaces, "\n")
	replaces = strings.ReplaceAll(replaces, "=> "+templateLibrary+"/\n", "=> "+s.Library+"\n")
	return requires + "\n// idem is that of a checkout, and not a release.\n" + strings.ReplaceAll(replaces, "=> "+templateLibrary, "=> "+s.Library)
}

// made are the files and folders that were written, in their order.
type made struct{ paths []string }

func (m *made) file(path, text string) error {
	if err := m.folder(filepath.Dir(path)); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // source code is for everybody to read
	if err != nil {
		return err
	}
	m.paths = append(m.paths, path)
	_, err = file.WriteString(text)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

func (m *made) folder(path string) error {
	if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
		return err
	}
	if err := m.folder(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o755); err != nil { //nolint:gosec // source code is for everybody to read
		return err
	}
	m.paths = append(m.paths, path)
	return nil
}

// remove removes what was made, the last first. What can't be removed stays: the error that led here is the one that is reported.
func (m *made) remove() {
	for _, path := range slices.Backward(m.paths) {
		_ = os.Remove(path)
	}
}

// empty refuses a folder that has anything in it but what git keeps.
func empty(folder string) error {
	entries, err := os.ReadDir(folder)
	switch {
	case os.IsNotExist(err):
		return nil
	case err != nil:
		return &InputError{"folder", fmt.Sprintf("%s can't be read as a folder: %v.", folder, err), "Choose another one with --into FOLDER."}
	}
	for _, entry := range entries {
		if entry.Name() != ".git" {
			return &InputError{"folder", fmt.Sprintf("The folder %s is not empty: it has %s.", folder, entry.Name()), "Choose another one with --into FOLDER; nothing is ever overwritten."}
		}
	}
	return nil
}
