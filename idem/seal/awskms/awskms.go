// Package awskms wraps the data keys of package seal with AWS KMS. [New] returns the Wrapper that tablekeys.Config
// takes. One symmetric KMS key serves all tenants. The tenant is the encryption context, so a wrapped key can only be
// opened for its own tenant, and CloudTrail shows whose key was used.
//
// Use it with package tablekeys on AWS. A service with another key management system implements the interface
// seal.Wrapper with that. A role that seals and opens needs kms:Encrypt and kms:Decrypt on the key. KMS's own rotation keeps the
// key's id and needs no further step.
package awskms

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/idem-go/idem-aws/idem"
)

// Wrapper is a seal.Wrapper on AWS KMS. It is safe for concurrent use.
type Wrapper struct {
	client *kms.Client
	keyID  string
}

// New returns a wrapper under the symmetric KMS key with that id or ARN, or an [*idem.ConfigError]. An alias is refused: it may be given
// to another key, which unwraps nothing of what was wrapped before, and then no tenant can be read.
func New(client *kms.Client, keyID string) (*Wrapper, error) {
	switch {
	case client == nil:
		return nil, &idem.ConfigError{Field: "client", Value: nil, Rule: "must be a KMS client"}
	case keyID == "":
		return nil, &idem.ConfigError{Field: "keyID", Value: `""`, Rule: "must be a KMS key's id or ARN"}
	case isAlias(keyID):
		return nil, &idem.ConfigError{Field: "keyID", Value: fmt.Sprintf("%q", keyID), Rule: "must be a KMS key's id or ARN, and no alias: moved to another key, it would leave every tenant unreadable (aws kms describe-key tells its key)"}
	}
	return &Wrapper{client, keyID}, nil
}

// isAlias says that it is the name or the ARN of an alias, which says nothing of the key for good.
func isAlias(keyID string) bool {
	return strings.HasPrefix(keyID, "alias/") || strings.HasPrefix(keyID, "arn:") && strings.Contains(keyID, ":alias/")
}

// boundTo is the encryption context. It never changes: what was wrapped under another one would not open.
func boundTo(tenant string) map[string]string { return map[string]string{"tenant": tenant} }

// Wrap implements seal.Wrapper. It returns the SDK's errors.
func (w *Wrapper) Wrap(ctx context.Context, tenant string, secret []byte) ([]byte, error) {
	out, err := w.client.Encrypt(ctx, &kms.EncryptInput{KeyId: &w.keyID, Plaintext: secret, EncryptionContext: boundTo(tenant)})
	if err != nil {
		return nil, fmt.Errorf("awskms: encrypt: %w", err)
	}
	return out.CiphertextBlob, nil
}

// Unwrap implements seal.Wrapper. It returns the SDK's errors. It names the key, so that nobody can slip in a data key that
// was wrapped under one of his own.
func (w *Wrapper) Unwrap(ctx context.Context, tenant string, wrapped []byte) ([]byte, error) {
	out, err := w.client.Decrypt(ctx, &kms.DecryptInput{KeyId: &w.keyID, CiphertextBlob: wrapped, EncryptionContext: boundTo(tenant)})
	if err != nil {
		return nil, fmt.Errorf("awskms: decrypt: %w", err)
	}
	return out.Plaintext, nil
}
