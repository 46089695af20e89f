package awskms_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/seal/awskms"
	"github.com/idem-go/idem-aws/idem/seal/tablekeys"
	"github.com/idem-go/idem-aws/idem/storage"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func client(url string) *kms.Client {
	return kms.New(kms.Options{
		BaseEndpoint: &url, Region: "us-east-1",
		Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("test", "test", "")),
	})
}

// newWrapper makes a KMS key on the emulator and a wrapper under it.
func newWrapper(t *testing.T, kmsClient *kms.Client) (*awskms.Wrapper, string) {
	t.Helper()
	made, err := kmsClient.CreateKey(t.Context(), &kms.CreateKeyInput{})
	ok(t, err)
	w, err := awskms.New(kmsClient, *made.KeyMetadata.KeyId)
	ok(t, err)
	return w, *made.KeyMetadata.KeyId
}

var secret = bytes.Repeat([]byte{42}, seal.KeyBytes)

func TestAWrappedKeyOpensForItsTenantAlone(t *testing.T) {
	kmsClient := client(dynamotest.Endpoint(t, dynamotest.Ministack))
	w, id := newWrapper(t, kmsClient)
	wrapped, err := w.Wrap(t.Context(), "ada", secret)
	ok(t, err)
	if bytes.Contains(wrapped, secret) {
		t.Error("it is not wrapped")
	}
	if got, err := w.Unwrap(t.Context(), "ada", wrapped); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("got %x, %v", got, err)
	}
	var invalid *types.InvalidCiphertextException
	if got, err := w.Unwrap(t.Context(), "bob", wrapped); !errors.As(err, &invalid) {
		t.Errorf("another tenant: %x, %v", got, err)
	}
	other, _ := newWrapper(t, kmsClient)
	// AWS says IncorrectKeyException; the emulator decrypts to noise.
	if got, err := other.Unwrap(t.Context(), "ada", wrapped); err == nil && bytes.Equal(got, secret) {
		t.Error("another KMS key opened it")
	}
	_, err = kmsClient.DisableKey(t.Context(), &kms.DisableKeyInput{KeyId: &id})
	ok(t, err)
	var disabled *types.DisabledException
	if got, err := w.Unwrap(t.Context(), "ada", wrapped); !errors.As(err, &disabled) {
		t.Errorf("a disabled KMS key: %x, %v", got, err)
	}
	if _, err := w.Wrap(t.Context(), "ada", secret); !errors.As(err, &disabled) {
		t.Errorf("a disabled KMS key: %v", err)
	}
}

// All of it: a store whose tenants' keys lie in a table, wrapped by KMS. A KMS key that is switched off is trouble and no
// erasure, and passes; an erasure does not.
func TestSealingUnderKMS(t *testing.T) {
	url := dynamotest.Endpoint(t, dynamotest.Ministack)
	kmsClient, tables := client(url), dynamotest.Client(url)
	w, id := newWrapper(t, kmsClient)
	ok(t, dynamotest.CreateTable(t.Context(), tables, "kms-keys", schema.Keys()))
	keys, err := tablekeys.New(tables, tablekeys.Config{Table: "kms-keys", Wrapper: w})
	ok(t, err)
	inner, err := memstore.New(memstore.Config{})
	ok(t, err)
	process := func() *seal.Store {
		store, err := seal.New(inner, seal.Config{Keys: keys, KeyTimeout: 10 * time.Second})
		ok(t, err)
		return store
	}
	scope := idem.Scope{Tenant: "ada", Operation: "orders.create", Key: "k"}.RecordKey()
	now := time.Now().UTC()
	r := storage.Record{
		Key: scope, State: storage.StateCompleted, OperationID: "op_1", Epoch: 1, Owner: "owner", Tenant: "ada", Kind: storage.KindOptimistic,
		Response: storage.Response{Status: 201, Body: []byte("secret")}, DoneAt: now, ExpiresAt: now.Add(time.Hour), SchemaVersion: storage.SchemaVersion,
	}
	ok(t, process().Insert(t.Context(), r, now))
	read := func() (storage.Record, error) {
		stored, err := inner.Get(t.Context(), scope)
		ok(t, err)
		return process().LoadResponse(t.Context(), *stored)
	}
	if got, err := read(); err != nil || string(got.Response.Body) != "secret" {
		t.Errorf("got %q, %v", got.Response.Body, err)
	}

	_, err = kmsClient.DisableKey(t.Context(), &kms.DisableKeyInput{KeyId: &id})
	ok(t, err)
	var down *seal.KeysError
	if _, err := read(); !errors.As(err, &down) {
		t.Errorf("while the KMS key is disabled: %v", err)
	}
	_, err = kmsClient.EnableKey(t.Context(), &kms.EnableKeyInput{KeyId: &id})
	ok(t, err)
	if got, err := read(); err != nil || string(got.Response.Body) != "secret" {
		t.Errorf("enabled again: %q, %v", got.Response.Body, err)
	}

	ok(t, keys.Erase(t.Context(), "ada"))
	if _, err := read(); !errors.Is(err, storage.ErrErased) {
		t.Errorf("erased: %v", err)
	}
}

func TestAnUnreachableKMSIsAnError(t *testing.T) {
	w, err := awskms.New(client("http://127.0.0.1:1"), "key")
	ok(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := w.Wrap(ctx, "ada", secret); err == nil {
		t.Error("wrapped by nobody")
	}
	if _, err := w.Unwrap(ctx, "ada", []byte("wrapped")); err == nil {
		t.Error("unwrapped by nobody")
	}
}

func TestNewNamesWhatItRefuses(t *testing.T) {
	var rejected *idem.ConfigError
	if _, err := awskms.New(nil, "key"); !errors.As(err, &rejected) || rejected.Field != "client" {
		t.Errorf("no client: %v", err)
	}
	for _, id := range []string{
		"", "alias/idem", "arn:aws:kms:eu-central-1:123456789012:alias/idem", "arn:aws-us-gov:kms:us-gov-west-1:123456789012:alias/a/b",
	} {
		if _, err := awskms.New(client("http://127.0.0.1:1"), id); !errors.As(err, &rejected) || rejected.Field != "keyID" {
			t.Errorf("key %q: %v", id, err)
		}
	}
	for _, id := range []string{
		"1234abcd-12ab-34cd-56ef-1234567890ab", "mrk-1234abcd12ab34cd56ef1234567890ab",
		"arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
	} {
		_, err := awskms.New(client("http://127.0.0.1:1"), id)
		ok(t, err)
	}
}
