package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudtrail"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/idemconstruct"
	"github.com/idem-go/idem-aws/infra/lint"
)

// Trail says of which tables CloudTrail records every request, with who made it.
type Trail string

// The choices. With TrailPeople those that people change, and that say who may: the audit log, API keys and the tenants' keys. With
// TrailAll records, messages and payments too: each request of the functions is an event, and billed.
const (
	TrailOff    Trail = "off"
	TrailPeople Trail = "people"
	TrailAll    Trail = "all"
)

// trailDays is how long the events are kept: longer than disputes take to arrive.
const trailDays = 400

// addTrail records data events in a bucket of the stack's, which stays when the stack goes. Management events are the account's
// own trail's.
func (p parts) addTrail(stack awscdk.Stack, audit *idemconstruct.Audit) {
	if p.config.Trail == TrailOff {
		return
	}
	tables := []awsdynamodb.ITableV2{audit.Table, p.apiKeys}
	if p.keys != nil {
		tables = append(tables, p.keys.Table)
	}
	if p.config.Trail == TrailAll {
		tables = append(tables, p.tables.Idempotency, p.tables.Outbox, p.payments)
	}
	arns := make([]*string, len(tables))
	for i, table := range tables {
		arns[i] = table.TableArn()
	}
	bucket := awss3.NewBucket(stack, jsii.String("TrailBucket"), &awss3.BucketProps{
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		Encryption:        awss3.BucketEncryption_S3_MANAGED,
		EnforceSSL:        jsii.Bool(true),
		MinimumTLSVersion: jsii.Number(1.2),
		Versioned:         jsii.Bool(true),
		LifecycleRules: &[]*awss3.LifecycleRule{
			// What expires becomes an older version in a bucket that keeps versions, and leaves a marker: both go a day later.
			{Expiration: awscdk.Duration_Days(jsii.Number(trailDays)), NoncurrentVersionExpiration: awscdk.Duration_Days(jsii.Number(1))},
			{ExpiredObjectDeleteMarker: jsii.Bool(true)},
		},
		RemovalPolicy: awscdk.RemovalPolicy_RETAIN,
	})
	lint.Accept(bucket, map[string]string{
		"AwsSolutions-S1": "It is a log itself; who reads it is in the account's own trail.",
	})
	name := p.config.Stack
	source := "arn:" + *awscdk.Aws_PARTITION() + ":cloudtrail:" + p.config.Region + ":" + p.config.Account + ":trail/" + name
	letWrite(bucket, p.config.Account, source)
	trail := awscloudtrail.NewCfnTrail(stack, jsii.String("Trail"), &awscloudtrail.CfnTrailProps{
		TrailName: jsii.String(name), IsLogging: jsii.Bool(true), S3BucketName: bucket.BucketName(), EnableLogFileValidation: jsii.Bool(true),
		AdvancedEventSelectors: &[]any{&awscloudtrail.CfnTrail_AdvancedEventSelectorProperty{
			Name: jsii.String("Requests to the tables"),
			FieldSelectors: &[]any{
				&awscloudtrail.CfnTrail_AdvancedFieldSelectorProperty{Field: jsii.String("eventCategory"), EqualTo: jsii.Strings("Data")},
				&awscloudtrail.CfnTrail_AdvancedFieldSelectorProperty{Field: jsii.String("resources.type"), EqualTo: jsii.Strings("AWS::DynamoDB::Table")},
				&awscloudtrail.CfnTrail_AdvancedFieldSelectorProperty{Field: jsii.String("resources.ARN"), EqualTo: &arns},
			},
		}},
	})
	trail.Node().AddDependency(bucket.Policy()) // CloudTrail tries at once
	output(stack, "TrailBucketName", bucket.BucketName())
}

// letWrite lets one trail write into the bucket, and no trail of anybody else's.
func letWrite(bucket awss3.Bucket, account, source string) {
	statement := func(action string, resource *string, conditions map[string]any) {
		conditions["aws:SourceArn"] = source
		bucket.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Principals: &[]awsiam.IPrincipal{awsiam.NewServicePrincipal(jsii.String("cloudtrail.amazonaws.com"), nil)},
			Actions:    jsii.Strings(action),
			Resources:  &[]*string{resource},
			Conditions: &map[string]any{"StringEquals": conditions},
		}))
	}
	statement("s3:GetBucketAcl", bucket.BucketArn(), map[string]any{})
	statement("s3:PutObject", bucket.ArnForObjects(jsii.String("AWSLogs/"+account+"/*")), map[string]any{"s3:x-amz-acl": "bucket-owner-full-control"})
}
