package stack

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/infra/idemconstruct"
	"github.com/idem-go/idem-aws/infra/lint"
)

// The drift job. Windows overlap, so that what one run finds open is compared by the next; the one a day reaches
// behind the longest that anything is worked on and unknown, two days.
const (
	driftTimeout    = 10 * time.Minute
	driftWindow     = "2h"
	driftGrace      = "15m"
	localDriftGrace = "5s" // tests wait for it
	driftDayWindow  = "50h"
)

func (p parts) driftGrace() *string {
	if p.config.Local {
		return jsii.String(localDriftGrace)
	}
	return jsii.String(driftGrace)
}

// drift compares what is written with what the provider has; it may only read.
func (p parts) drift() function {
	index := idemconstruct.Within(p.payments.TableArn(), "/index/"+table.Payments().Index.Name)
	environment := map[string]*string{
		"IDEMPOTENCY_TABLE": p.tables.Idempotency.TableName(),
		"OUTBOX_TABLE":      p.tables.Outbox.TableName(),
		"PAYMENTS_TABLE":    p.payments.TableName(),
		"PROVIDER_URL":      jsii.String(p.config.ProviderURL),
		"PROVIDER_TIMEOUT":  jsii.String(providerTimeout),
		"RETENTION":         jsii.String(retention),
		"DRIFT_WINDOW":      jsii.String(driftWindow),
		"DRIFT_GRACE":       p.driftGrace(),
	}
	return function{
		name: "drift", id: "Drift", description: "Compares keys, messages, payments and the provider's objects", memoryMiB: 512,
		timeout: driftTimeout, once: true, environment: environment, network: p.network,
		statements: append([]awsiam.PolicyStatement{
			idemconstruct.Allow([]string{"dynamodb:GetItem", "dynamodb:BatchGetItem"},
				p.tables.Idempotency.TableArn(), p.tables.Outbox.TableArn(), p.payments.TableArn()),
			idemconstruct.Allow([]string{"dynamodb:Query"}, index),
		}, p.providerSecret(environment)...),
	}
}

// scheduleDrift calls the function once an hour with the schedule's own event, and once a day with a long window.
func scheduleDrift(scope constructs.Construct, drift awslambda.IFunction) []awsevents.Rule {
	self := constructs.NewConstruct(scope, jsii.String("DriftSchedule"))
	rule := func(id, description string, every awscdk.Duration, event awsevents.RuleTargetInput) awsevents.Rule {
		made := awsevents.NewRule(self, jsii.String(id), &awsevents.RuleProps{
			Description: jsii.String(description),
			Schedule:    awsevents.Schedule_Rate(every),
			Targets: &[]awsevents.IRuleTarget{awseventstargets.NewLambdaFunction(drift, &awseventstargets.LambdaFunctionProps{
				Event: event, MaxEventAge: awscdk.Duration_Hours(jsii.Number(1)),
			})},
		})
		lint.Accept(made, missedRuns)
		return made
	}
	return []awsevents.Rule{
		rule("Hour", "Compares the last hours with the provider", awscdk.Duration_Hours(jsii.Number(1)), nil),
		rule("Day", "Compares what was unknown for long with the provider", awscdk.Duration_Days(jsii.Number(1)),
			awsevents.RuleTargetInput_FromObject(map[string]any{"window": driftDayWindow})),
	}
}
