// Package secretstore reads what an environment only names: whoever may read a function's configuration reads its environment.
package secretstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/idem-go/idem-aws/functions/internal/config"
)

// Source returns what reads the text of a secret of AWS Secrets Manager as it is now, without the space around it: a file
// ends with a line feed. The variable is the one that names the secret, by name or ARN, for errors; none shows a secret.
func Source(ctx context.Context, variable, id string) (func(context.Context) (string, error), error) {
	sdk, err := config.AWS(ctx)
	if err != nil {
		return nil, err
	}
	client := secretsmanager.NewFromConfig(sdk)
	return func(ctx context.Context) (string, error) {
		out, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &id})
		if err != nil {
			return "", fmt.Errorf("configuration: %s = %q: %w", variable, id, err)
		}
		return strings.TrimSpace(aws.ToString(out.SecretString)), nil
	}, nil
}

// Scope returns the secret that the records' names are keyed with; nil where none is configured. No error shows it.
func Scope(ctx context.Context, cfg config.Scopes) ([]byte, error) {
	if cfg.ScopeSecretID == "" {
		return cfg.ScopeSecret, nil
	}
	source, err := Source(ctx, "SCOPE_SECRET_ID", cfg.ScopeSecretID)
	if err != nil {
		return nil, err
	}
	text, err := source(ctx)
	if err != nil {
		return nil, err
	}
	var secret config.Base64
	if err := secret.UnmarshalText([]byte(text)); err != nil || len(secret) == 0 { // never taken for none
		return nil, fmt.Errorf("configuration: SCOPE_SECRET_ID = %q: must hold base64", cfg.ScopeSecretID)
	}
	return secret, nil
}
