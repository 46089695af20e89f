package dynamotest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/internal/localtool"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

const (
	adopterModule = `module example.com/adopter

go 1.26.0

require github.com/idem-go/idem-aws v0.0.0

replace github.com/idem-go/idem-aws => `

	adopterTest = `package adopter

import (
	"os"
	"testing"

	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

func TestStore(t *testing.T) {
	dynamotest.Each(t, func(t *testing.T, url string) {
		client := dynamotest.Client(url)
		tables, err := dynamotest.CreateTables(t.Context(), client, "adopter")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := dynamo.New(client, dynamo.Config{IdempotencyTable: tables.Idempotency, OutboxTable: tables.Outbox}); err != nil {
			t.Fatal(err)
		}
	})
}
`
)

// A module of somebody else has neither this checkout nor its tools around it: only dynoxide on PATH.
func TestAModuleOutsideTheCheckoutRunsItsTestsOnDynoxide(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	tool, err := localtool.DynoxideTool.Find()
	if localtool.Excuses(err) {
		t.Skipf("not run: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	adopter := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": adopterModule + root + "\n", "go.sum": string(sums), "store_test.go": adopterTest,
	} {
		if err := os.WriteFile(filepath.Join(adopter, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "go", "test", "-count=1", ".")
	command.Dir = adopter
	program := filepath.Join(tool, "node_modules", "@dynoxide", localtool.NPMHost())
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off",
		"PATH="+program+string(filepath.ListSeparator)+os.Getenv("PATH"), dynamotest.EndpointsVariable+"=", localtool.DynoxideVariable+"=")
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
}

// An endpoint that somebody else started keeps its tables from one run of the tests to the next.
func TestAnEndpointByItsURLServesRunAfterRun(t *testing.T) {
	url := dynamotest.Endpoint(t, dynamotest.Dynoxide)
	t.Setenv(dynamotest.EndpointsVariable, url+"/")
	for range 2 {
		dynamotest.Each(t, func(t *testing.T, given string) {
			if given != url {
				t.Errorf("the test got %s, want %s", given, url)
			}
			client := dynamotest.Client(given)
			tables, err := dynamotest.CreateTables(t.Context(), client, "again")
			if err != nil {
				t.Fatal(err)
			}
			out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &tables.Idempotency})
			if err != nil || out.Count != 0 {
				t.Errorf("%+v, %v; want an empty table", out, err)
			}
		})
	}
}
