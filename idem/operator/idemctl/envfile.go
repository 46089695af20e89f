package idemctl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"

	"github.com/idem-go/idem-aws/internal/shellvalue"
)

// environment sets the variables of the file that --env-file names; what is set already stays.
func (c *commands) environment() error {
	if c.EnvFile == "" {
		return nil
	}
	text, err := os.ReadFile(c.EnvFile)
	if err != nil {
		return &usageError{err.Error(), "Give --env-file a file that can be read."}
	}
	variables, err := variablesIn(text)
	if err != nil {
		return &usageError{
			fmt.Sprintf("%s can't be read as the outputs of a stack: %v.", c.EnvFile, err),
			"Give --env-file what cdk deploy --outputs-file has written for one stack, or lines NAME=value.",
		}
	}
	for name, value := range variables {
		if _, set := os.LookupEnv(name); set {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return &usageError{fmt.Sprintf("%s: %v", c.EnvFile, err), "Each line of the file must be NAME=value."}
		}
	}
	return nil
}

// variablesIn are the variables of a file of lines NAME=value, whose value may be in single quotes, or of what
// `cdk deploy --outputs-file` writes.
func variablesIn(text []byte) (map[string]string, error) {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return variablesOfOutputs(text)
	}
	variables := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, found := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
		if _, earlier := variables[name]; found && !earlier && !strings.HasPrefix(name, "#") {
			variables[name] = shellvalue.Unquote(value)
		}
	}
	return variables, nil
}

// variablesOfOutputs are the outputs of the one stack of a file of the CDK, each under its variable's name.
func variablesOfOutputs(text []byte) (map[string]string, error) {
	var stacks map[string]map[string]string
	if err := json.Unmarshal(text, &stacks); err != nil {
		return nil, err
	}
	if len(stacks) != 1 {
		return nil, errors.New("it must have one stack, and has " + fmt.Sprint(len(stacks)))
	}
	variables := map[string]string{}
	for _, outputs := range stacks {
		for output, value := range outputs {
			variables[variableOf(output)] = value
		}
	}
	return variables, nil
}

// variableOf is the variable of an output, whose name may have letters and digits only: OrdersTable is ORDERS_TABLE.
func variableOf(output string) string {
	var name strings.Builder
	for i, r := range output {
		if i > 0 && unicode.IsUpper(r) {
			name.WriteByte('_')
		}
		name.WriteRune(unicode.ToUpper(r))
	}
	return name.String()
}
