package lambdatest

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
)

// Secret keeps a text in an emulator's Secrets Manager, where functions look from now on, under the name of the test; replace
// puts another one in its place.
func Secret(t *testing.T, text string) (id string, replace func(string)) {
	t.Helper()
	endpoint := dynamotest.Endpoint(t, dynamotest.Ministack)
	t.Setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", endpoint)
	client := secretsmanager.New(secretsmanager.Options{
		BaseEndpoint: &endpoint, Region: "us-east-1",
		Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("test", "test", "")),
	})
	id = "payments/" + t.Name()
	if _, err := client.CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{Name: &id, SecretString: &text}); err != nil {
		t.Fatal(err)
	}
	return id, func(text string) {
		t.Helper()
		if _, err := client.PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{SecretId: &id, SecretString: &text}); err != nil {
			t.Fatal(err)
		}
	}
}
