package release

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// WriteSBOM writes what a Go program is made of, as CycloneDX 1.6 in JSON: the modules that the linker put into it and the
// standard library. The same program has the same list, to the byte: it carries no time and no serial number.
func WriteSBOM(w io.Writer, program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("what %s is made of: %w", program, err)
	}
	main := component(cyclonedx.ComponentTypeApplication, info.Main.Path, info.Main.Version, info.Main.Sum)
	standard := component(cyclonedx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"), "")
	components := []cyclonedx.Component{standard}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			return fmt.Errorf("%s is replaced by %s %s in %s: its origin is not known", dep.Path, dep.Replace.Path, dep.Replace.Version, program)
		}
		components = append(components, component(cyclonedx.ComponentTypeLibrary, dep.Path, dep.Version, dep.Sum))
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &main}
	bom.Components = &components
	return cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
}

// component is a module. Its sum is that of go.sum, which is no hash of one file: so it is a property.
func component(kind cyclonedx.ComponentType, path, version, sum string) cyclonedx.Component {
	url := "pkg:golang/" + path + "@" + version
	made := cyclonedx.Component{BOMRef: url, Type: kind, Name: path, Version: version, PackageURL: url}
	if sum != "" {
		made.Properties = &[]cyclonedx.Property{{Name: "go.sum", Value: sum}}
	}
	return made
}

// sbomFile writes the list of a program into a file.
func sbomFile(name, program string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := WriteSBOM(file, program); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
