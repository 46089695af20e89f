package stack

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/idemconstruct"
	"github.com/idem-go/idem-aws/infra/lint"
)

// function describes one Lambda function: what it is, and everything it may do.
type function struct {
	// name is the folder of its binary; id is the name of its construct.
	name, id    string
	description string
	memoryMiB   int
	timeout     time.Duration
	environment map[string]*string
	// once says that a failed asynchronous invocation is not repeated.
	once bool
	// statements are its whole policy, but for its own log.
	statements []awsiam.PolicyStatement
	// network is what it runs in, where it calls the provider; nil is none of the account's.
	network *network
	// accepted are findings of the linters that are right for its role, by their rule, with the reason.
	accepted map[string]string
}

// proxiedFailuresMax is for a fault proxy, which fails single requests again and again: no reason to take the tables for down
// and to refuse the others.
const proxiedFailuresMax = "1000"

// proxiedPause is for the tests behind a fault proxy: a provider that hangs for one of them is no reason to leave the payouts of the
// others to the worker, which expect their answers in one request. It is the shortest pause that there is.
const proxiedPause = "1ms"

// lost is why no queue gets the events of calls that failed.
func (f function) lost() string {
	if f.once {
		return alarmsMissedRuns
	}
	return "Called synchronously only, by the gateway or a mapping, which has the failure; dead-letter queues are for asynchronous calls."
}

// binary is the folder that holds the bootstrap of a function.
func (c Config) binary(name string) string {
	return filepath.Join(c.Build, string(c.Arch), name)
}

// checkBinaries reports a function that was not built, before CDK fails with less to go by.
func (c Config) checkBinaries(names []string) error {
	for _, name := range names {
		path := filepath.Join(c.binary(name), "bootstrap")
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("function %s is not built for %s (context build=%q, arch=%q): %w",
				name, c.Arch, c.Build, c.Arch, err)
		}
	}
	return nil
}

// add makes the function with its own log group, its own role and its alias. The function gets the role closed: what CDK would
// grant on its own, for a mapping or a destination, is already in the statements or is not wanted.
func (f function) add(scope constructs.Construct, config Config) deployed {
	self := constructs.NewConstruct(scope, jsii.String(f.id))
	logs := awslogs.NewLogGroup(self, jsii.String("Logs"), logGroup(config))
	// The managed basic execution policy, narrowed to one log group.
	statements := append(slices.Clone(f.statements),
		idemconstruct.Allow([]string{"logs:CreateLogStream", "logs:PutLogEvents"}, logs.LogGroupArn()))
	if f.network != nil {
		statements = append(statements, f.network.interfaces())
	}
	role := awsiam.NewRole(self, jsii.String("Role"), &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
		InlinePolicies: &map[string]awsiam.PolicyDocument{
			f.name: awsiam.NewPolicyDocument(&awsiam.PolicyDocumentProps{Statements: &statements}),
		},
	})
	environment := maps.Clone(f.environment)
	maps.Copy(environment, metricsEnvironment(config))
	environment["FUNCTION_TIMEOUT"] = jsii.String(f.timeout.String()) // a function that would have no time does not start
	if config.DynamoDBEndpoint != "" {
		environment["AWS_ENDPOINT_URL_DYNAMODB"] = jsii.String(config.DynamoDBEndpoint)
		environment["BREAKER_FAILURES_MAX"] = jsii.String(proxiedFailuresMax)
		environment["INLINE_PAUSE"] = jsii.String(proxiedPause)
	}
	props := &awslambda.FunctionProps{
		Description:  jsii.String(f.description + config.Import.named()),
		Code:         awslambda.Code_FromAsset(jsii.String(config.binary(f.name)), nil),
		Handler:      jsii.String("bootstrap"),
		Runtime:      awslambda.Runtime_PROVIDED_AL2023(),
		Architecture: architecture(config.Arch),
		MemorySize:   jsii.Number(f.memoryMiB),
		Timeout:      awscdk.Duration_Seconds(jsii.Number(f.timeout.Seconds())),
		Environment:  &environment,
		LogGroup:     logs,
		Role:         role.WithoutPolicyUpdates(nil),

		ReservedConcurrentExecutions: config.reserved(f.name),
		CurrentVersionOptions:        config.versions(),
	}
	made := awslambda.NewFunction(self, jsii.String("Function"), props)
	lint.Accept(made, map[string]string{
		"W3005":                    roleBeforeItsUser,
		"Serverless-LambdaDLQ":     f.lost(),
		"Serverless-LambdaTracing": noTracing,
	})
	if f.network != nil {
		f.network.connect(made, f.statements)
		acceptNetwork(role)
	}
	for rule, reason := range f.accepted {
		lint.Accept(role, map[string]string{rule: reason})
	}
	return deployed{Function: made, live: f.alias(self, made)}
}

func architecture(arch Arch) awslambda.Architecture {
	switch arch {
	case AMD64:
		return awslambda.Architecture_X86_64()
	case ARM64:
		return awslambda.Architecture_ARM_64()
	}
	panic("stack: architecture " + string(arch))
}

// logGroup keeps logs for three months, longer than any default retention of a key and than most disputes take to
// arrive; they stay when the stack goes, because they are the audit trail of who was charged.
func logGroup(config Config) *awslogs.LogGroupProps {
	if config.Local {
		return &awslogs.LogGroupProps{
			Retention:     awslogs.RetentionDays_ONE_DAY,
			RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
		}
	}
	return &awslogs.LogGroupProps{
		Retention:     awslogs.RetentionDays_THREE_MONTHS,
		RemovalPolicy: awscdk.RemovalPolicy_RETAIN,
	}
}
