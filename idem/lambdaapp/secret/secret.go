// Package secret reads secrets of AWS Secrets Manager. An environment only names them: anybody who may read a function's
// configuration reads its environment.
//
// Use it for idem.Config.ScopeSecret, before lambdaapp.New:
//
//	scope, err := secret.Scope(ctx, aws, os.Getenv(environment.ScopeSecretID))
//	// …
//	return lambdaapp.Config{AWS: aws, Engine: idem.Config{ScopeSecret: scope}}, err
//
// A service that has its secrets elsewhere does not need it.
package secret

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
)

// timeout bounds one reading, with what the SDK tries again. A function has 10 s for its start.
const timeout = 3 * time.Second

// Source returns what reads the text of a secret as it is now, without the space around it: a file ends with a line feed. The id is the
// secret's name or its whole ARN. One reading takes 3 s at the most. Its errors are the SDK's, and show no secret. It may be called concurrently.
func Source(cfg aws.Config, id string) func(context.Context) (string, error) {
	client := secretsmanager.NewFromConfig(cfg)
	return func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		out, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &id})
		if err != nil {
			return "", err
		}
		return strings.TrimSpace(aws.ToString(out.SecretString)), nil
	}
}

// Scope reads the secret that the names of records are keyed with (idem.Config.ScopeSecret): base64 of 32 random bytes or more, as
// `openssl rand -base64 32` prints them. The id is what the variable environment.ScopeSecretID has. Where it is empty, there is none,
// and the result is nil. What can't be read, or is no base64, is an error, and never taken for none. No error shows the secret.
func Scope(ctx context.Context, cfg aws.Config, id string) ([]byte, error) {
	if id == "" {
		return nil, nil
	}
	text, err := Source(cfg, id)(ctx)
	if err != nil {
		return nil, fmt.Errorf("configuration: %s = %q: %w", environment.ScopeSecretID, id, err)
	}
	scope, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(scope) == 0 {
		return nil, fmt.Errorf("configuration: %s = %q: must hold base64", environment.ScopeSecretID, id)
	}
	return scope, nil
}
