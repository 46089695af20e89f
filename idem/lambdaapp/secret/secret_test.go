package secret_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/lambdaapp/secret"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/sdkhttp"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// emulated is how the emulator is reached.
func emulated(t *testing.T) aws.Config {
	t.Helper()
	endpoint := dynamotest.Endpoint(t, dynamotest.Ministack)
	return aws.Config{
		BaseEndpoint: &endpoint, Region: "us-east-1", HTTPClient: sdkhttp.BufferedBody(nil),
		Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("test", "test", "")),
	}
}

// kept puts the text into a secret of the test's, and returns its name.
func kept(t *testing.T, cfg aws.Config, text string) string {
	t.Helper()
	client, id := secretsmanager.NewFromConfig(cfg), "shop/"+t.Name()
	_, err := client.CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{Name: &id, SecretString: &text})
	if exists := (*types.ResourceExistsException)(nil); errors.As(err, &exists) {
		_, err = client.PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{SecretId: &id, SecretString: &text})
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// What the page has a person store is what an engine takes: 32 bytes in base64, with the line feed that openssl prints.
func TestAScopeSecretIsReadByItsName(t *testing.T) {
	cfg, want := emulated(t), bytes.Repeat([]byte{7}, 32)
	got, err := secret.Scope(t.Context(), cfg, kept(t, cfg, base64.StdEncoding.EncodeToString(want)+"\n"))
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := idem.New(store, idem.Config{ScopeSecret: got}); err != nil {
		t.Error(err)
	}
}

// Where no secret is named there is none; what is named and can't be read is never taken for none, because records would then get other names.
func TestANamedSecretIsNeverTakenForNone(t *testing.T) {
	if none, err := secret.Scope(t.Context(), aws.Config{}, ""); none != nil || err != nil {
		t.Errorf("without a name: %d bytes, %v", len(none), err)
	}
	cfg := emulated(t)
	for said, id := range map[string]string{
		`SCOPE_SECRET_ID = "nowhere": `: "nowhere",
		"must hold base64":              kept(t, cfg, "hunter2 is no base64"),
	} {
		got, err := secret.Scope(t.Context(), cfg, id)
		if got != nil || err == nil || !strings.Contains(err.Error(), said) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %d bytes, %v", id, len(got), err)
		}
	}
	if got, err := secret.Scope(t.Context(), cfg, kept(t, cfg, " \n")); got != nil || err == nil {
		t.Errorf("an empty one: %d bytes, %v", len(got), err)
	}
}

// A source reads the secret as it is now.
func TestASecretIsReadAsItIsNow(t *testing.T) {
	cfg := emulated(t)
	read := secret.Source(cfg, kept(t, cfg, " the first one\n"))
	if text, err := read(t.Context()); err != nil || text != "the first one" {
		t.Errorf("%q, %v", text, err)
	}
	kept(t, cfg, "the next one")
	if text, err := read(t.Context()); err != nil || text != "the next one" {
		t.Errorf("%q, %v", text, err)
	}
}
