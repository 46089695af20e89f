// Package stage reads the file of a stage: the account and Region that the stage is in, and the CDK context of its stack.
// Nothing is deployed to AWS but from such a file. The package belongs to this repository's tools and has no compatibility
// promise.
package stage

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/idem-go/idem-aws/infra/stack"
	"github.com/idem-go/idem-aws/internal/stageplan"
)

// file is what stands in infra/stages/<stage>.json. Every field but production is required.
type file struct {
	Account    string                    `json:"account"`
	Region     string                    `json:"region"`
	Stack      string                    `json:"stack"`
	Owner      string                    `json:"owner"`
	Production bool                      `json:"production"`
	Context    map[string]jsontext.Value `json:"context"`
}

// Read reads and checks the file at path. The stage's name is the file's, without .json. The error names every field that is
// refused, its value and the rule.
func Read(path string) (stageplan.Plan, error) {
	name := strings.TrimSuffix(filepath.Base(path), ".json")
	if err := stageplan.CheckName(name); err != nil {
		return stageplan.Plan{}, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return stageplan.Plan{}, fmt.Errorf("stage %s: %w; infra/stages/example.json shows what to write", name, err)
	}
	plan, err := decode(name, data)
	if err != nil {
		return stageplan.Plan{}, fmt.Errorf("%s:\n%w", path, err)
	}
	return plan, nil
}

func decode(name string, data []byte) (stageplan.Plan, error) {
	var f file
	// A name that appears twice is refused by default: nobody could tell which value holds.
	if err := json.Unmarshal(data, &f, json.RejectUnknownMembers(true)); err != nil {
		return stageplan.Plan{}, err
	}
	context, err := f.context(name)
	if err != nil {
		return stageplan.Plan{}, err
	}
	if f.Production {
		fillProduction(context)
	}
	config, err := checked(context)
	if err != nil {
		return stageplan.Plan{}, err
	}
	if topic := strings.Split(config.AlarmTopic, ":"); len(topic) > 1 && topic[3] != config.Region {
		return stageplan.Plan{}, refuse("context.alarmTopic", config.AlarmTopic, "a topic in "+config.Region+", where the alarms are")
	}
	if f.Production {
		if err := checkProduction(config); err != nil {
			return stageplan.Plan{}, err
		}
	}
	return stageplan.Plan{
		Stage: name, Account: config.Account, Region: config.Region, Stack: config.Stack, Arch: string(config.Arch),
		Protected: config.TerminationProtection, Context: context,
	}, nil
}

// fields are the contexts that fields of the file set.
var fields = []string{"account", "region", "stack", "stage", "owner"}

// localOnly are contexts of a stack on an emulator, and build, which is where a checkout has its binaries.
var localOnly = []string{"local", "localWebhookSecret", "dynamodbEndpoint", "retainTables", "build"}

// context is the whole CDK context of the stage, as text. Placeholders are refused before anything else, because other rules
// would only repeat it.
func (f file) context(name string) (map[string]string, error) {
	own := map[string]string{"account": f.Account, "region": f.Region, "stack": f.Stack, "owner": f.Owner}
	refused := placeholders("", own)
	context, failed := texts(f.Context)
	refused = append(refused, placeholders("context.", context)...)
	if refused != nil {
		return nil, errors.Join(refused...)
	}
	for _, field := range slices.Sorted(maps.Keys(own)) {
		if own[field] == "" {
			failed = append(failed, refuse(field, "", "a value: this field is required"))
		}
	}
	maps.Copy(context, own)
	context["stage"] = name
	return context, errors.Join(failed...)
}

// texts is the context as the command line has it. A number keeps its digits.
func texts(values map[string]jsontext.Value) (context map[string]string, refused []error) {
	context = map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value := values[key]
		switch {
		case slices.Contains(fields, key):
			refused = append(refused, refuse("context."+key, value.String(), "nothing: "+ownField(key)))
		case slices.Contains(localOnly, key): // its value may be a secret
			refused = append(refused, fmt.Errorf("context.%s is refused: it is for a local stack only", key))
		case value.Kind() == '"':
			text, err := jsontext.AppendUnquote(nil, value)
			if err != nil {
				refused = append(refused, refuse("context."+key, value.String(), "a string"))
			}
			context[key] = string(text)
		case slices.Contains([]jsontext.Kind{'0', 't', 'f', '{'}, value.Kind()): // a map stays JSON
			context[key] = value.String()
		default:
			refused = append(refused, refuse("context."+key, value.String(), "a string, a number, true, false or a map"))
		}
	}
	return context, refused
}

// ownField says where the value of a context stands that is no context of the file's.
func ownField(key string) string {
	if key == "stage" {
		return "the stage's name is the file's"
	}
	return key + " is a field beside context"
}

// placeholders refuses the values that infra/stages/example.json has instead of real ones: <what to write>.
func placeholders(prefix string, values map[string]string) (refused []error) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if value := values[key]; strings.HasPrefix(value, "<") && strings.HasSuffix(value, ">") {
			refused = append(refused, fmt.Errorf("%s%s=%q is a placeholder: write this stage's own value", prefix, key, value))
		}
	}
	return refused
}

// checked reads the context as the CDK app does, and refuses the names that it did not ask for.
func checked(context map[string]string) (stack.Config, error) {
	known := map[string]bool{}
	config, err := stack.Read(func(key string) any {
		known[key] = true
		if value, ok := context[key]; ok {
			return value
		}
		return nil
	}, func(string) string { return "" })
	refused := []error{err}
	for _, key := range slices.Sorted(maps.Keys(context)) {
		if !known[key] {
			refused = append(refused, refuse("context", key, strings.Join(contexts(known), ", ")))
		}
	}
	return config, errors.Join(refused...)
}

// contexts are those that a file may have.
func contexts(known map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(key string) bool {
		return slices.Contains(fields, key) || slices.Contains(localOnly, key)
	})
}

func refuse(field, value, allowed string) error {
	return fmt.Errorf("%s=%q is refused; allowed: %s", field, value, allowed)
}
