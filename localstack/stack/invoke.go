package stack

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// Invoke calls one function (api, authorizer, worker, sweep) of the running stack with the event in a file, and prints its
// log and its answer. An answer that is a function error is an error.
func (s *Stack) Invoke(ctx context.Context, function, eventFile string) error {
	variables, err := ReadVariables(s.options.EnvFile)
	if err != nil {
		return err
	}
	name := variables[functionPrefix+strings.ToUpper(function)]
	if name == "" {
		return fmt.Errorf("invoke: the stack in %s has no function %q", s.relative(s.options.EnvFile), function)
	}
	event, err := os.ReadFile(eventFile)
	if err != nil {
		return fmt.Errorf("invoke: %w", err)
	}
	config, err := localConfig(variables[variableEndpoint])
	if err != nil {
		return err
	}
	result, err := lambda.NewFromConfig(config).Invoke(ctx, &lambda.InvokeInput{
		FunctionName: aws.String(name), Payload: event, LogType: types.LogTypeTail,
	})
	if err != nil {
		return fmt.Errorf("invoke %s: %w", function, err)
	}
	log, _ := base64.StdEncoding.DecodeString(aws.ToString(result.LogResult)) // a log that is not base64 is none
	s.out.Line("%s", strings.TrimRight(string(log), "\n"))
	s.out.Line("%s", result.Payload)
	if result.FunctionError != nil {
		return errors.New("invoke " + function + ": " + *result.FunctionError)
	}
	return nil
}
