package stack

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscodedeploy"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/idemconstruct"
	"github.com/idem-go/idem-aws/infra/lint"
)

// Deployment says how a function's new version takes over from the one before.
type Deployment string

// The ways. With Canary a new version gets 10 % of the calls for ten minutes and then all of them, with Linear 10 % more every three
// minutes; an alarm meanwhile gives all calls back to the version before, and ends the deployment. With Now it gets all at once.
const (
	Canary Deployment = "canary"
	Linear Deployment = "linear"
	Now    Deployment = "now"
)

// liveAlias is the alias by which every function is called. Nothing calls $LATEST, which is another function while a deployment runs.
const liveAlias = "live"

// deployed is a function and the alias that it is called by. What is measured is measured of the function, whatever its version.
type deployed struct {
	awslambda.Function
	live awslambda.Alias
}

// alias makes the alias, on a version that is new when code or settings are. Old versions stay: calls are under way in them, and a
// deployment that ends badly goes back to the last one.
func (f function) alias(self constructs.Construct, made awslambda.Function) awslambda.Alias {
	props := &awslambda.AliasProps{AliasName: jsii.String(liveAlias), Version: made.CurrentVersion()}
	if f.once { // of the alias: Lambda keeps the settings of asynchronous calls for each qualifier
		props.RetryAttempts = jsii.Number(0)
		props.MaxEventAge = awscdk.Duration_Minutes(jsii.Number(1))
	}
	live := awslambda.NewAlias(self, jsii.String("Live"), props)
	if f.once {
		lint.Accept(live.Node().FindChild(jsii.String("EventInvokeConfig")), map[string]string{"Serverless-LambdaAsyncFailureDestination": alarmsMissedRuns})
	}
	return live
}

// versions says what becomes of old versions: they stay. One that its own deployment has made goes where that fails: Lambda makes no
// second version of the same code and settings, so the same commit could never be deployed again beside it. Those of a local stack go
// with it.
func (c Config) versions() *awslambda.VersionOptions {
	if c.Local {
		return &awslambda.VersionOptions{RemovalPolicy: awscdk.RemovalPolicy_DESTROY}
	}
	return &awslambda.VersionOptions{RemovalPolicy: awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE}
}

// accepts is the function that accepts work: it writes messages that others must understand.
const accepts = "Api"

// deliverers are the functions that process what the api function writes. A release that writes something new must be running in all
// of them first.
var deliverers = []string{"Worker", "Sweep", "Reconcile", "Webhook"}

// shiftedAtOnce are functions that are called too rarely for a part of their calls to say anything: the drift job, once an hour. It
// only reads.
var shiftedAtOnce = []string{"Drift"}

// stopsRelease are the alarms that end every deployment: those that a release can cause by what it does with money, keys and rows.
// They ring at the first line. What rings for a provider's sake alone (OutboxUnknown, EvidenceLate, WebhookContradicts), for people
// (OutboxRedriven) or hours later (DriftFound) is not among them. Nor are OutboxUnsent and OutboxUnauthorized, but they end the deployment
// of who calls: a release with a wrong address of the provider, or a wrong credential, looks no different from a provider that is down or
// has revoked it, and then no release is needed at once.
//
// CodeDeploy takes 10 alarms of a deployment group, so that one alarm, releaseHarm, stands for all of these.
var stopsRelease = []string{
	"OutboxDead", "SettleFailed", "EvidenceDiffers", "MessageGone", "UnknownTopic", "RecordUnreadable", "SealNotAuthentic", "TimeoutShort",
}

const releaseHarm = "ReleaseHarm"

// stopsEvery are alarms that end every deployment, too, and ring at more than one line. A worker that DynamoDB refuses gives its batches
// back one by one, so that no invocation fails, and the version before delivers what comes back.
var stopsEvery = []string{"StoreRefused"}

// stopsReleaseOf are the alarms that end the deployment of one function, beside those of every one and its own FunctionErrors and
// ReleaseErrors.
var stopsReleaseOf = map[string][]string{
	accepts:      {"GatewayErrors", "StoreError", "OutboxUnsent", "OutboxUnauthorized"},
	"Authorizer": {"GatewayErrors"},
	"Worker":     {"DueOld", "OutboxUnsent", "OutboxUnauthorized"},
	"Relay":      {"StreamLate"},
	"Webhook":    {"WebhookFailed"},
}

// readRelease reads how a deployment goes, and which way. A stopped stack has no calls that could be shifted: its aliases are moved at
// once, so that a stack which is deployed onto other tables while it is stopped has no version with the old ones left when it runs again.
// A release that goes back does so while alarms ring, which would end it, and to what has run before.
func (r *reader) readRelease(config *Config) {
	if config.Local {
		config.Deployment = choice(r, "deployment", Now)
	} else {
		config.Deployment = choice(r, "deployment", Canary, Linear, Now)
	}
	config.Rollback = choice(r, "rollback", "false", "true") == "true"
	if config.Stopped || config.Rollback {
		config.Deployment = Now
	}
}

// release orders the deployments of the functions, and has CodeDeploy shift their calls where that is chosen.
//
// Each alias waits for others by CloudFormation's DependsOn, which waits for the whole of a deployment: all that deliver, then the one
// that accepts. A release that goes back goes the other way round, so that nobody meets what only the later release understands.
func (c Config) release(stack awscdk.Stack, functions map[string]deployed, alarms *idemconstruct.Monitor) {
	for _, id := range deliverers {
		deliverer, ok := functions[id]
		switch {
		case !ok:
		case c.Rollback:
			resourceOf(deliverer.live).AddResourceDependency(resourceOf(functions[accepts].live), nil)
		default:
			resourceOf(functions[accepts].live).AddResourceDependency(resourceOf(deliverer.live), nil)
		}
	}
	if c.Deployment == Now {
		return
	}
	self := constructs.NewConstruct(stack, jsii.String("Release"))
	application := awscodedeploy.NewLambdaApplication(self, jsii.String("Application"), nil)
	shifted := slices.DeleteFunc(slices.Sorted(maps.Keys(functions)), func(id string) bool { return slices.Contains(shiftedAtOnce, id) })
	watchHarm(alarms)
	role := shiftRole(self, functions, shifted)
	for _, id := range shifted {
		alarms.Version(id, functions[id].Function, functions[id].live, paceOfVersion(id))
		awscodedeploy.NewLambdaDeploymentGroup(self, jsii.String(id), &awscodedeploy.LambdaDeploymentGroupProps{
			Application: application, Alias: functions[id].live, Role: role, DeploymentConfig: c.shift(), Alarms: stopping(id, alarms.Alarms()),
			AutoRollback: &awscodedeploy.AutoRollbackConfig{
				FailedDeployment: jsii.Bool(true), StoppedDeployment: jsii.Bool(true), DeploymentInAlarm: jsii.Bool(true),
			},
		})
	}
}

// paceOfVersion is how often a function's new version is called while it has a tenth of the calls. Sweep and reconciler are called once a
// minute for each shard: with five shards the new version gets fewer than three calls in five minutes, and could fail at all of them.
func paceOfVersion(id string) idemconstruct.Pace {
	if id == "Sweep" || id == "Reconcile" {
		return idemconstruct.Pace{FailedMin: 1, Period: 10 * time.Minute}
	}
	return idemconstruct.Often
}

// resourceOf is the resource that CloudFormation updates.
func resourceOf(construct constructs.Construct) awscdk.CfnResource {
	return construct.Node().DefaultChild().(awscdk.CfnResource)
}

// shift is the part of the calls that a new version gets, and for how long. Ten minutes are a period of the slowest alarm, which rings at
// the first failure, and 10 % of all calls are enough for ReleaseErrors, which looks at the new version alone.
func (c Config) shift() awscodedeploy.ILambdaDeploymentConfig {
	if c.Deployment == Linear {
		return awscodedeploy.LambdaDeploymentConfig_LINEAR_10PERCENT_EVERY_3MINUTES()
	}
	return awscodedeploy.LambdaDeploymentConfig_CANARY_10PERCENT_10MINUTES()
}

// watchHarm adds the alarm that stands for stopsRelease.
func watchHarm(m *idemconstruct.Monitor) {
	var some []idemconstruct.Count
	for _, c := range idemconstruct.Counts() {
		if slices.Contains(stopsRelease, c.ID) {
			some = append(some, c)
		}
	}
	m.AnyOf(releaseHarm, "One of these alarms rings: "+strings.Join(stopsRelease, ", ")+". It ends every deployment, and tells nobody: that alarm does.", some...)
}

// stopping are the alarms that end the deployment of a function.
func stopping(id string, alarms map[string]awscloudwatch.IAlarm) *[]interfacesawscloudwatch.IAlarmRef {
	var all []interfacesawscloudwatch.IAlarmRef
	for _, name := range slices.Concat([]string{releaseHarm, "FunctionErrors" + id, "ReleaseErrors" + id}, stopsEvery, stopsReleaseOf[id]) {
		alarm, ok := alarms[name]
		if !ok {
			panic("stack: no alarm " + name)
		}
		all = append(all, alarm)
	}
	return &all
}

// shiftRole is what CodeDeploy does in: it moves these aliases and looks at alarms. AWS's managed policy for it may move every alias of
// the account, so the role is closed to it.
func shiftRole(scope constructs.Construct, functions map[string]deployed, shifted []string) awsiam.IRole {
	var arns []*string
	for _, id := range shifted {
		arns = append(arns, functions[id].FunctionArn(), idemconstruct.Within(functions[id].FunctionArn(), ":"+liveAlias))
	}
	role := awsiam.NewRole(scope, jsii.String("Role"), &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("codedeploy.amazonaws.com"), nil),
		InlinePolicies: &map[string]awsiam.PolicyDocument{
			"release": awsiam.NewPolicyDocument(&awsiam.PolicyDocumentProps{Statements: &[]awsiam.PolicyStatement{
				idemconstruct.Allow([]string{"lambda:GetAlias", "lambda:GetProvisionedConcurrencyConfig", "lambda:UpdateAlias"}, arns...),
				idemconstruct.Allow([]string{"cloudwatch:DescribeAlarms"}, jsii.String("*")),
			}}),
		},
	})
	lint.Accept(role, map[string]string{"AwsSolutions-IAM5[Resource::*]": "CloudWatch describes composite alarms only to who may describe all; it changes none."})
	return role.WithoutPolicyUpdates(nil)
}
