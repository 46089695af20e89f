package docsite

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/internal/localtool"
)

// policyTable is the table of a page with the fields of idem.Policy that the page is about.
var policyTable = regexp.MustCompile(`(?m)(<!-- policy: (.+) -->\n\|.*\n\|[-|]+\n)((?:\|.*\n)*)`)

// Every field of a policy has one page, which shows what the three policies have for it. With -update the tables are written.
func TestEachFieldOfAPolicyHasAPage(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]int{"Name": 1}
	for _, page := range policyPages(t, root) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		want := policyTable.ReplaceAllStringFunc(string(text), func(table string) string {
			part := policyTable.FindStringSubmatch(table)
			rows := part[1]
			for _, field := range strings.Split(part[2], ", ") {
				explained[field]++
				rows += fmt.Sprintf("| `%s` | %s | %s | %s |\n", field, valueOf(t, idem.IETF(), field), valueOf(t, idem.Stripe(), field), valueOf(t, idem.Lenient(), field))
			}
			return rows
		})
		switch {
		case want == string(text):
		case *update:
			if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s has other values than the code; go test ./localstack/docsite -run %s -update writes them", page, t.Name())
		}
	}
	for field := range reflect.TypeFor[idem.Policy]().Fields() {
		if explained[field.Name] != 1 {
			t.Errorf("the field %s of a policy has %d pages, want one", field.Name, explained[field.Name])
		}
	}
}

func policyPages(t *testing.T, root string) []string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(root, "docs", "policies", "*.md"))
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages of policies (%v)", len(pages), err)
	}
	return pages
}

// valueOf is a policy's value of a field, for a reader.
func valueOf(t *testing.T, policy idem.Policy, field string) string {
	t.Helper()
	value := reflect.ValueOf(policy).FieldByName(field)
	if !value.IsValid() {
		t.Fatalf("a policy has no field %s", field)
	}
	switch v := value.Interface().(type) {
	case time.Duration:
		if v >= time.Hour {
			return fmt.Sprintf("%g h", v.Hours())
		}
		return fmt.Sprintf("%g s", v.Seconds())
	case bool:
		return fmt.Sprintf("`%t`", v)
	}
	if value.IsZero() {
		return "none"
	}
	return fmt.Sprintf("`%v`", value.Interface())
}

// Every named value of a policy's fields is explained by one of the pages.
func TestEachValueOfAPolicyHasAPage(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	var pages strings.Builder
	for _, page := range policyPages(t, root) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		pages.Write(text)
	}
	var types []string
	for field := range reflect.TypeFor[idem.Policy]().Fields() {
		if field.Type.PkgPath() != "" && field.Type.Kind() == reflect.String {
			types = append(types, field.Type.Name())
		}
	}
	values := 0
	inspect(t, filepath.Join(root, "idem"), func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if named, ok := spec.Type.(*ast.Ident); ok && slices.Contains(types, named.Name) {
			values++
			if name := spec.Names[0].Name; !strings.Contains(pages.String(), "\n| `idem."+name+"` | ") {
				t.Errorf("no table of docs/policies explains idem.%s", name)
			}
		}
		return true
	})
	if values < 15 {
		t.Errorf("%d values", values)
	}
}
