package stack

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/idem-go/idem-aws/infra/idemconstruct"
	"github.com/idem-go/idem-aws/infra/spec"
)

// API is the kind of API Gateway in front of the application.
type API string

// The kinds of API Gateway. An HTTP API is cheaper and faster; a REST API has WAF, usage plans and gateway responses.
const (
	HTTP API = "http"
	REST API = "rest"
)

// Auth says who authenticates a caller.
type Auth string

// The places of authentication. With Gateway a Lambda authorizer does it before the application is called, with Function
// the application does it itself and there is no authorizer at all.
const (
	Gateway  Auth = "gateway"
	Function Auth = "function"
)

// TestKeys says what becomes of API keys that begin with idem_test_.
type TestKeys string

// A test key moves money as any other where it is accepted; TestKeysRefuse answers it 403.
const (
	TestKeysAccept TestKeys = "accept"
	TestKeysRefuse TestKeys = "refuse"
)

// Arch is the processor architecture of the functions, by its Go name.
type Arch string

// The architectures Lambda has.
const (
	ARM64 Arch = "arm64"
	AMD64 Arch = "amd64"
)

// Encryption says what becomes of stored responses and payloads.
type Encryption string

// The kinds of encryption. With On they are encrypted, per tenant; with Open only what is encrypted already is read: for the
// deployment before the first with On, because functions of both run beside each other for a while, and for giving it up.
const (
	Off  Encryption = "off"
	Open Encryption = "open"
	On   Encryption = "on"
)

// The account and Region that emulators know. A local stack names them explicitly, so that the CDK command line refuses
// to deploy one with credentials of a real account.
const (
	localAccount = "000000000000"
	localRegion  = "us-east-1"
)

// NoAlarmTopic as Config.AlarmTopic has alarms show, and tell nobody.
const NoAlarmTopic = idemconstruct.NoTopic

// Config is what can be chosen about a stack. Read fills it from CDK context.
type Config struct {
	// Stack is the CloudFormation stack's name. Default: idem-payments.
	Stack string
	// API is the kind of API Gateway. Default: HTTP.
	API API
	// Auth says who authenticates. Default: Gateway.
	Auth Auth
	// TestKeys says what becomes of API keys that begin with idem_test_. Default: TestKeysAccept.
	TestKeys TestKeys
	// Arch is the architecture of the functions. Default: ARM64.
	Arch Arch
	// Local is for emulators: everything goes with the stack, and nothing is protected against that. Default: false.
	Local bool
	// ProviderURL is the payment provider's base URL, without a trailing slash: https, unless Local. Required.
	ProviderURL string
	// ProviderSecret is the name or ARN of the secret in AWS Secrets Manager that is sent to the provider as "Authorization:
	// Bearer"; the new one and the old one, separated by a comma, while one replaces the other. Default: none, and nothing is
	// sent.
	ProviderSecret string
	// DynamoDBEndpoint redirects the functions' DynamoDB calls, to a fault proxy. Only with Local. Default: none.
	DynamoDBEndpoint string
	// Encryption says whether stored responses and payloads are encrypted per tenant. Default: Off.
	Encryption Encryption
	// Outbox says how new messages reach the worker. Default: Streams.
	Outbox Outbox
	// WarmThroughput is what records, messages and payments and their indexes serve at once, and MaxThroughput what they serve
	// at the most. Default: DynamoDB's. See idemconstruct.TablesProps.
	WarmThroughput, MaxThroughput idemconstruct.Throughput
	// Provisioned has the same tables paid by the hour, for so many payments a second. Default: on demand.
	Provisioned idemconstruct.Provisioned
	// WAF has AWS WAF in front of a REST API, with AWS's managed rules and WAFRate: requests of one address in five minutes.
	// Default: false, and 100,000.
	WAF     bool
	WAFRate int
	// DomainName is the API's own name, with Certificate, an ARN of AWS Certificate Manager. Default: none, and AWS gives it a
	// name.
	DomainName, Certificate string
	// CustomerKeys encrypts tables, queues and logs with KMS keys of the account's. Default: false, and AWS's own keys do.
	CustomerKeys bool
	// Concurrency is what each function has of the account's concurrency. Default: of an account with Lambda's default quota;
	// nothing with Local.
	Concurrency Concurrency
	// Stream bounds how many batches of the outbox stream run at once. Default: 10 for each of 4 shards.
	Stream Stream
	// WorkerConcurrency bounds how many workers the queue of wake-ups has at once, 2 to 1000. Default: what the worker's
	// reserved concurrency leaves to it; 0, no bound, where nothing is reserved.
	WorkerConcurrency int
	// WorkerBatch is how many wake-ups a worker takes at once at most, 10 to 40: Lambda runs 1,000 workers for a queue. Above 10 it
	// waits up to a second for a batch to fill. Default: 10.
	WorkerBatch int
	// WakeUpsMax is how many wake-ups the sweep lets wait in the queue, 1,000 to 10,000,000: it offers what is due from the
	// index, without reading it, and the worker decides. Only with SQS. Default: 200,000, or 60 × WorkerBatch for each of WorkerConcurrency
	// if that is more; 0 with Streams, where the sweep reads each message.
	WakeUpsMax int
	// ProbesMax is how many look-ups all runs of the reconciler together make at once at each of the provider's endpoints: at least
	// one a run. 0 is 8 for each run.
	ProbesMax int
	// APIThrottle is what the API lets through, and PaymentThrottle what each route does that makes payments. Default:
	// 1000/1000 and 500/500; none with Local.
	APIThrottle, PaymentThrottle Throttle
	// OutboxShards is how many partitions each queue of the tables' indexes is spread over, 1 to 256; 500 payments per second
	// fill one. It may be raised. To lower it again frees nothing: what lists looks into as many as were ever written into. Default: 8.
	OutboxShards int
	// LedgerShards is how many partitions an hour of the payments table's index is spread over, 1 to 256; 1,000 payments,
	// refunds and payouts per second fill one. It may be raised. To lower it again frees nothing. Default: 4.
	LedgerShards int
	// DriftParts is into how many pieces the drift job cuts an hour, and how many it compares at once, 1 to 240. Default: 4,
	// and 1 in local stacks.
	DriftParts int
	// WaitMax bounds "Prefer: wait", in seconds, 1 to 25: so long a waiting request holds an execution. Default: 5; 20 with
	// Local.
	WaitMax int
	// Quota is what each tenant may ask for. Default: 50 new keys and 100 look-ups a second, 1,000,000 active keys; no limits
	// with Local.
	Quota Quota
	// WebhookSecret is the name or ARN of the secret in AWS Secrets Manager that the provider signs its webhooks with; a list
	// separated by commas while one replaces another. Default: none, and no webhooks are taken.
	WebhookSecret string
	// LocalWebhookSecret is that secret itself. Only with Local. Default: none.
	LocalWebhookSecret string
	// FingerprintSecret is the name or ARN of the secret in AWS Secrets Manager that keys fingerprints: id:base64, the newest
	// first, separated by commas. Default: none, and fingerprints are plain hashes.
	FingerprintSecret string
	// ScopeSecret is the name or ARN of the secret in AWS Secrets Manager that the names of records are keyed with: base64 of
	// at least 32 random bytes, made once for the tables and never changed. Default: none, and names are plain hashes.
	ScopeSecret string
	// OTLPEndpoint is the base URL of a collector that takes OTLP over HTTP. Default: none, and nothing is traced.
	OTLPEndpoint string
	// TracesPercent is how many of a hundred traces are kept, 1 to 100. Default: 100.
	TracesPercent int
	// CORSOrigins are the origins whose pages may call, separated by commas, or "*". Default: none.
	CORSOrigins string
	// AccessLogs has the gateway log every request. Default: true; false with Local, because emulators write none.
	AccessLogs bool
	// AlarmTopic is the ARN of the SNS topic that alarms are sent to, or NoAlarmTopic. Required: alarms that nobody hears of
	// are not left out by accident.
	AlarmTopic string
	// Insights adds a Contributor Insights rule, duplicates by tenant, which costs by matching log line. Default: true; false
	// with Local, because emulators refuse it.
	Insights bool
	// Backup adds a daily backup of the tables, kept for 35 days. Default: false.
	Backup bool
	// BackupCopy is the ARN of a vault in another Region, or of another account, that each backup is copied to and kept in for as long.
	// Default: none.
	BackupCopy string
	// Trail says of which tables CloudTrail records every request. Default: TrailOff.
	Trail Trail
	// Import names tables that are there already. Default: none, and the stack makes its own.
	Import Import
	// Lost says what may be missing in the tables. Required with Import; default otherwise: LostNothing.
	Lost Lost
	// Stopped deploys a stack in which nothing runs but the authorizer and the drift job. Default: false.
	Stopped bool
	// RetainTables has tables and keys of a local stack stay when it is deleted, as those of every other stack do. Default:
	// false.
	RetainTables bool
	// TerminationProtection has CloudFormation refuse to delete the stack. Default: true; false with Local.
	TerminationProtection bool
	// Network is where the functions run that call the provider. Default: none of the account's.
	Network Network
	// Deployment says how a new version of a function takes over. Default: Canary; Now with Local.
	Deployment Deployment
	// Rollback says that this deployment goes back to an earlier release: the function that accepts work first, then those that
	// process it, each at once. Default: false, and the other way round.
	Rollback bool
	// Stage and Owner are tags of the stack and of what is in it. Default: none.
	Stage, Owner string
	// Build is the folder of the functions' binaries, <Build>/<Arch>/<function>/bootstrap. Default: ../.local/build.
	Build string
	// Account is the AWS account, twelve digits. Default: the command line's; 000000000000 with Local.
	Account string
	// Region is the AWS Region. Default: the command line's; us-east-1 with Local.
	Region string
}

// form is a pattern and how to say it.
type form struct {
	pattern *regexp.Regexp
	allowed string
}

var (
	stackForm   = form{regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,99}$`), "a letter, then up to 99 letters, digits and -"}
	accountForm = form{regexp.MustCompile(`^[0-9]{12}$`), "twelve digits; by default the account of your credentials"}
	topicForm   = form{regexp.MustCompile(`^(none|arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256})$`), "an SNS topic's ARN, not a FIFO topic's; none where alarms shall only show"}
	originForm  = form{regexp.MustCompile(`^(\*|(https?://[^/?#@,\s*]+)(,https?://[^/?#@,\s*]+)*)?$`), "http[s]://host[:port], separated by commas, or * alone"}
	stageForm   = form{regexp.MustCompile(`^([a-z][a-z0-9-]{0,19})?$`), "a lower-case letter, then up to 19 of a to z, 0 to 9 and -"}
	ownerForm   = form{regexp.MustCompile(`^[A-Za-z0-9 +=._:/@-]{0,128}$`), "up to 128 letters, digits, spaces and + - = . _ : / @"}
	regionForm  = form{regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]+$`), "as eu-central-1; by default your credentials' Region"}
)

// Read takes a Config from CDK context, where lookup returns nil for a key without a value, and from environment
// variables. The error names every key whose value is refused, the value, and what is allowed.
func Read(lookup func(key string) any, environment func(name string) string) (Config, error) {
	r := reader{lookup: lookup}
	config := Config{
		Stack:            r.matching("stack", "idem-payments", stackForm),
		API:              choice(&r, "api", HTTP, REST),
		Auth:             choice(&r, "auth", Gateway, Function),
		TestKeys:         choice(&r, "testKeys", TestKeysAccept, TestKeysRefuse),
		Arch:             choice(&r, "arch", ARM64, AMD64),
		Local:            choice(&r, "local", "false", "true") == "true",
		ProviderURL:      r.url("providerUrl"),
		DynamoDBEndpoint: r.url("dynamodbEndpoint"),
		OTLPEndpoint:     r.url("otlpEndpoint"),
		Encryption:       choice(&r, "encryption", Off, Open, On),
		Outbox:           choice(&r, "outbox", Streams, SQS),
		CORSOrigins:      r.matching("corsOrigins", "", originForm),
		AlarmTopic:       r.matching("alarmTopic", "", topicForm),
		Backup:           choice(&r, "backup", "off", "on") == "on",
		BackupCopy:       r.matching("backupCopy", "", vaultARNForm),
		Stage:            r.matching("stage", "", stageForm),
		Owner:            r.matching("owner", "", ownerForm),
		Build:            r.text("build", "../.local/build"),
	}
	config.Trail = choice(&r, "trail", TrailOff, TrailPeople, TrailAll)
	config.CustomerKeys = choice(&r, "customerKeys", "off", "on") == "on"
	if config.Local && config.CustomerKeys {
		r.refuse("customerKeys", "on", "off, with local=true: everything of a local stack goes with it")
	}
	if config.Local && config.Trail != TrailOff {
		r.refuse("trail", string(config.Trail), "off, with local=true: emulators have no CloudTrail")
	}
	config.TerminationProtection = r.unlessLocal("terminationProtection", config.Local)
	config.ProviderSecret = r.matching("providerSecret", "", secretForm)
	config.FingerprintSecret = r.matching("fingerprintSecret", "", secretForm)
	config.ScopeSecret = r.matching("scopeSecret", "", secretForm)
	config.WebhookSecret, config.LocalWebhookSecret = r.webhookSecrets(config.Local)
	config.Insights = r.unlessLocal("insights", config.Local)
	config.AccessLogs = r.onUnlessLocal("accessLogs", config.Local)
	config.Quota = r.quota(config.Local)
	config.APIThrottle = r.throttle("apiThrottle", "1000/1000", config.Local)
	config.PaymentThrottle = r.throttle("paymentThrottle", "500/500", config.Local)
	config.WaitMax = r.within("waitMax", waitSeconds(config.Local), 1, 25)
	config.OutboxShards = r.shards("outboxShards")
	r.readDrift(&config)
	r.readConcurrency(&config)
	config.WorkerBatch = r.within("workerBatch", spec.BatchRecords, spec.BatchRecords, spec.BatchWakeUpsMax)
	r.readWakeUps(&config)
	r.readProbes(&config)
	r.throughputs(&config)
	config.TracesPercent = r.within("tracesPercent", 100, 1, 100)
	r.checkAddresses(config)
	if config.Local {
		config.Account, config.Region = localAccount, localRegion
	} else {
		config.Account = r.matching("account", environment("CDK_DEFAULT_ACCOUNT"), accountForm)
		config.Region = r.matching("region", environment("CDK_DEFAULT_REGION"), regionForm)
	}
	r.readFirewall(&config)
	r.readDomain(&config)
	r.readRecovery(&config)
	r.readProvisioned(&config)
	r.readRelease(&config)
	r.readNetwork(&config)
	r.checkChina(config)
	return config, errors.Join(r.refused...)
}

// checkAddresses refuses what is missing, and what only a local stack may call.
func (r *reader) checkAddresses(config Config) {
	if r.text("providerUrl", "") == "" {
		r.refuse("providerUrl", "", urlForm)
	}
	if strings.HasPrefix(config.ProviderURL, "http://") && !config.Local {
		r.refuse("providerUrl", config.ProviderURL, "https://host[:port][/path], unless local=true: credentials and amounts are in every call")
	}
	if config.DynamoDBEndpoint != "" && !config.Local {
		r.refuse("dynamodbEndpoint", config.DynamoDBEndpoint, "nothing, unless local=true")
	}
}

// checkChina refuses what can't work in a Region of China, where the names of services end otherwise: those that a key's policy lets in
// (kms:ViaService), and those of a VPC's endpoints.
func (r *reader) checkChina(config Config) {
	if partition(config.Region) != "aws-cn" {
		return
	}
	if config.CustomerKeys {
		r.refuse("customerKeys", "on", "off, in a Region of China")
	}
	if config.Network.Made {
		r.refuse("privateNetwork", r.text("privateNetwork", ""), "off, or subnets and security groups that are there, in a Region of China")
	}
}

// urlForm says what a base URL may be: no user, no query, no fragment.
const urlForm = "http[s]://host[:port][/path]"

// reader collects every refusal, so that a command line is corrected once.
type reader struct {
	lookup  func(key string) any
	refused []error
}

func (r *reader) refuse(key, value, allowed string) {
	r.refused = append(r.refused, fmt.Errorf("context %s=%q is refused; allowed: %s", key, value, allowed))
}

// text is the value of a key. Context from cdk.json may be a boolean or a number, from the command line it is a string.
func (r *reader) text(key, otherwise string) string {
	value := r.lookup(key)
	if value == nil {
		return otherwise
	}
	if number, ok := value.(float64); ok {
		return strconv.FormatFloat(number, 'f', -1, 64) // from a million on, fmt writes an exponent
	}
	return fmt.Sprint(value)
}

func (r *reader) matching(key, otherwise string, want form) string {
	value := r.text(key, otherwise)
	if !want.pattern.MatchString(value) {
		r.refuse(key, value, want.allowed)
	}
	return value
}

// unlessLocal is the value of a key that is on by default, and off by default in a local stack.
func (r *reader) unlessLocal(key string, local bool) bool {
	return choice(r, key, strconv.FormatBool(!local), strconv.FormatBool(local)) == "true"
}

// onUnlessLocal is unlessLocal for a key that is on or off.
func (r *reader) onUnlessLocal(key string, local bool) bool {
	if local {
		return choice(r, key, "off", "on") == "on"
	}
	return choice(r, key, "on", "off") == "on"
}

func (r *reader) url(key string) string {
	value := r.text(key, "")
	if value == "" {
		return ""
	}
	parsed, err := url.Parse(value)
	if err != nil || !slices.Contains([]string{"http", "https"}, parsed.Scheme) || parsed.Host == "" ||
		parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
		r.refuse(key, value, urlForm)
	}
	return strings.TrimRight(value, "/")
}

// choice is the value of a key that has a closed set of them; the first one allowed is the default.
func choice[T ~string](r *reader, key string, allowed ...T) T {
	value := T(r.text(key, string(allowed[0])))
	if slices.Contains(allowed, value) {
		return value
	}
	names := make([]string, len(allowed))
	for i, name := range allowed {
		names[i] = string(name)
	}
	r.refuse(key, string(value), strings.Join(names, ", "))
	return value
}
