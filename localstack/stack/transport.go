package stack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/idem-go/idem-aws/idem/sdkhttp"
)

// An emulator that holds requests against policies denies what is not sent by TLS where a policy demands that: everything, because it is
// reached by plain HTTP. So the two kinds of policies that demand it are replaced: those of the CDK's bucket, and of queues.

// AssetsBucket is where the CDK's bootstrap stack of an emulator keeps what is deployed.
const AssetsBucket = "cdk-hnb659fds-assets-000000000000-" + localRegion

// admitPlainBucket lets the CDK publish assets without TLS.
func admitPlainBucket(ctx context.Context, endpoint string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, endpoint+"/"+AssetsBucket+"?policy=", nil)
	if err != nil {
		return err
	}
	nothing := sha256.Sum256(nil)
	request.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(nothing[:]))
	root := aws.Credentials{AccessKeyID: localCredentials, SecretAccessKey: localCredentials}
	if err := v4.NewSigner().SignHTTP(ctx, root, request, hex.EncodeToString(nothing[:]), "s3", localRegion, time.Now()); err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		return fmt.Errorf("delete the policy of bucket %s: %s", AssetsBucket, response.Status)
	}
	return nil
}

// overTLS says of requests what a proxy says that has ended their TLS.
type overTLS struct{}

func (overTLS) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Forwarded-Proto", "https")
	return http.DefaultTransport.RoundTrip(r)
}

// batches is the policy of each queue instead. On AWS a batch needs the permission of a single message; ministack asks for actions that
// AWS does not know, and no role has.
const batches = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Resource":"*",` +
	`"Action":["sqs:SendMessageBatch","sqs:DeleteMessageBatch","sqs:ChangeMessageVisibilityBatch"]}]}`

// AdmitPlainQueues lets the functions of an emulator with Options.IAM use its queues without TLS: after each deployment. Who may
// send, delete and give back batches of messages is not enforced then.
func AdmitPlainQueues(ctx context.Context, endpoint string) error {
	config, err := localConfig(endpoint)
	if err != nil {
		return err
	}
	config.HTTPClient = sdkhttp.BufferedBody(&http.Client{Transport: overTLS{}})
	client := sqs.NewFromConfig(config)
	pages := sqs.NewListQueuesPaginator(client, &sqs.ListQueuesInput{MaxResults: aws.Int32(1000)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, queue := range page.QueueUrls {
			if _, err := client.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &queue, Attributes: map[string]string{"Policy": batches}}); err != nil {
				return err
			}
		}
	}
	return nil
}
