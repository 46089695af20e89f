package docsite

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// services is AWS's own description of its services, as botocore has it, which the AWS CLI is made of. It is in the environment of a tool.
type services struct {
	folder string
	read   map[string]service
}

// service is what of a description a command line is held against.
type service struct {
	Operations map[string]struct{ Input, Output struct{ Shape string } }
	Shapes     map[string]shape
}

type shape struct {
	Type     string
	Required []string
	Members  map[string]struct{ Shape string }
	Member   struct{ Shape string }
	Enum     []string
}

// folderOf are the descriptions whose folder is not the command's name.
var folderOf = map[string]string{"deploy": "codedeploy"}

func newServices(t *testing.T) *services {
	t.Helper()
	tool, err := localtool.SAMTranslatorTool.Find()
	if localtool.Excuses(err) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(tool, "venv", "lib", "python3*", "site-packages", "botocore", "data"))
	if err != nil || len(found) != 1 {
		t.Fatalf("descriptions of AWS's services: %q, %v", found, err)
	}
	return &services{found[0], map[string]service{}}
}

// of returns the newest description of a service.
func (s *services) of(name string) (service, error) {
	if known, ok := s.read[name]; ok {
		return known, nil
	}
	files, err := filepath.Glob(filepath.Join(s.folder, cmp.Or(folderOf[name], name), "*", "service-2.json.gz"))
	if err != nil || len(files) == 0 {
		return service{}, fmt.Errorf("AWS has no service %q", name)
	}
	file, err := os.Open(slices.Max(files))
	if err != nil {
		return service{}, err
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		return service{}, err
	}
	var described service
	if err := json.NewDecoder(text).Decode(&described); err != nil {
		return service{}, err
	}
	s.read[name] = described
	return described, nil
}

var wordEnds = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z]+)([A-Z][a-z])`)

// kebab is the CLI's name of an operation or a member: ListStackResources is list-stack-resources.
func kebab(name string) string {
	return strings.ToLower(wordEnds.ReplaceAllString(name, "$1$3-$2$4"))
}

// refuses says why the AWS CLI would not take a command line, or "".
func (s *services) refuses(args []string) string {
	if len(args) < 2 {
		return "a service and an operation are needed"
	}
	if strings.Join(args[:2], " ") == "logs tail" {
		return refusesTail(args[2:])
	}
	described, err := s.of(args[0])
	if err != nil {
		return err.Error()
	}
	for name, operation := range described.Operations {
		if kebab(name) == args[1] {
			return described.refuses(described.Shapes[operation.Input.Shape], described.Shapes[operation.Output.Shape], args[2:])
		}
	}
	return args[0] + " has no operation " + args[1]
}

// refusesTail is about a command that is the CLI's own: its one argument is the group.
func refusesTail(args []string) string {
	if len(args) == 0 || strings.HasPrefix(args[0], "--") {
		return "the log group is needed"
	}
	for i := 1; i < len(args); i += 2 {
		if !slices.Contains([]string{"--since", "--filter-pattern", "--format"}, args[i]) || i+1 == len(args) {
			return "logs tail does not take " + strings.Join(args[i:], " ")
		}
	}
	return ""
}

// outputForms are what --output takes.
var outputForms = []string{"json", "text", "table", "yaml"}

func (s service) refuses(in, out shape, args []string) string {
	given := map[string]bool{}
	for len(args) > 0 {
		flag, ok := strings.CutPrefix(args[0], "--")
		if !ok {
			return "nothing takes " + args[0]
		}
		end := slices.IndexFunc(args[1:], func(a string) bool { return strings.HasPrefix(a, "--") }) + 1
		if end == 0 {
			end = len(args)
		}
		values := args[1:end]
		args = args[end:]
		switch flag {
		case "output":
			if len(values) != 1 || !slices.Contains(outputForms, values[0]) {
				return "--output takes one form"
			}
			continue
		case "query":
			if len(values) != 1 {
				return "--query takes one expression"
			}
			if missing := notIn(out, values[0]); missing != "" {
				return "the answer has no " + missing
			}
			continue
		}
		name, why := s.member(in, flag, values)
		if why != "" {
			return why
		}
		given[name] = true
	}
	for _, name := range in.Required {
		if !given[name] {
			return "--" + kebab(name) + " is needed"
		}
	}
	return ""
}

// member is the member that a flag gives, or why it can't.
func (s service) member(in shape, flag string, values []string) (name, why string) {
	for name, member := range in.Members {
		described := s.Shapes[member.Shape]
		switch {
		case described.Type == "boolean" && (flag == kebab(name) || flag == "no-"+kebab(name)):
			if len(values) > 0 {
				return "", "--" + flag + " takes no value"
			}
			return name, ""
		case flag != kebab(name):
			continue
		case len(values) == 0 || len(values) > 1 && described.Type != "list":
			return "", fmt.Sprintf("--%s takes a value, and gets %q", flag, values)
		}
		admitted := described.Enum
		if described.Type == "list" {
			admitted = s.Shapes[described.Member.Shape].Enum
		}
		for _, value := range values {
			if len(admitted) > 0 && !slices.Contains(admitted, value) {
				return "", fmt.Sprintf("--%s takes %q", flag, admitted)
			}
			if strings.HasPrefix(value, "{") && described.Type != "string" && !json.Valid([]byte(value)) {
				return "", "--" + flag + " is no JSON: " + value
			}
		}
		return name, ""
	}
	return "", "there is no --" + flag
}

var rootName = regexp.MustCompile(`^[A-Za-z]+`)

// notIn is the first name of a query that the answer does not have.
func notIn(out shape, query string) string {
	for each := range strings.SplitSeq(strings.Trim(query, "[]"), ",") {
		if strings.Contains(query, "[?") { // a filter: what is asked of is in front of it
			each, _, _ = strings.Cut(query, "[")
		}
		name := rootName.FindString(each)
		if _, ok := out.Members[name]; !ok {
			return cmp.Or(name, each)
		}
	}
	return ""
}

// logged finds the event that a filter of log lines names.
var logged = regexp.MustCompile(`\$\.msg = "([^"]+)"`)

// Each command of AWS in a runbook is one that the AWS CLI takes, as the shell hands it on: the service's operation, its flags, what it demands, and
// what is asked of its answer. The events that filters name are ones that the code logs.
func TestRunbooksCallAWSAsItIs(t *testing.T) {
	aws := newServices(t)
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	listed, err := os.ReadFile(filepath.Join(root, "docs", "reference", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	ofBatches, err := os.ReadFile(filepath.Join(root, "idem", "awslambda", "batch.go")) // a line that is no event of the table
	if err != nil {
		t.Fatal(err)
	}
	standIns := map[string]string{"aws": noting, "idemctl": "exit 0", "make": "exit 0"}
	calls, filters := 0, 0
	for document, atLeast := range map[string]int{"docs/operator.md": 20, recovery: 4, "docs/own-stack.md": 1} {
		blocks := blocksOf(t, document, "runbook")
		if len(blocks) < atLeast {
			t.Errorf("%s has %d blocks, at least %d are wanted", document, len(blocks), atLeast)
		}
		for _, block := range blocks {
			typed(t, block, standIns, map[string]string{"row.json": "{}"}, func(t *testing.T, folder, said string) {
				made := strings.Split(strings.TrimSuffix(read(t, folder, "calls"), "\x1e"), "\x1e")
				for _, call := range made {
					calls++
					args := strings.Split(strings.TrimSuffix(call, "\x1f"), "\x1f")
					if why := aws.refuses(args); why != "" {
						t.Errorf("%s: aws %q: %s\n%s%s", document, args, why, block, said)
					}
					for _, event := range logged.FindAllStringSubmatch(call, -1) {
						if filters++; !strings.Contains(string(listed), "`"+event[1]+"`") && !strings.Contains(string(ofBatches), strconv.Quote(event[1])) {
							t.Errorf("%s: nothing logs %s: %s", document, event[1], block)
						}
					}
				}
			})
		}
	}
	if calls < 35 || filters < 9 {
		t.Errorf("%d calls, %d events", calls, filters)
	}
}

// noting is an aws that notes its arguments, and answers the list of log groups.
const noting = `{ printf '%s\037' "$@"; printf '\036'; } >> calls
case "$*" in *AWS::Logs::LogGroup*) printf 'one\ttwo\n' ;; esac`

func TestWrongCommandsOfAWSAreFound(t *testing.T) {
	t.Parallel()
	aws := newServices(t)
	for line, want := range map[string]string{
		"lambda get-account-settings":                                                   "",
		"lambda get-function-concurrency --function-name f":                             "",
		"lambda get-function-concurrency":                                               "--function-name is needed",
		"lambda get-function-concurrencies --function-name f":                           "lambda has no operation",
		"lambada list-functions":                                                        "AWS has no service",
		"lambda":                                                                        "a service and an operation",
		"lambda get-function-concurrency --function f":                                  "there is no --function",
		"lambda get-function-concurrency --function-name f g":                           "--function-name takes a value",
		"lambda get-function-concurrency f":                                             "nothing takes f",
		"lambda update-event-source-mapping --uuid u --no-enabled":                      "",
		"lambda update-event-source-mapping --uuid u --enabled true":                    "--enabled takes no value",
		"lambda list-event-source-mappings --query EventSourceMappings[].UUID":          "",
		"lambda list-event-source-mappings --query Mappings[].UUID":                     "the answer has no Mappings",
		"lambda get-function-configuration --function-name f --query [Timeout,Version]": "",
		"lambda get-function-configuration --function-name f --query [Timeout,Vers]":    "the answer has no Vers",
		"cloudformation list-stack-resources --stack-name s --query StackResourceSummaries[?ResourceType=='X'].LogicalResourceId": "",
		"cloudformation list-stack-resources --stack-name s --query Resources[?ResourceType=='X'].LogicalResourceId":              "the answer has no Resources",
		"cloudformation list-stack-resources --stack-name s --output csv":                                                         "--output takes one form",
		"deploy list-deployments --include-only-statuses Failed Stopped":                                                          "",
		"deploy list-deployments --include-only-statuses failed":                                                                  "--include-only-statuses takes",
		"cloudwatch describe-alarms --state-value RINGS":                                                                          "--state-value takes",
		"dynamodb get-item --table-name t --key {\"id\":1":                                                                        "--key is no JSON",
		"logs tail GROUP --since 1h":                                                                                              "",
		"logs tail --since 1h":                                                                                                    "the log group is needed",
		"logs tail GROUP --pattern x":                                                                                             "logs tail does not take",
	} {
		why := aws.refuses(strings.Fields(line))
		if want == "" && why != "" || !strings.HasPrefix(why, want) {
			t.Errorf("%s: %q, want %q", line, why, want)
		}
	}
}
