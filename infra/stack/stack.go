// Package stack is the payments application on AWS: tables, functions, queues, schedule and API Gateway. The package
// belongs to this repository's application and has no compatibility promise.
package stack

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsbackup"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/infra/idemconstruct"
	"github.com/idem-go/idem-aws/infra/spec"
)

// The functions' time-outs. The API's is below what API Gateway waits (30 s for an HTTP API, 29 s for a REST API), so a
// client never sees a gateway time-out for a request that goes on; the worker's holds a full batch of provider calls;
// the sweep's ends before the next one starts.
const (
	apiTimeout        = 28 * time.Second
	authorizerTimeout = 5 * time.Second
	workerTimeout     = time.Minute
	sweepTimeout      = 55 * time.Second
	reconcileTimeout  = 55 * time.Second
	relayTimeout      = 30 * time.Second // one request to SQS
)

// What the functions are told about sizes and spans, in Go's notation for durations.
const (
	retention        = "24h"
	bodyBytesMax     = "262144"
	responseBytesMax = "3145728"
	providerTimeout  = "5s"
	claimLease       = "10s"
	backoffMin       = "1s"
	backoffMax       = "30s"
	attemptsMax      = "10"
	longestRequest   = "1m"
	freezeAllowance  = "1m"
	// localLongestRequest is the simulator's: it hangs for as long as a test says, and tests wait for proof of absence.
	localLongestRequest = "15s"
	// localFreezeAllowance is short for the same reason: what freezes processes in tests does not do so right before they send.
	localFreezeAllowance = "100ms"
	localKeyAgeMax       = "1m" // the least there is, so that tests see an erasure soon
	localKeyTimeout      = "4s" // an emulator's KMS shares the machine with everything else
)

// parts is what the functions are about.
type parts struct {
	config   Config
	tables   *idemconstruct.Tables
	queues   *idemconstruct.Queues
	payments awsdynamodb.ITableV2
	apiKeys  awsdynamodb.ITableV2
	// keys are nil where nothing is encrypted.
	keys *idemconstruct.Keys
	// vault is nil where nothing is backed up, and backedUp how many tables are.
	vault    awsbackup.IBackupVault
	backedUp int
	// quota is nil where nothing is limited.
	quota awsdynamodb.ITableV2
	// network is where functions run that call the provider; nil is none of the account's.
	network *network
}

// New adds the stack that config describes to scope. It fails when a function's binary is missing.
func New(scope constructs.Construct, config Config) (awscdk.Stack, error) {
	if err := config.checkBinaries(config.functions()); err != nil {
		return nil, err
	}
	stack := awscdk.NewStack(scope, jsii.String(config.Stack), &awscdk.StackProps{
		Description: jsii.String("Payments, exactly once: API Gateway, Lambda, DynamoDB"),
		Env:         &awscdk.Environment{Account: jsii.String(config.Account), Region: jsii.String(config.Region)},

		TerminationProtection: jsii.Bool(config.TerminationProtection),
		Tags:                  config.tags(),
	})
	own := config.customerKeys(stack)
	p, audit := newParts(stack, config, own)
	p.addOperators(stack, audit)
	p.addTrail(stack, audit)
	p.quota, p.network = config.quotaTable(stack, own), newNetwork(stack, config)
	api := p.api().add(stack, config)
	worker := p.worker().add(stack, config)
	sweep := p.sweep(audit).add(stack, config)
	reconcile := p.reconcile().add(stack, config)
	compared := p.progress(stack, own)
	drift := p.drift(compared).add(stack, config)
	driftPlan := runDrift(stack, config, drift, compared)
	functions := map[string]deployed{"Api": api, "Worker": worker, "Sweep": sweep, "Reconcile": reconcile, "Drift": drift}
	served := behind{application: api.live}
	if config.Auth == Gateway {
		authorizer := p.authorizer().add(stack, config)
		functions["Authorizer"], served.authorizer = authorizer, authorizer.live
		output(stack, "FunctionAuthorizer", authorizer.FunctionName())
	}
	if config.takesWebhooks() {
		webhook := p.webhook().add(stack, config)
		functions["Webhook"], served.webhook = webhook, webhook.live
		output(stack, "FunctionWebhook", webhook.FunctionName())
	}
	delivery, reader := p.deliverTo(stack, worker, sweep, reconcile)
	if config.Outbox == SQS {
		functions["Relay"] = reader
	}
	front := gateway(stack, config, served)
	alarms := newMonitor(stack, config)
	p.watch(stack, alarms, watched{
		front: front, functions: functions, reader: reader, rules: append([]awsevents.Rule{driftPlan}, delivery.Schedules...), compared: compared,
	})
	if config.Insights {
		addInsights(stack, config, api.LogGroup())
	}

	p.network.addEndpoints()
	own.encryptLogs(stack)
	config.release(stack, functions, alarms)

	output(stack, "ApiUrl", front.url)
	p.outputs(stack)
	for _, id := range []string{"Api", "Worker", "Sweep", "Reconcile", "Drift"} {
		output(stack, "Function"+id, functions[id].FunctionName())
	}
	return stack, nil
}

// newParts makes or imports what keeps data, and the queues.
func newParts(stack awscdk.Stack, config Config, own customerKeys) (parts, *idemconstruct.Audit) {
	there, protection := config.Import, idemconstruct.TablesProps{Disposable: config.disposable(), Key: own.tables}
	busy := protection
	busy.Warm, busy.Max, busy.Import = config.WarmThroughput, config.MaxThroughput, there.tables()
	busy.Provisioned, busy.Units = config.Provisioned, spec.PaymentUnits
	p := parts{
		config: config,
		tables: idemconstruct.NewTables(stack, "Tables", busy),
		queues: idemconstruct.NewQueues(stack, "Queues", idemconstruct.QueuesProps{
			WorkerTimeout: workerTimeout, WakeUpBatch: config.WorkerBatch,
			Disposable: config.disposable(),
			Key:        own.queues,
		}),
		payments: madeOrImported(stack, "Payments", there.Payments, table.Payments(), busy),
		apiKeys:  madeOrImported(stack, "ApiKeys", there.APIKeys, table.APIKeys(), protection),
	}
	if config.Encryption != Off {
		p.keys = idemconstruct.NewKeys(stack, "Keys", idemconstruct.KeysProps{
			Disposable: config.disposable(), TableKey: own.tables, ImportTable: there.keysTable(), ImportKey: config.importedKey(),
		})
		output(stack, "KeysTable", p.keys.Table.TableName())
		output(stack, "KmsKeyId", p.keys.Key.KeyId())
	}
	var audit *idemconstruct.Audit
	if there.Audit != "" {
		audit = idemconstruct.ImportAudit(stack, "Audit", there.Audit)
	} else {
		audit = idemconstruct.NewAudit(stack, "Audit", protection)
	}
	output(stack, "AuditTable", audit.Table.TableName())
	if config.Backup { // not the tenants' keys: erased keys must not come back, nor counters, which are gone within hours
		tables := []awsdynamodb.ITableV2{p.tables.Idempotency, p.tables.Outbox, p.payments, audit.Table}
		p.vault, p.backedUp = addBackup(stack, there.BackupVault, config.BackupCopy, tables...), len(tables)
	}
	return p, audit
}

// application is the tag of everything that belongs to this application, whatever the stack's name.
const application = "idem-payments"

// tags are the stack's, which CloudFormation gives to what is in it too. Emulators need none.
func (c Config) tags() *map[string]*string {
	if c.Local {
		return nil
	}
	tags := map[string]*string{"application": jsii.String(application)}
	if c.Stage != "" {
		tags["stage"] = jsii.String(c.Stage)
	}
	if c.Owner != "" {
		tags["owner"] = jsii.String(c.Owner)
	}
	return &tags
}

// functions are the names of the functions that the stack has.
func (c Config) functions() []string {
	names := []string{"api", "worker", "sweep", "reconcile", "drift"}
	if c.Auth == Gateway {
		names = append(names, "authorizer")
	}
	if c.takesWebhooks() {
		names = append(names, "webhook")
	}
	if c.Outbox == SQS {
		names = append(names, "relay")
	}
	return names
}

// behind are the functions behind the gateway. Authorizer and webhook are nil where there is none.
type behind struct{ application, authorizer, webhook awslambda.IFunction }

// front is the gateway: where clients call it, and its metrics.
type front struct {
	url *string
	api idemconstruct.Measured
}

func gateway(scope constructs.Construct, config Config, served behind) front {
	switch config.API {
	case HTTP:
		return httpAPI(scope, config, served)
	case REST:
		return restAPI(scope, config, served)
	}
	panic("stack: api " + string(config.API))
}

// outputs are where rows and wake-ups are, and the times by which an operator's command judges as the functions do.
func (p parts) outputs(stack awscdk.Stack) {
	output(stack, "IdempotencyTable", p.tables.Idempotency.TableName())
	output(stack, "OutboxTable", p.tables.Outbox.TableName())
	output(stack, "PaymentsTable", p.payments.TableName())
	output(stack, "ApiKeysTable", p.apiKeys.TableName())
	output(stack, "WakeUpQueueUrl", p.queues.WakeUps.QueueUrl())
	output(stack, "DeadLetterQueueUrl", p.queues.DeadLetter.QueueUrl())
	output(stack, "ClaimLease", jsii.String(claimLease))
	output(stack, "LongestRequest", p.longestRequest())
	output(stack, "FreezeAllowance", p.freezeAllowance())
	output(stack, "DriftGrace", p.driftGrace())
	output(stack, "OutboxShards", p.outboxShards())
	output(stack, "LedgerShards", p.ledgerShards())
}

func output(stack awscdk.Stack, name string, value *string) {
	awscdk.NewCfnOutput(stack, jsii.String(name), &awscdk.CfnOutputProps{Value: value})
}

// api executes operations, and delivers messages inline first.
func (p parts) api() function {
	environment := p.deliverEnvironment()
	environment["AUTH"] = jsii.String(string(p.config.Auth))
	environment["BODY_BYTES_MAX"] = jsii.String(bodyBytesMax)
	environment["WAIT_MAX"] = jsii.String(fmt.Sprintf("%ds", p.config.WaitMax))
	environment["RESPONSE_BYTES_MAX"] = jsii.String(responseBytesMax)
	if p.config.CORSOrigins != "" {
		environment["CORS_ORIGINS"] = jsii.String(p.config.CORSOrigins)
	}
	own := append([]awsiam.PolicyStatement{idemconstruct.Allow([]string{
		"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:ConditionCheckItem",
	}, p.payments.TableArn())}, p.readIncoming()...)
	if p.config.Auth == Function {
		maps.Copy(environment, p.authenticateEnvironment())
		own = append(own, p.authenticate()...)
	}
	if p.config.FingerprintSecret != "" {
		environment["FINGERPRINT_SECRET_ID"] = jsii.String(p.config.FingerprintSecret)
		own = append(own, p.config.readSecret(p.config.FingerprintSecret))
	}
	own = slices.Concat(own, p.scopeSecret(environment), p.providerSecret(environment))
	if p.quota != nil {
		maps.Copy(environment, p.config.Quota.environment(p.quota))
		own = append(own, quotaStatement(p.quota))
	}
	return function{
		name: "api", id: "Api", description: "The payments API", memoryMiB: 512, timeout: apiTimeout, environment: environment, network: p.network,
		statements: slices.Concat(p.tables.ExecuteStatements(), p.tables.InlineStatements(), p.queues.SendStatements(), p.seal(), own),
	}
}

func (p parts) authorizer() function {
	return function{
		name: "authorizer", id: "Authorizer", description: "Bearer API key to tenant", memoryMiB: 256,
		timeout:     authorizerTimeout,
		environment: p.authenticateEnvironment(),
		statements:  p.authenticate(),
	}
}

// authenticateEnvironment is what a function reads that looks API keys up.
func (p parts) authenticateEnvironment() map[string]*string {
	environment := map[string]*string{"API_KEYS_TABLE": p.apiKeys.TableName()}
	if p.config.TestKeys != TestKeysAccept {
		environment["TEST_KEYS"] = jsii.String(string(p.config.TestKeys))
	}
	return environment
}

// authenticate is what a function needs that looks API keys up: it reads them, and writes the time of their last use and
// nothing else of them. Nobody else has anything to do with their table.
func (p parts) authenticate() []awsiam.PolicyStatement {
	note := idemconstruct.Allow([]string{"dynamodb:UpdateItem"}, p.apiKeys.TableArn())
	note.AddCondition(jsii.String("ForAllValues:StringEquals"), map[string]any{
		"dynamodb:Attributes": []string{table.KeyID, table.KeyLastUsed},
	})
	return []awsiam.PolicyStatement{idemconstruct.Allow([]string{"dynamodb:GetItem"}, p.apiKeys.TableArn()), note}
}

func (p parts) worker() function {
	environment := p.deliverEnvironment()
	statements, accepted := slices.Concat(p.deliver(), p.providerSecret(environment), p.queues.ConsumeStatements()), map[string]string(nil)
	if p.config.Outbox == Streams {
		statements, accepted = append(statements, p.tables.StreamStatements()...), p.config.streamReader()
	}
	return function{
		name: "worker", id: "Worker", description: "Delivers messages of the outbox", memoryMiB: 512,
		timeout: workerTimeout, environment: environment, statements: statements, accepted: accepted, network: p.network,
	}
}

// sweep looks at imported tables when it starts: nothing else has seen whether they have the right shape. It reads the audit log, because
// alarms are made of its log lines and not of those of an operator's terminal.
func (p parts) sweep(audit *idemconstruct.Audit) function {
	environment := p.deliverEnvironment()
	environment["AUDIT_TABLE"] = audit.Table.TableName()
	statements := slices.Concat(p.deliver(), p.providerSecret(environment), p.tables.SweepStatements(), p.readIncoming(), audit.WatchStatements())
	if p.config.WakeUpsMax != 0 {
		statements = append(statements, p.queues.OfferStatements()...)
	}
	if p.config.Import.tables() != nil {
		environment["IMPORTED_TABLES"] = jsii.String("true")
		statements = append(statements, idemconstruct.Allow([]string{"dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive"},
			p.tables.Idempotency.TableArn(), p.tables.Outbox.TableArn(), p.payments.TableArn()))
	}
	return function{
		name: "sweep", id: "Sweep", description: "Offers due and abandoned messages again", memoryMiB: 256,
		timeout: sweepTimeout, environment: environment, once: true, statements: statements, network: p.network,
	}
}

func (p parts) reconcile() function {
	environment := p.deliverEnvironment()
	if p.config.ProbesMax != 0 {
		environment["PROBES_MAX"] = jsii.String(strconv.Itoa(p.config.ProbesMax / p.config.sweepRuns()))
	}
	return function{
		name: "reconcile", id: "Reconcile", description: "Asks the provider what became of unknown messages", memoryMiB: 256,
		timeout: reconcileTimeout, environment: environment, once: true, network: p.network,
		statements: slices.Concat(p.deliver(), p.providerSecret(environment), p.tables.SweepStatements()),
	}
}

// readIncoming is what those need who read which transfers wait for collecting accounts: the api to tell of them, the sweep to fold
// them.
func (p parts) readIncoming() []awsiam.PolicyStatement {
	return []awsiam.PolicyStatement{
		idemconstruct.Allow([]string{"dynamodb:BatchGetItem"}, p.payments.TableArn()),
		idemconstruct.Allow([]string{"dynamodb:Query"}, idemconstruct.Within(p.payments.TableArn(), "/index/"+table.Payments().Index.Name)),
	}
}

// deliver is what worker, sweep and reconciler may do alike: all of them end messages.
func (p parts) deliver() []awsiam.PolicyStatement {
	payments := idemconstruct.Allow(
		[]string{"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}, p.payments.TableArn())
	return slices.Concat(p.tables.DeliverStatements(), p.queues.SendStatements(), p.seal(), []awsiam.PolicyStatement{payments})
}

// providerSecret tells a function that calls the provider where its credential is, and what it may do to read it. The webhook
// function calls nobody, and has none.
func (p parts) providerSecret(environment map[string]*string) []awsiam.PolicyStatement {
	if p.config.ProviderSecret == "" {
		return nil
	}
	environment["PROVIDER_CREDENTIAL_ID"] = jsii.String(p.config.ProviderSecret)
	return []awsiam.PolicyStatement{p.config.readSecret(p.config.ProviderSecret)}
}

// scopeSecret tells a function that executes for a key where the secret is that names records, and what it may do to read it.
func (p parts) scopeSecret(environment map[string]*string) []awsiam.PolicyStatement {
	if p.config.ScopeSecret == "" {
		return nil
	}
	environment["SCOPE_SECRET_ID"] = jsii.String(p.config.ScopeSecret)
	return []awsiam.PolicyStatement{p.config.readSecret(p.config.ScopeSecret)}
}

// seal is what those may do who read and write what is encrypted.
func (p parts) seal() []awsiam.PolicyStatement {
	if p.keys == nil {
		return nil
	}
	return p.keys.SealStatements()
}

func (p parts) outboxShards() *string { return jsii.String(strconv.Itoa(p.config.OutboxShards)) }

func (p parts) longestRequest() *string {
	if p.config.Local {
		return jsii.String(localLongestRequest)
	}
	return jsii.String(longestRequest)
}

func (p parts) freezeAllowance() *string {
	if p.config.Local {
		return jsii.String(localFreezeAllowance)
	}
	return jsii.String(freezeAllowance)
}

// deliverEnvironment is what every function that delivers is told.
func (p parts) deliverEnvironment() map[string]*string {
	environment := map[string]*string{
		"IDEMPOTENCY_TABLE":     p.tables.Idempotency.TableName(),
		"OUTBOX_TABLE":          p.tables.Outbox.TableName(),
		"PAYMENTS_TABLE":        p.payments.TableName(),
		"PROVIDER_URL":          jsii.String(p.config.ProviderURL),
		"WAKE_UP_QUEUE_URL":     p.queues.WakeUps.QueueUrl(),
		"DEAD_LETTER_QUEUE_URL": p.queues.DeadLetter.QueueUrl(),
		"PROVIDER_TIMEOUT":      jsii.String(providerTimeout),
		"CLAIM_LEASE":           jsii.String(claimLease),
		"BACKOFF_MIN":           jsii.String(backoffMin),
		"BACKOFF_MAX":           jsii.String(backoffMax),
		"ATTEMPTS_MAX":          jsii.String(attemptsMax),
		"RETENTION":             jsii.String(retention),
		"LONGEST_REQUEST":       p.longestRequest(),
		"FREEZE_ALLOWANCE":      p.freezeAllowance(),
		"OUTBOX_SHARDS":         p.outboxShards(),
		"LEDGER_SHARDS":         p.ledgerShards(),
	}
	maps.Copy(environment, tracesEnvironment(p.config))
	if p.config.WakeUpsMax != 0 {
		environment["WAKE_UPS_MAX"] = jsii.String(strconv.Itoa(p.config.WakeUpsMax))
	}
	if p.config.Lost == LostRecords {
		environment["LOST_RECORDS"] = jsii.String("true")
	}
	if p.keys != nil {
		environment["KEYS_TABLE"], environment["KMS_KEY_ID"] = p.keys.Table.TableName(), p.keys.Key.KeyId()
		if p.config.Encryption == Open {
			environment["SEAL_OPEN_ONLY"] = jsii.String("true")
		}
		if p.config.Local {
			environment["KEY_AGE_MAX"], environment["KEY_TIMEOUT"] = jsii.String(localKeyAgeMax), jsii.String(localKeyTimeout)
		}
	}
	return environment
}
