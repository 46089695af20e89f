// Package secretstore reads what an environment only names: anybody who may read a function's configuration reads its environment.
package secretstore

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/credential"
)

// timeout bounds one reading, with what the SDK tries again. A function has 10 s for its start.
const timeout = 3 * time.Second

// Source returns what reads the text of a secret of AWS Secrets Manager as it is now, without the space around it: a file ends
// with a line feed. One reading takes 3 s at the most. The variable is the one that names the secret, by name or ARN, for
// errors; none shows a secret.
func Source(ctx context.Context, variable, id string) (func(context.Context) (string, error), error) {
	sdk, err := config.AWS(ctx)
	if err != nil {
		return nil, err
	}
	client := secretsmanager.NewFromConfig(sdk)
	return func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
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

// Provider returns what puts the provider's credential on each request of the transport that it is given; nil where none is
// configured. It reads the credential. No error shows it.
func Provider(ctx context.Context, cfg config.Provider, logger *slog.Logger) (func(http.RoundTripper) http.RoundTripper, error) {
	if cfg.CredentialID == "" {
		return nil, nil
	}
	source, err := Source(ctx, "PROVIDER_CREDENTIAL_ID", cfg.CredentialID)
	if err != nil {
		return nil, err
	}
	credentials, err := credential.New(ctx, credential.Config{Source: source, Age: cfg.CredentialAge, Logger: logger})
	if err != nil {
		return nil, fmt.Errorf("configuration: PROVIDER_CREDENTIAL_ID = %q, PROVIDER_CREDENTIAL_AGE = %v: %w", cfg.CredentialID, cfg.CredentialAge, err)
	}
	return credentials.Transport, nil
}
