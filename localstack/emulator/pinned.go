package emulator

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/idem-go/idem-aws/internal/localtool"
)

//go:embed ministack-requirements.txt
var ministackRequirements []byte

//go:embed schemathesis-requirements.txt
var schemathesisRequirements []byte

//go:embed cfn-lint-requirements.txt
var cfnLintRequirements []byte

//go:embed python-client-requirements.txt
var pythonClientRequirements []byte

//go:embed mkdocs-requirements.txt
var mkdocsRequirements []byte

//go:embed cdknag/package.json cdknag/package-lock.json
var cdkNagPackage embed.FS

// DynoxideTool is the DynamoDB emulator that starts in milliseconds: a native binary inside an npm package.
func DynoxideTool() Tool {
	return Tool{
		Tool: localtool.DynoxideTool, Check: RequireNode,
		Install: func(ctx context.Context, directory string) error {
			return npmInstall(ctx, directory, "@dynoxide/"+localtool.NPMHost()+"@"+localtool.DynoxideTool.Version)
		},
	}
}

// DynamoDBLocalTool is AWS's own DynamoDB emulator, the referee for the store's contract.
func DynamoDBLocalTool() Tool {
	return Tool{
		Tool: localtool.DynamoDBLocalTool, Check: RequireJava,
		Install: func(ctx context.Context, directory string) error {
			return MavenCopy(ctx, directory, filepath.Join(directory, "lib"), "com.amazonaws", "DynamoDBLocal", localtool.DynamoDBLocalTool.Version)
		},
	}
}

// ministackPythonMinor is what the package's metadata ask for: Python 3.10 or newer.
const ministackPythonMinor = 10

// MinistackTool is the emulator that the stack is deployed to by default, in a virtual environment.
func MinistackTool() Tool {
	return Tool{
		Tool: localtool.MinistackTool,
		Check: func(ctx context.Context) error {
			_, err := Python(ctx, ministackPythonMinor)
			return err
		},
		Install: func(ctx context.Context, directory string) error {
			requirements := filepath.Join(directory, "requirements.txt")
			if err := os.WriteFile(requirements, ministackRequirements, 0o644); err != nil {
				return err
			}
			return VirtualEnvironment(ctx, directory, ministackPythonMinor, "-r", requirements)
		},
	}
}

// schemathesisPythonMinor is what the package's metadata ask for: Python 3.11 or newer.
const schemathesisPythonMinor = 11

// SchemathesisTool looks for answers of the API that its OpenAPI document does not have, in a virtual environment. The
// program is venv/bin/schemathesis below the tool's folder. It is locked with the hashes of all that it needs:
// `uv pip compile --universal --python-version 3.11 --generate-hashes`.
func SchemathesisTool() Tool {
	return Tool{
		Tool: localtool.Tool{Name: "schemathesis", Version: "4.32.5", Holds: []string{localtool.EnvironmentPython}},
		Check: func(ctx context.Context) error {
			_, err := Python(ctx, schemathesisPythonMinor)
			return err
		},
		Install: func(ctx context.Context, directory string) error {
			return hashedEnvironment(ctx, directory, schemathesisPythonMinor, schemathesisRequirements)
		},
	}
}

// cfnLintPythonMinor is what the package's metadata ask for: Python 3.10 or newer.
const cfnLintPythonMinor = 10

// CfnLintTool holds CloudFormation templates against the schemas of their resources. The program is venv/bin/cfn-lint below
// the tool's folder. It is locked as schemathesis is.
func CfnLintTool() Tool {
	return Tool{
		Tool: localtool.CfnLintTool,
		Check: func(ctx context.Context) error {
			_, err := Python(ctx, cfnLintPythonMinor)
			return err
		},
		Install: func(ctx context.Context, directory string) error {
			return hashedEnvironment(ctx, directory, cfnLintPythonMinor, cfnLintRequirements)
		},
	}
}

// mkdocsPythonMinor is what the theme's metadata ask for: Python 3.11 or newer.
const mkdocsPythonMinor = 11

// The JavaScript that draws the diagrams of the documentation site. The package has a hundred dependencies, which its
// bundle contains already, so it is packed and not installed.
const (
	mermaidPackage = "mermaid@11.17.2"
	mermaidSHA256  = "6ad2f42c3fc26bbf9e45cbb6d11898972573ea52b33a5f4ff51952899f950ffd"
)

// MkDocsTool builds the documentation site: MkDocs with the theme Material. The program is venv/bin/mkdocs below the tool's
// folder, and mermaid.min.js beside venv draws diagrams. It is locked as schemathesis is. MkDocs 1.x and Material end in May
// 2027; mkdocs.yml also builds with Zensical, their successor.
func MkDocsTool() Tool {
	return Tool{
		Tool: localtool.Tool{Name: "mkdocs", Version: "1.6.1-material-9.8.1-mermaid-11.17.2", Holds: []string{localtool.EnvironmentPython, "mermaid.min.js"}},
		Check: func(ctx context.Context) error {
			if _, err := Python(ctx, mkdocsPythonMinor); err != nil {
				return err
			}
			return RequireNode(ctx)
		},
		Install: func(ctx context.Context, directory string) error {
			if err := npmFile(ctx, directory, mermaidPackage, mermaidSHA256, "package/dist/mermaid.min.js"); err != nil {
				return err
			}
			return hashedEnvironment(ctx, directory, mkdocsPythonMinor, mkdocsRequirements)
		},
	}
}

// CDKNagTool has rules for the security of CloudFormation templates: cdk-nag with the CDK library that it reads templates by.
// Its packages are in node_modules below the tool's folder.
func CDKNagTool() Tool {
	return Tool{
		Tool: localtool.CDKNagTool, Check: RequireNode,
		Install: func(ctx context.Context, directory string) error {
			for _, name := range []string{"package.json", "package-lock.json"} {
				content, err := cdkNagPackage.ReadFile("cdknag/" + name)
				if err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(directory, name), content, 0o644); err != nil {
					return err
				}
			}
			return Run(ctx, directory, nil, "npm", "ci", "--no-audit", "--no-fund")
		},
	}
}

// StaticcheckTool is the linter that `make lint` runs beside gofmt and vet.
func StaticcheckTool() Tool {
	const version = "0.8.2"
	return Tool{
		Tool: localtool.Tool{Name: "staticcheck", Version: version, Holds: []string{"staticcheck"}}, Check: RequireGo,
		Install: func(ctx context.Context, directory string) error {
			return goInstall(ctx, directory, "honnef.co/go/tools/cmd/staticcheck@v"+version)
		},
	}
}

// ActionlintTool checks the workflows of GitHub.
func ActionlintTool() Tool {
	const version = "1.7.12"
	return Tool{
		Tool: localtool.Tool{Name: "actionlint", Version: version, Holds: []string{"actionlint"}}, Check: RequireGo,
		Install: func(ctx context.Context, directory string) error {
			return goInstall(ctx, directory, "github.com/rhysd/actionlint/cmd/actionlint@v"+version)
		},
	}
}

// GolangciLintTool runs the linters of .golangci.yml. Only `make lint-all` installs it, because that takes two minutes.
func GolangciLintTool() Tool {
	const version = "2.15.0"
	return Tool{
		Tool: localtool.Tool{Name: "golangci-lint", Version: version, Holds: []string{"golangci-lint"}}, Check: RequireGo,
		Install: func(ctx context.Context, directory string) error {
			return goInstall(ctx, directory, "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v"+version)
		},
	}
}

// goInstall builds a Go program into directory.
func goInstall(ctx context.Context, directory, pinned string) error {
	return Run(ctx, directory, []string{"GOBIN=" + directory, "GOFLAGS="}, "go", "install", pinned)
}

// AxeTool looks for what keeps people from using a page: a script that a test runs in its browser. It is
// node_modules/axe-core/axe.min.js below the tool's folder.
func AxeTool() Tool {
	return Tool{
		Tool: localtool.AxeTool, Check: RequireNode,
		Install: func(ctx context.Context, directory string) error {
			return npmInstall(ctx, directory, "axe-core@"+localtool.AxeTool.Version)
		},
	}
}

// TypeScriptTool is the compiler that checks and builds the TypeScript client, with the types of the oldest Node that runs
// it. The compiler is node_modules/typescript/bin/tsc below the tool's folder.
func TypeScriptTool() Tool {
	const nodeTypes = "20.19.43"
	return Tool{
		Tool: localtool.TypeScriptTool, Check: RequireNode,
		Install: func(ctx context.Context, directory string) error {
			return npmInstall(ctx, directory, "typescript@"+localtool.TypeScriptTool.Version, "@types/node@"+nodeTypes)
		},
	}
}

// pythonClientMinor is what the Python client asks for: Python 3.10 or newer.
const pythonClientMinor = 10

// PythonClientTool builds and checks the Python client: hatchling and mypy in a virtual environment, and below wheels what the
// built package needs, for an environment that has nothing but it. It is locked as schemathesis is, for Python 3.10.
func PythonClientTool() Tool {
	return Tool{
		Tool: localtool.PythonClientTool,
		Check: func(ctx context.Context) error {
			_, err := Python(ctx, pythonClientMinor)
			return err
		},
		Install: func(ctx context.Context, directory string) error {
			if err := hashedEnvironment(ctx, directory, pythonClientMinor, pythonClientRequirements); err != nil {
				return err
			}
			return Run(ctx, directory, nil, filepath.Join(directory, "venv", "bin", "python"), "-m", "pip", "download", "--quiet",
				"--disable-pip-version-check", "--require-hashes", "-r", "requirements.txt", "-d", "wheels")
		},
	}
}

func npmInstall(ctx context.Context, directory string, pinned ...string) error {
	arguments := append([]string{"install", "--prefix", directory, "--no-save", "--no-audit", "--no-fund"}, pinned...)
	if err := Run(ctx, directory, nil, "npm", arguments...); err != nil {
		return fmt.Errorf("npm packages %v: %w", pinned, err)
	}
	return nil
}

// npmFile downloads an npm package without what it depends on, compares its archive with the hash, and puts one file of it
// into directory.
func npmFile(ctx context.Context, directory, pinned, sha256Hex, name string) error {
	scratch, err := os.MkdirTemp(directory, "npm-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if err := Run(ctx, scratch, nil, "npm", "pack", "--silent", pinned); err != nil {
		return fmt.Errorf("npm package %s: %w", pinned, err)
	}
	packed, err := filepath.Glob(filepath.Join(scratch, "*.tgz"))
	if err != nil {
		return err
	}
	if len(packed) != 1 {
		return fmt.Errorf("npm package %s: npm pack wrote %d archives", pinned, len(packed))
	}
	archive, err := os.ReadFile(packed[0])
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(archive); hex.EncodeToString(sum[:]) != sha256Hex {
		return fmt.Errorf("npm package %s: its SHA-256 is %x, want %s", pinned, sum, sha256Hex)
	}
	content, err := fileOfArchive(archive, name)
	if err != nil {
		return fmt.Errorf("npm package %s: %w", pinned, err)
	}
	return os.WriteFile(filepath.Join(directory, filepath.Base(name)), content, 0o644)
}

// fileOfArchive is one file of a compressed tar archive.
func fileOfArchive(archive []byte, name string) ([]byte, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	for files := tar.NewReader(unzipped); ; {
		entry, err := files.Next()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err) // io.EOF: there is no such file
		}
		if entry.Name == name {
			return io.ReadAll(files)
		}
	}
}

// VirtualEnvironment makes a Python virtual environment in directory/venv and installs packages (arguments of pip
// install) into it. The interpreter is the first that Python finds for the minor version.
func VirtualEnvironment(ctx context.Context, directory string, minor int, packages ...string) error {
	python, err := Python(ctx, minor)
	if err != nil {
		return err
	}
	if err := Run(ctx, directory, nil, python, "-m", "venv", "venv"); err != nil {
		return err
	}
	arguments := append([]string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check"}, packages...)
	return Run(ctx, directory, nil, filepath.Join(directory, "venv", "bin", "python"), arguments...)
}

// hashedEnvironment is VirtualEnvironment for a list of requirements that has the hash of each.
func hashedEnvironment(ctx context.Context, directory string, minor int, requirements []byte) error {
	file := filepath.Join(directory, "requirements.txt")
	if err := os.WriteFile(file, requirements, 0o644); err != nil {
		return err
	}
	return VirtualEnvironment(ctx, directory, minor, "--require-hashes", "-r", file)
}

// mavenDependencyPlugin is pinned, because Maven's own default depends on its version.
const mavenDependencyPlugin = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"

const pomTemplate = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>tool</artifactId><version>1</version>
  <dependencies><dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency></dependencies>
</project>
`

// MavenCopy downloads an artifact with everything it needs at run time and puts the jars and native libraries into
// output. The generated pom.xml stays in directory.
func MavenCopy(ctx context.Context, directory, output, group, artifact, version string) error {
	pom := filepath.Join(directory, "pom.xml")
	if err := os.WriteFile(pom, fmt.Appendf(nil, pomTemplate, group, artifact, version), 0o644); err != nil {
		return err
	}
	return Run(ctx, directory, nil, "mvn", "-q", "-B", "-f", pom, mavenDependencyPlugin+":copy-dependencies",
		"-DoutputDirectory="+output, "-DincludeScope=runtime")
}
