package lint

import (
	"context"
	"crypto/sha256"
	_ "embed" // what finds and judges
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// PartVariable names the environment variable that has a check look at a part of the templates, as in "1/3": see ParsePart.
const PartVariable = "IDEM_LINT_PART"

// Part is every Of-th template by name, of which Number are left out before the first.
type Part struct{ Number, Of int }

// ParsePart reads "1/3". Without a text it is all templates.
func ParsePart(text string) (p Part, err error) {
	if text == "" {
		return Part{Of: 1}, nil
	}
	if _, err = fmt.Sscanf(text, "%d/%d", &p.Number, &p.Of); err == nil && (p.Of < 1 || p.Number < 0 || p.Number >= p.Of) {
		err = fmt.Errorf("lint: no part %q of the templates", text)
	}
	return p, err
}

// of is the part of names.
func (p Part) of(names []string) (some []string) {
	for n, name := range slices.Sorted(slices.Values(names)) {
		if n%p.Of == p.Number {
			some = append(some, name)
		}
	}
	return some
}

// Check is templates, the table of what the linters found in them when all were looked at, and the part to look at again.
type Check struct {
	// AWS are held against both linters, Local, of emulators, against the schemas alone.
	AWS, Local Templates
	// Table is the path of the file that has a line for each template, with a hash of it and the numbers of its findings.
	Table string
	// Part is looked at where each template, the linters and this package are what Table was written for: nothing else could be
	// found in the others. Otherwise all are looked at.
	Part Part
	// Update has all looked at, and Table written.
	Update bool

	cfnLint, cdkNag linter // CfnLint and CDKNag, or a test's own
}

type linter func(ctx context.Context, folder string, templates Templates) ([]Finding, error)

// Report is what a Check came to.
type Report struct {
	// Looked are the names of the templates that were looked at.
	Looked []string
	// Wrong are findings that no resource accepts, explanations that nothing needs, which only a look at all can tell, and where Table
	// says something else.
	Wrong []string
	// Linted and Nagged count the findings of cfn-lint and of cdk-nag in all templates of AWS. Table has those that were not looked at.
	Linted, Nagged int
}

// row is what the table says of a template.
type row struct {
	hash           string
	linted, nagged int
}

func (r row) line(name string) string {
	return fmt.Sprintf("%-24s %s %4d of cfn-lint %4d of cdk-nag\n", name, r.hash, r.linted, r.nagged)
}

// Run looks at the templates. Folder is an empty one. Its error is a *localtool.NotInstalledError, or says why a linter did not run.
func (c Check) Run(ctx context.Context, folder string) (report Report, err error) {
	if c.cfnLint == nil {
		c.cfnLint, c.cdkNag = CfnLint, CDKNag
	}
	now, err := c.rows()
	if err != nil {
		return report, err
	}
	before, same := c.read(now)
	names := slices.Collect(maps.Keys(now))
	report.Looked = slices.Sorted(slices.Values(names))
	if same && !c.Update {
		report.Looked = c.Part.of(names)
	}
	aws, local := only(c.AWS, report.Looked), only(c.Local, report.Looked)
	linted, nagged, lintedLocal, err := c.lookAt(ctx, folder, aws, local)
	if err != nil {
		return report, err
	}
	open, idle := Judge(aws, slices.Concat(linted, nagged))
	openLocal, _ := Judge(local, lintedLocal)
	for _, f := range append(open, openLocal...) {
		report.Wrong = append(report.Wrong, fmt.Sprintf("%s: %s: %.120s", f.Rule, f.Resource, f.Text)) // whatever template it is in
	}
	if len(report.Looked) == len(now) {
		for _, each := range idle {
			report.Wrong = append(report.Wrong, "nothing needs the explanation of "+each+" any more")
		}
	}
	count(now, linted, func(r *row) { r.linted++ })
	count(now, lintedLocal, func(r *row) { r.linted++ })
	count(now, nagged, func(r *row) { r.nagged++ })
	for name, r := range now {
		if !slices.Contains(report.Looked, name) {
			r = before[name]
			now[name] = r
		}
		if c.AWS[name] != nil {
			report.Linted, report.Nagged = report.Linted+r.linted, report.Nagged+r.nagged
		}
	}
	slices.Sort(report.Wrong)
	report.Wrong = slices.Compact(report.Wrong)
	return report, c.compare(&report, now)
}

// compare writes the table, or says where it differs.
func (c Check) compare(report *Report, now map[string]row) error {
	text := c.header()
	for _, name := range slices.Sorted(maps.Keys(now)) {
		text += now[name].line(name)
	}
	if c.Update {
		return os.WriteFile(c.Table, []byte(text), 0o644)
	}
	if told, err := os.ReadFile(c.Table); err != nil || string(told) != text {
		report.Wrong = append(report.Wrong, fmt.Sprintf("%s is not of these templates any more: run this test with -update (%v)", c.Table, err))
	}
	return nil
}

// lookAt runs the linters side by side: each takes most of a minute of one core for all templates.
func (c Check) lookAt(ctx context.Context, folder string, aws, local Templates) (linted, nagged, lintedLocal []Finding, err error) {
	folders := [3]string{}
	for i := range folders {
		if folders[i], err = os.MkdirTemp(folder, "look"); err != nil {
			return nil, nil, nil, err
		}
	}
	var both errgroup.Group
	both.Go(func() (err error) {
		linted, err = c.cfnLint.unlessEmpty(ctx, folders[0], aws)
		return err
	})
	both.Go(func() (err error) {
		if lintedLocal, err = c.cfnLint.unlessEmpty(ctx, folders[1], local); err == nil {
			nagged, err = c.cdkNag.unlessEmpty(ctx, folders[2], aws)
		}
		return err
	})
	err = both.Wait()
	return linted, nagged, lintedLocal, err
}

// unlessEmpty runs a linter unless there is nothing to look at.
func (l linter) unlessEmpty(ctx context.Context, folder string, templates Templates) ([]Finding, error) {
	if len(templates) == 0 {
		return nil, nil
	}
	return l(ctx, folder, templates)
}

func only(templates Templates, names []string) Templates {
	some := Templates{}
	for _, name := range names {
		if template := templates[name]; template != nil {
			some[name] = template
		}
	}
	return some
}

func count(rows map[string]row, findings []Finding, add func(*row)) {
	for _, f := range findings {
		r := rows[nameOf(f)]
		add(&r)
		rows[nameOf(f)] = r
	}
}

// assets are what CDK names files by, which are not looked at.
var assets = regexp.MustCompile(`[0-9a-f]{64}`)

// rows are the templates' hashes. What a resource accepts is in them too: an explanation that is taken away must be missed.
func (c Check) rows() (map[string]row, error) {
	all := map[string]row{}
	for _, templates := range []Templates{c.AWS, c.Local} {
		for name, template := range templates {
			text, err := json.Marshal(template)
			if err != nil {
				return nil, err
			}
			all[name] = row{hash: short(assets.ReplaceAll(text, nil))}
		}
	}
	return all, nil
}

func short(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text))[:16] }

// read are the table's rows, and whether they are of the templates, linters and code as they are now.
func (c Check) read(now map[string]row) (before map[string]row, same bool) {
	text, err := os.ReadFile(c.Table)
	lines, ours := strings.CutPrefix(string(text), c.header())
	if err != nil || !ours {
		return nil, false
	}
	before = map[string]row{}
	for line := range strings.Lines(lines) {
		var name string
		var r row
		if _, err := fmt.Sscanf(line, "%s %s %d of cfn-lint %d of cdk-nag", &name, &r.hash, &r.linted, &r.nagged); err != nil {
			return nil, false
		}
		before[name] = r
	}
	return before, maps.EqualFunc(before, now, func(a, b row) bool { return a.hash == b.hash })
}

//go:embed lint.go
var finds []byte

//go:embed judge.go
var judges []byte

// header names what found the table's findings.
func (c Check) header() string {
	code := short(slices.Concat(finds, judges, nagProgram))
	return fmt.Sprintf("# What %s and %s find in each template, by code %s.\n", version(localtool.CfnLintTool), version(localtool.CDKNagTool), code)
}

func version(t localtool.Tool) string { return t.Name + " " + t.Version }
