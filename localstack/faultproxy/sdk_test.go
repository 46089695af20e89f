package faultproxy_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/idem-go/idem-aws/idem/sdkhttp"
	"github.com/idem-go/idem-aws/localstack/faultproxy"
)

// sdk is the real client, sending each request once.
func (b bench) sdk() *dynamodb.Client { return b.sdkWith(aws.NopRetryer{}) }

// sdkWith is the real client; nil means its own retries.
func (b bench) sdkWith(retries aws.Retryer) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(b.URL), Region: "us-east-1", Retryer: retries, HTTPClient: sdkhttp.BufferedBody(nil),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
}

var item = map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "1"}}

func single(t *testing.T, b bench) error {
	t.Helper()
	_, err := b.sdk().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("t"), Item: item})
	return err
}

func transaction(t *testing.T, b bench) error {
	t.Helper()
	table := aws.String("t")
	_, err := b.sdk().TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: table, Item: item}},
		{Delete: &types.Delete{TableName: table, Key: item}},
		{ConditionCheck: &types.ConditionCheck{TableName: table, Key: item, ConditionExpression: aws.String("attribute_exists(id)")}},
	}})
	return err
}

func read(t *testing.T, b bench) error {
	t.Helper()
	_, err := b.sdk().GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("t"), Key: item})
	return err
}

// reasons are the codes of a cancelled transaction.
func reasons(err error) []string {
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) {
		return nil
	}
	var codes []string
	for _, r := range canceled.CancellationReasons {
		codes = append(codes, aws.ToString(r.Code))
	}
	return codes
}

func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

func TestTheSDKUnderstandsConflicts(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Fault: faultproxy.Conflict, Item: 1})
	if err := single(t, b); !is[*types.TransactionConflictException](err) {
		t.Errorf("PutItem: %v", err)
	}
	_, err := b.sdk().UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String("t"), Key: item})
	if !is[*types.TransactionConflictException](err) {
		t.Errorf("UpdateItem: %v", err)
	}
	err = transaction(t, b)
	if got := reasons(err); len(got) != 3 || got[0] != "None" || got[1] != "TransactionConflict" || got[2] != "None" {
		t.Errorf("TransactWriteItems: %q, %v", got, err)
	}
	_, err = b.sdk().TransactGetItems(t.Context(), &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
		{Get: &types.Get{TableName: aws.String("t"), Key: item}}, {Get: &types.Get{TableName: aws.String("t"), Key: item}},
	}})
	if got := reasons(err); len(got) != 2 || got[1] != "TransactionConflict" {
		t.Errorf("TransactGetItems: %q, %v", got, err)
	}
	if err := read(t, b); err != nil {
		t.Errorf("a read met a conflict: %v", err)
	}
	if got := b.upstream.arrivals(); len(got) != 1 {
		t.Errorf("%d arrived, want the read", len(got))
	}
	log := b.log()
	if log[0].ErrorType != "TransactionConflictException" || log[2].ErrorType != "TransactionCanceledException" || log[2].Token == "" {
		t.Errorf("log %+v", log)
	}
	b.faults(faultproxy.Rule{Fault: faultproxy.Conflict, Item: faultproxy.EveryItem})
	if got := reasons(transaction(t, b)); !slices.Equal(got, slices.Repeat([]string{"TransactionConflict"}, 3)) {
		t.Errorf("every item: %q", got)
	}
	b.faults(faultproxy.Rule{Fault: faultproxy.Conflict, Item: 3})
	if err := transaction(t, b); err != nil {
		t.Errorf("a transaction without that item met the conflict: %v", err)
	}
	b.faults(faultproxy.Rule{Fault: faultproxy.Conflict, Code: faultproxy.ReplicatedWriteConflict})
	if err := single(t, b); !is[*types.ReplicatedWriteConflictException](err) {
		t.Errorf("another Region's write: %v", err)
	}
	if err := transaction(t, b); err != nil {
		t.Errorf("a transaction met another Region's write: %v", err)
	}
}

func TestTheSDKUnderstandsThrottling(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Fault: faultproxy.Throttle})
	for name, err := range map[string]error{"single": single(t, b), "transaction": transaction(t, b), "read": read(t, b)} {
		if !is[*types.ProvisionedThroughputExceededException](err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.faults(faultproxy.Rule{Fault: faultproxy.Throttle, Code: faultproxy.Throttling})
	for name, err := range map[string]error{"single": single(t, b), "transaction": transaction(t, b)} {
		if !is[*types.ThrottlingException](err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.faults(faultproxy.Rule{Fault: faultproxy.Throttle, Code: faultproxy.TransactionCanceled, Item: 2})
	err := transaction(t, b)
	if got := reasons(err); len(got) != 3 || got[0] != "None" || got[1] != "None" || got[2] != "ThrottlingError" {
		t.Errorf("transaction: %q, %v", got, err)
	}
	if err := single(t, b); err != nil {
		t.Errorf("a single write was answered like a transaction: %v", err)
	}
	b.faults(faultproxy.Rule{
		Fault: faultproxy.Throttle, Code: faultproxy.TransactionCanceled, Reason: faultproxy.ReasonThroughput, Item: faultproxy.EveryItem,
	})
	if got := reasons(transaction(t, b)); !slices.Equal(got, slices.Repeat([]string{"ProvisionedThroughputExceeded"}, 3)) {
		t.Errorf("every item: %q", got)
	}
	b.faults(faultproxy.Rule{Fault: faultproxy.Throttle, Code: faultproxy.RequestLimitExceeded})
	if err := single(t, b); !is[*types.RequestLimitExceeded](err) {
		t.Errorf("RequestLimitExceeded: %v", err)
	}
}

func TestTheSDKUnderstandsWhatOnlyATransactionIsToldOfItsToken(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Fault: faultproxy.InProgress})
	if err := transaction(t, b); !is[*types.TransactionInProgressException](err) {
		t.Errorf("in progress: %v", err)
	}
	b.faults(faultproxy.Rule{Fault: faultproxy.Mismatch})
	if err := transaction(t, b); !is[*types.IdempotentParameterMismatchException](err) {
		t.Errorf("mismatch: %v", err)
	}
	for name, err := range map[string]error{"PutItem": single(t, b), "GetItem": read(t, b)} {
		if err != nil {
			t.Errorf("%s has no token: %v", name, err)
		}
	}
}

func TestTheSDKUnderstandsTheRest(t *testing.T) {
	b := start(t)
	var rules []faultproxy.Rule
	for _, step := range []faultproxy.Step{
		{Fault: faultproxy.Refuse503}, {Fault: faultproxy.DropReply}, {Fault: faultproxy.CutReply}, {Fault: faultproxy.Expired},
		{Fault: faultproxy.Expired, Code: faultproxy.ExpiredToken}, {Fault: faultproxy.Fail500},
	} {
		rules = append(rules, faultproxy.Rule{Fault: step.Fault, Code: step.Code, Times: 1})
	}
	b.faults(rules...)
	var coded smithy.APIError
	if err := single(t, b); !errors.As(err, &coded) || coded.ErrorCode() != "ServiceUnavailableException" {
		t.Errorf("refuse_503: %v", err)
	}
	for _, fault := range []string{"drop_reply", "cut_reply"} {
		if err := single(t, b); err == nil || errors.As(err, &coded) {
			t.Errorf("%s: %v, want an error of the connection", fault, err)
		}
	}
	if err := single(t, b); !errors.As(err, &coded) || coded.ErrorCode() != "ExpiredTokenException" {
		t.Errorf("expired: %v", err)
	}
	if err := single(t, b); !errors.As(err, &coded) || coded.ErrorCode() != "ExpiredToken" {
		t.Errorf("expired, in other words: %v", err)
	}
	if err := single(t, b); !is[*types.InternalServerError](err) {
		t.Errorf("fail_500: %v", err)
	}
	if err := single(t, b); err != nil {
		t.Error(err)
	}
}

// The SDK's own retries meet the rules like new requests: with times 1 they hide the fault.
func TestTheSDKRetriesWhatIsThrottledOnce(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Fault: faultproxy.Throttle, Times: 1})
	if _, err := b.sdkWith(nil).PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("t"), Item: item}); err != nil {
		t.Error(err)
	}
	if log := b.log(); len(log) != 2 || log[0].Fault != faultproxy.Throttle || log[1].Status != 200 {
		t.Errorf("log %+v", log)
	}
}
