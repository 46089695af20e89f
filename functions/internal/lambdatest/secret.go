package lambdatest

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/sdkhttp"
)

// Secret keeps a text in an emulator's Secrets Manager, where functions look from now on, under the name of the test; replace
// puts another one in its place.
func Secret(t *testing.T, text string) (id string, replace func(string)) {
	t.Helper()
	endpoint := dynamotest.Endpoint(t, dynamotest.Ministack)
	t.Setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", endpoint)
	client := secretsmanager.New(secretsmanager.Options{
		BaseEndpoint: &endpoint, Region: "us-east-1", HTTPClient: sdkhttp.BufferedBody(nil),
		Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("test", "test", "")),
	})
	id = "payments/" + t.Name()
	replace = func(text string) {
		t.Helper()
		if _, err := client.PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{SecretId: &id, SecretString: &text}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := client.CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{Name: &id, SecretString: &text})
	var exists *types.ResourceExistsException
	switch {
	case errors.As(err, &exists): // by an earlier run of the test, or by a first try whose reply was lost
		replace(text)
	case err != nil:
		t.Fatal(err)
	}
	return id, replace
}
