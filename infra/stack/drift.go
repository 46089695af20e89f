package stack

import (
	"strconv"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/infra/idemconstruct"
	"github.com/idem-go/idem-aws/infra/lint"
)

// The drift job. The window is that of an invocation without one.
const (
	driftTimeout    = 10 * time.Minute
	driftWindow     = "2h"
	driftGrace      = "15m"
	localDriftGrace = "5s" // tests wait for it
	// driftPeriod is how often it plans which hours to compare.
	driftPeriod = 5 * time.Minute
	// driftVisibility hides a piece that a run has taken: AWS's rule for a queue behind Lambda is six function time-outs.
	driftVisibility = 6 * driftTimeout
	// driftReceives is after how many runs that failed, or ended with their process, a message is a dead letter: three hours, an hour after
	// DriftLate and DriftPiecesOld say that the hour is late. The piece itself is sent again.
	driftReceives = 3
	// driftPieceRetention is an hour more than that, for which a piece may have waited before its first run: SQS drops what is older, and no
	// letter comes of it. It need not be longer: what is lost is sent again after a quarter of an hour.
	driftPieceRetention = (driftReceives + 1) * driftVisibility
	// driftLetterDays is for how long a dead letter stays, and its alarm with it: nobody takes it out. It only names a piece, whose row says how
	// far it has come, and which is sent again.
	driftLetterDays = 1
	// partsMax is the job's bound on the pieces of an hour, and partsDefault compares a million rows an hour.
	partsMax     = 240
	partsDefault = 4
	// ledgerShardsDefault is the functions' default too.
	ledgerShardsDefault = table.LedgerShards
)

// readDrift reads how much the drift job compares at once, and how the ledger that it reads is spread.
func (r *reader) readDrift(config *Config) {
	parts := partsDefault
	if config.Local {
		parts = 1 // its functions share the machine with everything else
	}
	config.DriftParts = r.within("driftParts", parts, 1, partsMax)
	config.LedgerShards = r.within("ledgerShards", ledgerShardsDefault, 1, table.LedgerShardsMax)
}

// progress is what the drift job keeps: what is compared, and the queue of pieces to compare.
type progress struct {
	table        awsdynamodb.ITableV2
	pieces, dead awssqs.Queue
}

func (p parts) progress(scope constructs.Construct, own customerKeys) progress {
	self := constructs.NewConstruct(scope, jsii.String("DriftPieces"))
	encryption := awssqs.QueueEncryption_SQS_MANAGED
	if own.queues != nil {
		encryption = awssqs.QueueEncryption_KMS
	}
	queue := func(id string, props awssqs.QueueProps) awssqs.Queue {
		props.Encryption, props.EncryptionMasterKey, props.EnforceSSL = encryption, own.queues, jsii.Bool(true)
		props.RemovalPolicy = awscdk.RemovalPolicy_DESTROY
		return awssqs.NewQueue(self, jsii.String(id), &props)
	}
	dead := queue("DeadLetter", awssqs.QueueProps{RetentionPeriod: awscdk.Duration_Days(jsii.Number(driftLetterDays))})
	lint.Accept(dead, map[string]string{"Serverless-SQSRedrivePolicy": "This is the dead-letter queue: its pieces are sent again by the planner."})
	return progress{
		dead:  dead,
		table: idemconstruct.NewTable(scope, "DriftProgress", table.Drift(), idemconstruct.TablesProps{Disposable: p.config.disposable(), Key: own.tables}),
		pieces: queue("Queue", awssqs.QueueProps{
			VisibilityTimeout: awscdk.Duration_Seconds(jsii.Number(driftVisibility.Seconds())),
			RetentionPeriod:   awscdk.Duration_Seconds(jsii.Number(driftPieceRetention.Seconds())),
			DeadLetterQueue:   &awssqs.DeadLetterQueue{Queue: dead, MaxReceiveCount: jsii.Number(driftReceives)},
		}),
	}
}

func (p parts) driftGrace() *string {
	if p.config.Local {
		return jsii.String(localDriftGrace)
	}
	return jsii.String(driftGrace)
}

// drift compares what is written with what the provider has. It writes nothing but what it has compared.
func (p parts) drift(kept progress) function {
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
		"DRIFT_TABLE":       kept.table.TableName(),
		"DRIFT_QUEUE_URL":   kept.pieces.QueueUrl(),
		"DRIFT_PARTS":       jsii.String(strconv.Itoa(p.config.DriftParts)),
		"LEDGER_SHARDS":     p.ledgerShards(),
	}
	return function{
		name: "drift", id: "Drift", description: "Compares keys, messages, payments and the provider's objects", memoryMiB: 512,
		timeout: driftTimeout, once: true, environment: environment, network: p.network,
		statements: append([]awsiam.PolicyStatement{
			idemconstruct.Allow([]string{"dynamodb:GetItem", "dynamodb:BatchGetItem"},
				p.tables.Idempotency.TableArn(), p.tables.Outbox.TableArn(), p.payments.TableArn()),
			idemconstruct.Allow([]string{"dynamodb:Query"}, index),
			idemconstruct.Allow([]string{"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:PutItem"}, kept.table.TableArn()),
			idemconstruct.Allow([]string{"sqs:SendMessage", "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}, kept.pieces.QueueArn()),
		}, p.providerSecret(environment)...),
	}
}

func (p parts) ledgerShards() *string { return jsii.String(strconv.Itoa(p.config.LedgerShards)) }

// runDrift has the function plan every few minutes, and compare the pieces in its queue: no more at once than an hour has.
func runDrift(scope constructs.Construct, config Config, drift deployed, kept progress) awsevents.Rule {
	self := constructs.NewConstruct(scope, jsii.String("DriftSchedule"))
	mapping := awslambda.NewEventSourceMapping(self, jsii.String("Pieces"), &awslambda.EventSourceMappingProps{
		Target: drift.live, EventSourceArn: kept.pieces.QueueArn(), BatchSize: jsii.Number(1), ReportBatchItemFailures: jsii.Bool(true),
		MaxConcurrency: jsii.Number(max(config.DriftParts, concurrencyMin)),
	})
	lint.Accept(mapping, map[string]string{
		"Serverless-LambdaEventSourceMappingDestination": "SQS mappings have no destination; the queue itself has a dead-letter queue.",
	})
	plan := awsevents.NewRule(self, jsii.String("Plan"), &awsevents.RuleProps{
		Description: jsii.String("Puts the hours that are due into the drift job's queue, in pieces"),
		Schedule:    awsevents.Schedule_Rate(awscdk.Duration_Minutes(jsii.Number(driftPeriod.Minutes()))),
		Targets: &[]awsevents.IRuleTarget{awseventstargets.NewLambdaFunction(drift.live, &awseventstargets.LambdaFunctionProps{
			Event:       awsevents.RuleTargetInput_FromObject(map[string]any{"plan": true}),
			MaxEventAge: awscdk.Duration_Minutes(jsii.Number(driftPeriod.Minutes())), RetryAttempts: jsii.Number(0),
		})},
	})
	lint.Accept(plan, missedRuns)
	return plan
}

// driftPieceAgeMax is that of an hour that is late (DriftLate).
const driftPieceAgeMax = 2 * time.Hour

// watch adds the alarms on the queue of pieces. Each rings in two of three minutes: a single one may be a restart's.
func (kept progress) watch(m *idemconstruct.Monitor) {
	every := idemconstruct.Options("Maximum", time.Minute)
	m.Add(idemconstruct.Watch{
		ID: "DriftPiecesOld", Metric: kept.pieces.MetricApproximateAgeOfOldestMessage(every), Threshold: driftPieceAgeMax.Seconds(),
		Description: "Pieces of the drift job wait, or fail, for two hours. Hours are compared late, or not at all.", Periods: 2, OfLast: 3,
	})
	m.Add(idemconstruct.Watch{
		ID: "DriftDeadLetters", Metric: kept.dead.MetricApproximateNumberOfMessagesVisible(every), Threshold: 1, Periods: 2, OfLast: 3,
		Description: "Runs of the drift job have ended with a failure or with their process three times for a piece, or somebody else has sent to its queue. The planner sends pieces again.",
	})
}

// concurrencyMin is the least that Lambda takes for a queue.
const concurrencyMin = 2
