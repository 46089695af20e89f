package release

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// Publish writes the published modules of a prepared checkout into a folder that the go command can use as a module proxy
// (https://go.dev/ref/mod#goproxy-protocol). The zips are what the public proxy would make of the tags.
func Publish(root, version, proxy string) error {
	for _, one := range Modules() {
		if err := publish(root, one, version, proxy); err != nil {
			return fmt.Errorf("module %s: %w", one, err)
		}
	}
	return nil
}

func publish(root string, one Module, version, proxy string) error {
	folder := filepath.Join(root, string(one))
	if err := license(root, folder); err != nil {
		return err
	}
	escaped, err := module.EscapePath(one.Path())
	if err != nil {
		return err
	}
	versions := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(versions, 0o755); err != nil {
		return err
	}
	modFile, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version, time.Unix(0, 0).UTC()})
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"list": []byte(version + "\n"), version + ".info": info, version + ".mod": modFile} {
		if err := os.WriteFile(filepath.Join(versions, name), content, 0o644); err != nil {
			return err
		}
	}
	archive, err := os.Create(filepath.Join(versions, version+".zip"))
	if err != nil {
		return err
	}
	if err := zip.CreateFromDir(archive, module.Version{Path: one.Path(), Version: version}, folder); err != nil {
		archive.Close()
		return err
	}
	return archive.Close()
}

// license puts the repository's license into a module's folder that has none, as the go command does with a tag's zip.
func license(root, folder string) error {
	const name = "LICENSE"
	if _, err := os.Stat(filepath.Join(folder, name)); !os.IsNotExist(err) {
		return err
	}
	return copyFile(filepath.Join(root, name), filepath.Join(folder, name))
}
