package secretstore_test

import (
	"os"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/functions/internal/secretstore"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

func TestASecretIsReadAsItIsNow(t *testing.T) {
	for name, value := range map[string]string{"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"} {
		t.Setenv(name, value)
	}
	id, replace := lambdatest.Secret(t, " the first one\n")
	read, err := secretstore.Source(t.Context(), "THE_SECRET_ID", id)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := read(t.Context()); err != nil || text != "the first one" {
		t.Errorf("%q, %v", text, err)
	}
	replace("the next one")
	if text, err := read(t.Context()); err != nil || text != "the next one" {
		t.Errorf("%q, %v", text, err)
	}
	nowhere, err := secretstore.Source(t.Context(), "THE_SECRET_ID", "nowhere")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := nowhere(t.Context()); err == nil || !strings.Contains(err.Error(), `THE_SECRET_ID = "nowhere"`) {
		t.Errorf("%q, %v", text, err)
	}
}
