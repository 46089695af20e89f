//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// user is one of the emulator's IAM, with keys and no policy.
type user struct {
	*testing.T
	name string
	keys aws.Credentials
}

func newUser(t *testing.T, name string) user {
	t.Helper()
	u := user{T: t, name: name + "-" + run}
	u.iam("CreateUser", nil)
	var made struct {
		AccessKeyID string `xml:"CreateAccessKeyResult>AccessKey>AccessKeyId"`
		Secret      string `xml:"CreateAccessKeyResult>AccessKey>SecretAccessKey"`
	}
	must(t, xml.Unmarshal(u.iam("CreateAccessKey", nil), &made))
	u.keys = aws.Credentials{AccessKeyID: made.AccessKeyID, SecretAccessKey: made.Secret}
	return u
}

// iam calls IAM's query API about the user, as root.
func (u user) iam(action string, more url.Values) []byte {
	u.Helper()
	form := url.Values{"Action": {action}, "Version": {"2010-05-08"}, "UserName": {u.name}}
	for name, values := range more {
		form[name] = values
	}
	body := []byte(form.Encode())
	request, err := http.NewRequestWithContext(u.Context(), http.MethodPost, deployed.variables["AWS_ENDPOINT_URL"]+"/", bytes.NewReader(body))
	must(u.T, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	hash := sha256.Sum256(body)
	root := aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}
	must(u.T, v4.NewSigner().SignHTTP(context.Background(), root, request, hex.EncodeToString(hash[:]), "iam", "us-east-1", time.Now()))
	response, err := http.DefaultClient.Do(request)
	must(u.T, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	must(u.T, err)
	if response.StatusCode != http.StatusOK {
		u.Fatalf("%s: %s\n%s", action, response.Status, answer)
	}
	return answer
}

// Each test of this package runs with functions that may do what their roles' policies allow, and nothing else: a transaction is held
// against what each of its items does.
func TestWhatNoPolicyAllowsIsDenied(t *testing.T) {
	t.Parallel()
	u := newUser(t, "nobody")
	client := dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(deployed.variables["AWS_ENDPOINT_URL"]), Region: "us-east-1", RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(u.keys.AccessKeyID, u.keys.SecretAccessKey, ""),
	})
	name := deployed.variables["IDEMPOTENCY_TABLE"]
	check := func() error {
		_, err := client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{ConditionCheck: &types.ConditionCheck{
			TableName: &name, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "none"}}, ConditionExpression: aws.String("attribute_not_exists(pk)"),
		}}}})
		return err
	}
	allow := func(actions string) {
		u.iam("PutUserPolicy", url.Values{"PolicyName": {"p"}, "PolicyDocument": {fmt.Sprintf(
			`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":%s,"Resource":"arn:aws:dynamodb:us-east-1:000000000000:table/%s"}]}`, actions, name)}})
	}
	for _, denied := range []string{`["dynamodb:DescribeTable"]`, `["dynamodb:GetItem","dynamodb:PutItem","dynamodb:UpdateItem"]`} {
		allow(denied)
		if refused := (smithy.APIError)(nil); !errors.As(check(), &refused) || refused.ErrorCode() != "AccessDeniedException" {
			t.Errorf("with %s: %v", denied, check())
		}
	}
	allow(`["dynamodb:ConditionCheckItem"]`)
	must(t, check())
}
