package stack

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/idem-go/idem-aws/internal/shellvalue"
	"github.com/idem-go/idem-aws/internal/token"
)

// Variables of the env file that code reads back.
const (
	variableAPI           = "API_URL"
	variableEndpoint      = "AWS_ENDPOINT_URL"
	variableProvider      = "PROVIDER_URL"
	variableTokenA        = "TENANT_A_TOKEN"
	variableTokenB        = "TENANT_B_TOKEN"
	variableWebhookSecret = "WEBHOOK_SECRET"
	functionPrefix        = "FUNCTION_"
	variableCode          = "CODE_DIRECTORY"
	variableFaultProxy    = "FAULT_PROXY_URL"
	variableCollector     = "COLLECTOR_URL"
)

// onOff is an option's value as the stack's command takes it: a shell that has read the env file gives it to each make that follows.
func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// Variables are the KEY=value lines of an env file. A value that a shell would change is in single quotes there.
type Variables map[string]string

// ReadVariables reads an env file; one that is not there is empty. Lines without "=" and comments are ignored.
func ReadVariables(path string) (Variables, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Variables{}, nil
	}
	if err != nil {
		return nil, err
	}
	variables := Variables{}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		name, value, found := strings.Cut(lines.Text(), "=")
		if found && !strings.HasPrefix(name, "#") {
			variables[name] = shellvalue.Unquote(value)
		}
	}
	return variables, nil
}

// Write replaces the file at path, readable by its owner only: it holds tokens.
func (v Variables) Write(path string) error {
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if strings.ContainsAny(v[name], "\r\n\x00") {
			return fmt.Errorf("write %s: the value of %s is not one line", path, name)
		}
		fmt.Fprintf(&text, "%s=%s\n", name, shellvalue.Quote(v[name]))
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, text.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// secret returns the variable's value, or a new random one: what a client was given keeps working when the stack is
// brought up again.
func (v Variables) secret(name, prefix string) string {
	if value := v[name]; value != "" {
		return value
	}
	return prefix + rand.Text()
}

// apiKey is secret for an API key. One of an earlier form, which the application would refuse, is replaced.
func (v Variables) apiKey(name string) string {
	if key := v[name]; token.WellFormed(key) {
		return key
	}
	return token.New(token.Test)
}
