// Package secretstore reads what an environment only names: anybody who may read a function's configuration reads its environment.
package secretstore

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/credential"
	"github.com/idem-go/idem-aws/idem/lambdaapp/secret"
)

// Source returns what reads the text of a secret as secret.Source does. The variable is the one that names the secret, by name or ARN, for
// errors; none shows a secret.
func Source(ctx context.Context, variable, id string) (func(context.Context) (string, error), error) {
	sdk, err := config.AWS(ctx)
	if err != nil {
		return nil, err
	}
	read := secret.Source(sdk, id)
	return func(ctx context.Context) (string, error) {
		text, err := read(ctx)
		if err != nil {
			return "", fmt.Errorf("configuration: %s = %q: %w", variable, id, err)
		}
		return text, nil
	}, nil
}

// Scope returns the secret that the records' names are keyed with; nil where none is configured. No error shows it.
func Scope(ctx context.Context, cfg config.Scopes) ([]byte, error) {
	if cfg.ScopeSecretID == "" {
		return cfg.ScopeSecret, nil
	}
	sdk, err := config.AWS(ctx)
	if err != nil {
		return nil, err
	}
	return secret.Scope(ctx, sdk, cfg.ScopeSecretID)
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
