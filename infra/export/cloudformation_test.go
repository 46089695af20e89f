package export_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/infra/idemconstruct"
)

// cdkFacts are those of what NewApplication makes by default.
func cdkFacts(t *testing.T) facts {
	t.Helper()
	build := t.TempDir()
	if err := os.WriteFile(filepath.Join(build, "bootstrap"), []byte("binary"), 0o755); err != nil {
		t.Fatal(err)
	}
	stack := awscdk.NewStack(awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(t.TempDir())}), jsii.String("shop"), nil)
	idemconstruct.NewApplication(stack, "Idem", idemconstruct.ApplicationProps{
		Code: awslambda.Code_FromAsset(jsii.String(build), nil), AlarmTopic: idemconstruct.NoTopic,
	})
	return cloudFormation{t, *assertions.Template_FromStack(stack, nil).ToJSON()}.facts()
}

func samFacts(t *testing.T) facts {
	t.Helper()
	return cloudFormation{t, normal(t, samDocument(t))}.facts()
}

// cloudFormation is a template of either kind.
type cloudFormation struct {
	t        *testing.T
	document map[string]any
}

var (
	// madeByCDK is what CDK makes of a construct's path.
	madeByCDK = regexp.MustCompile(`^Idem(?:Tables|Queues|Delivery|Alarms)?(.*)[0-9A-F]{8}$`)
	// kinds are the ends of logical names.
	kinds = regexp.MustCompile(`(Table|Queue|Mapping|Function|Role|Logs)$`)
	words = regexp.MustCompile(`([a-z])([A-Z])`)
)

// name is a resource in plain words: "wake ups" for a queue, "worker" for a function and its role.
func name(logical string) string {
	logical = kinds.ReplaceAllString(madeByCDK.ReplaceAllString(logical, "$1"), "")
	plain := strings.ToLower(words.ReplaceAllString(logical, "$1 $2"))
	if plain == "wake up" {
		return "wake ups"
	}
	return plain
}

var within = regexp.MustCompile(`\$\{(\w+)\.(\w+)\}`)

// text is a value with the names of resources: "outbox.Arn/stream/*".
func (c cloudFormation) text(value any) string {
	object, ok := value.(map[string]any)
	if !ok {
		return str(value)
	}
	switch {
	case object["Ref"] != nil:
		return name(str(object["Ref"]))
	case object["Fn::GetAtt"] != nil:
		return name(str(at(object, "Fn::GetAtt.0"))) + "." + str(at(object, "Fn::GetAtt.1"))
	case object["Fn::Sub"] != nil:
		return within.ReplaceAllStringFunc(str(object["Fn::Sub"]), func(part string) string {
			found := within.FindStringSubmatch(part)
			return name(found[1]) + "." + found[2]
		})
	case object["Fn::Join"] != nil:
		var all strings.Builder
		for _, part := range at(object, "Fn::Join.1").([]any) {
			all.WriteString(c.text(part))
		}
		return all.String()
	}
	c.t.Fatalf("%v: not understood", value)
	return ""
}

// each calls do with every resource of a kind.
func (c cloudFormation) each(kind string, do func(logical string, properties map[string]any)) {
	resources := c.document["Resources"].(map[string]any)
	for _, logical := range slices.Sorted(maps.Keys(resources)) {
		if at(resources, logical+".Type") == kind {
			do(logical, resources[logical].(map[string]any)["Properties"].(map[string]any))
		}
	}
}

func (c cloudFormation) facts() facts {
	f := facts{tables: map[string]tableFacts{}, settings: map[string]string{}, functions: map[string]string{}, alarms: map[string]alarmFacts{}}
	c.each("AWS::DynamoDB::GlobalTable", func(logical string, p map[string]any) { f.tables[name(logical)] = tableOf(p) })
	c.queues(f)
	c.mappings(f)
	c.schedules(f)
	c.alarms(f)
	f.permissions, f.wider = c.permissions(), c.wider()
	for _, kind := range []string{"AWS::Lambda::Function", "AWS::Serverless::Function"} {
		c.each(kind, func(logical string, p map[string]any) {
			variables := at(p, "Environment.Variables").(map[string]any)
			if got := str(variables["IDEM_FUNCTION"]); got != name(logical) {
				c.t.Errorf("%s runs as %q", logical, got)
			}
			f.functions[name(logical)] = fmt.Sprint(p["Timeout"], " s, ", p["MemorySize"], " MiB, FUNCTION_TIMEOUT=", variables["FUNCTION_TIMEOUT"],
				", OUTBOX_SHARDS=", c.chosen(variables["OUTBOX_SHARDS"], nil), ", ", slices.Sorted(maps.Keys(variables)))
		})
	}
	return f
}

// services are what the one dimension of the functions' own metrics is: the CDK's application has its construct's id in it.
var services = map[string]bool{"shop-Idem": true, name("AWS::StackName"): true}

func (c cloudFormation) alarms(f facts) {
	c.each("AWS::CloudWatch::Alarm", func(logical string, p map[string]any) {
		alarm := alarmFacts{
			Description: str(p["AlarmDescription"]), Comparison: str(p["ComparisonOperator"]), Missing: str(p["TreatMissingData"]),
			Threshold: str(p["Threshold"]), Periods: str(p["DatapointsToAlarm"]), OfLast: str(p["EvaluationPeriods"]), Metrics: map[string]string{},
			Tells: c.tells(p["AlarmActions"]),
		}
		if p["Metrics"] == nil {
			alarm.Metrics[""] = measured(p["Namespace"], p["MetricName"], p["Statistic"], p["Period"], c.dimensions(p["Dimensions"]))
		}
		for _, query := range listedOrNone(p["Metrics"]) {
			if expression := at(query, "Expression"); expression != nil {
				alarm.Expression = str(expression)
				continue
			}
			if at(query, "ReturnData") != false {
				c.t.Errorf("%s: %v is returned beside the expression", logical, query)
			}
			alarm.Metrics[str(at(query, "Id"))] = measured(at(query, "MetricStat.Metric.Namespace"), at(query, "MetricStat.Metric.MetricName"),
				at(query, "MetricStat.Stat"), at(query, "MetricStat.Period"), c.dimensions(at(query, "MetricStat.Metric.Dimensions")))
		}
		id := strings.TrimSuffix(madeByCDK.ReplaceAllString(logical, "$1"), "Alarm")
		f.alarms[id] = alarm
	})
}

func (c cloudFormation) dimensions(list any) map[string]string {
	found := map[string]string{}
	for _, d := range listedOrNone(list) {
		value := strings.TrimSuffix(c.text(at(d, "Value")), ".QueueName")
		if services[value] {
			value = "service"
		}
		found[str(at(d, "Name"))] = rule(value)
	}
	return found
}

// tells are the actions of an alarm.
func (c cloudFormation) tells(actions any) string {
	if actions == nil {
		return ""
	}
	condition := str(at(actions, "Fn::If.0"))
	none := at(c.document, "Conditions."+condition+".Fn::Not.0.Fn::Equals")
	if at(actions, "Fn::If.1.0.Ref") == "AlarmTopic" && at(actions, "Fn::If.2.Ref") == "AWS::NoValue" && at(none, "0.Ref") == "AlarmTopic" && at(none, "1") == "none" {
		return tellsTopic
	}
	return fmt.Sprint("not understood: ", actions)
}

// listedOrNone is a list that may be missing.
func listedOrNone(value any) []any {
	list, _ := value.([]any)
	return list
}

func tableOf(p map[string]any) tableFacts {
	return tableFacts{
		Key: str(at(p, "KeySchema.0.AttributeName")), TTL: str(at(p, "TimeToLiveSpecification.AttributeName")),
		Stream: str(at(p, "StreamSpecification.StreamViewType")), Protected: at(p, "Replicas.0.DeletionProtectionEnabled") == true,
		Recoverable: at(p, "Replicas.0.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled") == true,
		Index: schema.Index{
			Name: str(at(p, "GlobalSecondaryIndexes.0.IndexName")), Partition: str(at(p, "GlobalSecondaryIndexes.0.KeySchema.0.AttributeName")),
			Sort: str(at(p, "GlobalSecondaryIndexes.0.KeySchema.1.AttributeName")), Projected: strs(at(p, "GlobalSecondaryIndexes.0.Projection.NonKeyAttributes")),
		},
	}
}

func (c cloudFormation) queues(f facts) {
	c.each("AWS::SQS::Queue", func(logical string, p map[string]any) {
		of := "queue " + name(logical) + ": "
		f.settings[of+"retention"], f.settings[of+"encrypted"] = str(p["MessageRetentionPeriod"]), str(p["SqsManagedSseEnabled"])
		if p["RedrivePolicy"] != nil {
			f.settings[of+"visibility"] = str(p["VisibilityTimeout"])
			f.settings[of+"redrive"] = redrive(c.text(at(p, "RedrivePolicy.deadLetterTargetArn")), at(p, "RedrivePolicy.maxReceiveCount"))
		}
	})
	c.each("AWS::SQS::QueuePolicy", func(_ string, p map[string]any) {
		statement := listed(at(p, "PolicyDocument.Statement"))[0]
		f.settings["queue "+c.text(at(p, "Queues.0"))+": denied"] = denied(statement)
	})
}

func redrive(arn string, count any) string {
	return strings.TrimSuffix(arn, ".Arn") + " after " + str(count)
}

// denied is what a queue's policy refuses, where it refuses it to everybody.
func denied(statement any) string {
	if at(statement, "Effect") != "Deny" || at(statement, "Principal.AWS") != "*" {
		return fmt.Sprint("not understood: ", statement)
	}
	for key, value := range at(statement, "Condition.Bool").(map[string]any) {
		if value == "false" {
			return str(at(statement, "Action")) + " unless " + key
		}
	}
	return "never"
}

func (c cloudFormation) mappings(f facts) {
	c.each("AWS::Lambda::EventSourceMapping", func(logical string, p map[string]any) {
		of := "mapping " + name(logical) + ": "
		f.settings[of+"function"], f.settings[of+"source"] = c.text(p["FunctionName"]), c.text(p["EventSourceArn"])
		f.settings[of+"enabled"], f.settings[of+"batch"] = str(p["Enabled"]), str(p["BatchSize"])
		f.settings[of+"partial failures"] = str(slices.Contains(strs(p["FunctionResponseTypes"]), "ReportBatchItemFailures"))
		if p["StartingPosition"] != nil {
			f.settings[of+"from"], f.settings[of+"bisect"] = str(p["StartingPosition"]), str(p["BisectBatchOnFunctionError"])
			f.settings[of+"at once"], f.settings[of+"age"] = str(p["ParallelizationFactor"]), str(p["MaximumRecordAgeInSeconds"])
			f.settings[of+"filter"] = str(at(p, "FilterCriteria.Filters.0.Pattern"))
			f.settings[of+"failures go to"] = strings.TrimSuffix(c.text(at(p, "DestinationConfig.OnFailure.Destination")), ".Arn")
		}
	})
}

func (c cloudFormation) schedules(f facts) {
	inputs, how := map[string][]string{}, map[string]string{}
	allowed := map[string]bool{}
	c.each("AWS::Lambda::Permission", func(_ string, p map[string]any) {
		allowed[c.text(p["FunctionName"])+" "+c.text(p["SourceArn"])] = p["Principal"] == "events.amazonaws.com" && p["Action"] == "lambda:InvokeFunction"
	})
	c.each("AWS::Events::Rule", func(logical string, p map[string]any) {
		for _, target := range p["Targets"].([]any) {
			arn := c.text(at(target, "Arn"))
			if !allowed[arn+" "+name(logical)+".Arn"] {
				c.t.Errorf("%s may not call %s", logical, arn)
			}
			role := strings.TrimSuffix(arn, ".Arn")
			inputs[role] = append(inputs[role], shardsIn(c.chosen(at(target, "Input"), nil)))
			how[role] = runsOf(at(target, "RetryPolicy.MaximumRetryAttempts"), at(target, "RetryPolicy.MaximumEventAgeInSeconds"), p["ScheduleExpression"])
		}
	})
	for role, shards := range inputs {
		f.settings["runs of "+role] = fmt.Sprint(sorted(shards), " ", how[role])
	}
	c.each("AWS::Lambda::EventInvokeConfig", func(_ string, p map[string]any) {
		f.settings["calls of "+c.text(p["FunctionName"])] = fmt.Sprint(p["MaximumEventAgeInSeconds"], " s, ", p["MaximumRetryAttempts"], " more")
	})
}

func runsOf(retries, age, schedule any) string {
	if str(retries) != "0" {
		return str(retries) + " times more"
	}
	return fmt.Sprint("once, within ", age, " s, ", schedule)
}

func sorted(all []string) []string {
	slices.Sort(all)
	return all
}

// resources are what a role's statements are about, by the text of their ARNs.
var resources = map[string]string{
	"idempotency.Arn": "idempotency table", "outbox.Arn": "outbox table",
	"idempotency.Arn/index/sweep": "index of the idempotency table", "outbox.Arn/index/queue": "index of the outbox table",
	"outbox.StreamArn": "stream of the outbox table", "outbox.Arn/stream/*": "streams of the outbox table",
	"wake ups.Arn": "queue of wake-ups", "dead letter.Arn": "dead-letter queue",
}

// permissionsOf reads the statements of a role, with the text of each ARN.
func permissionsOf(t *testing.T, role string, statements []any, text func(any) string) (all []string) {
	t.Helper()
	for _, statement := range statements {
		if at(statement, "Effect") != "Allow" || at(statement, "Condition") != nil {
			t.Errorf("%s: not understood: %v", role, statement)
		}
		for _, action := range listed(at(statement, "Action")) {
			for _, on := range listed(at(statement, "Resource")) {
				arn := text(on)
				if plain, ok := resources[arn]; ok {
					arn = plain
				} else if arn == role+".Arn" {
					arn = "own log"
				}
				all = append(all, role+": "+str(action)+" on "+arn)
			}
		}
	}
	return all
}

func (c cloudFormation) permissions() (all []string) {
	c.each("AWS::IAM::Role", func(logical string, p map[string]any) {
		if who := at(p, "AssumeRolePolicyDocument.Statement.0.Principal.Service"); who != "lambda.amazonaws.com" || p["ManagedPolicyArns"] != nil {
			c.t.Errorf("%s is for %v, with %v", logical, who, p["ManagedPolicyArns"])
		}
		for _, policy := range p["Policies"].([]any) {
			all = append(all, permissionsOf(c.t, name(logical), listed(at(policy, "PolicyDocument.Statement")), c.text)...)
		}
	})
	return all
}

// wider are the permissions that a chosen parameter adds, with the condition that they depend on.
func (c cloudFormation) wider() (all map[string][]string) {
	all = map[string][]string{}
	resources := c.document["Resources"].(map[string]any)
	c.each("AWS::IAM::Policy", func(logical string, p map[string]any) {
		condition := str(at(resources, logical+".Condition"))
		equals := at(c.document, "Conditions."+condition+".Fn::Equals")
		chosen := str(at(equals, "0.Ref")) + "=" + str(at(equals, "1"))
		for _, role := range p["Roles"].([]any) {
			all[chosen] = append(all[chosen], permissionsOf(c.t, c.text(role), listed(at(p, "PolicyDocument.Statement")), c.text)...)
		}
	})
	return all
}

// shardsIn are the shards that an event names: "[0]".
func shardsIn(event string) string {
	return strings.TrimSuffix(strings.TrimPrefix(event, `{"shards":`), "}")
}

// chosen is a value by the template's parameters: those that are given, and the defaults.
func (c cloudFormation) chosen(value any, parameters map[string]string) string {
	object, ok := value.(map[string]any)
	switch {
	case !ok:
		return str(value)
	case object["Ref"] != nil:
		name := str(object["Ref"])
		if given, ok := parameters[name]; ok {
			return given
		}
		return str(at(c.document, "Parameters."+name+".Default"))
	case object["Fn::FindInMap"] != nil:
		path := []string{"Mappings"}
		for _, key := range object["Fn::FindInMap"].([]any) {
			path = append(path, c.chosen(key, parameters))
		}
		return str(at(c.document, strings.Join(path, ".")))
	case object["Fn::If"] != nil:
		branch := "2"
		for name, condition := range c.document["Conditions"].(map[string]any) {
			if equals := at(condition, "Fn::Not.0.Fn::Equals"); name == str(at(object, "Fn::If.0")) && c.chosen(at(equals, "0"), parameters) != c.chosen(at(equals, "1"), parameters) {
				branch = "1"
			}
		}
		return c.chosen(at(object, "Fn::If."+branch), parameters)
	}
	return c.text(value)
}

// shardsOf are the shards that an event names.
func shardsOf(t *testing.T, event string) []int {
	t.Helper()
	var input struct{ Shards []int }
	if err := json.Unmarshal([]byte(event), &input); err != nil || len(input.Shards) == 0 {
		t.Fatalf("event %q names no shards: %v", event, err)
	}
	return input.Shards
}

// With each number of shards that can be chosen the runs of each function look into every shard, once a minute.
func TestSAMSchedulesFollowTheShards(t *testing.T) {
	c := cloudFormation{t, normal(t, samDocument(t))}
	allowed := strs(at(c.document, "Parameters.OutboxShards.AllowedValues"))
	if len(allowed) < 2 || allowed[0] != "8" {
		t.Fatalf("%v can be chosen", allowed)
	}
	for _, shards := range allowed {
		seen := map[string][]int{}
		c.each("AWS::Events::Rule", func(_ string, p map[string]any) {
			for _, target := range p["Targets"].([]any) {
				role := c.text(at(target, "Arn"))
				seen[role] = append(seen[role], shardsOf(t, c.chosen(at(target, "Input"), map[string]string{"OutboxShards": shards}))...)
			}
		})
		count, err := strconv.Atoi(shards)
		if err != nil {
			t.Fatal(err)
		}
		eachOnce(t, shards, count, seen)
		c.each("AWS::Serverless::Function", func(logical string, p map[string]any) {
			if got := c.chosen(at(p, "Environment.Variables.OUTBOX_SHARDS"), map[string]string{"OutboxShards": shards}); got != shards {
				t.Errorf("%s has %s shards, want %s", logical, got, shards)
			}
		})
	}
}

// Where executions are reserved for the worker, a bound on the wake-ups must be chosen with them.
func TestSAMBoundsWakeUpsWithTheWorker(t *testing.T) {
	c := cloudFormation{t, normal(t, samDocument(t))}
	mapping := at(c.document, "Resources.WakeUpMapping.Properties.ScalingConfig")
	if most := at(mapping, "Fn::If.1.MaximumConcurrency.Ref"); most != "WakeUpConcurrency" {
		t.Errorf("wake-ups have %v", most)
	}
	for chosen, want := range map[string]string{"0": "unbounded", "10": "bounded"} {
		bounded := map[string]any{"Fn::If": []any{at(mapping, "Fn::If.0"), "bounded", "unbounded"}}
		if got := c.chosen(bounded, map[string]string{"WakeUpConcurrency": chosen}); got != want {
			t.Errorf("with %s wake-ups are %s", chosen, got)
		}
	}
	rule := at(c.document, "Rules.WakeUpsFitTheWorker")
	if fmt.Sprint(at(rule, "RuleCondition")) != "map[Fn::Not:[map[Fn::Contains:[[-1 0] map[Ref:WorkerConcurrency]]]]]" ||
		fmt.Sprint(at(rule, "Assertions.0.Assert")) != "map[Fn::Not:[map[Fn::Equals:[map[Ref:WakeUpConcurrency] 0]]]]" {
		t.Errorf("the rule is %v", rule)
	}
}

// Sweep and reconciler have eight runs a minute at once: a reservation of fewer would drop some of them, minute after minute.
func TestSAMRefusesReservationsThatDropRuns(t *testing.T) {
	c := cloudFormation{t, normal(t, samDocument(t))}
	for _, role := range []string{"Sweep", "Reconcile"} {
		rule := at(c.document, "Rules.RunsFitThe"+role)
		want := "map[Fn::Not:[map[Fn::Contains:[[1 2 3 4 5 6 7] map[Ref:" + role + "Concurrency]]]]]"
		if got := fmt.Sprint(at(rule, "Assertions.0.Assert")); got != want || at(rule, "RuleCondition") != nil {
			t.Errorf("%s: the rule is %v, want %s", role, rule, want)
		}
	}
}

// Nothing is reserved by default, and what is chosen is the function's alone.
func TestSAMReservesWhatIsChosen(t *testing.T) {
	c, found := cloudFormation{t, normal(t, samDocument(t))}, 0
	c.each("AWS::Serverless::Function", func(logical string, p map[string]any) {
		found++
		for _, given := range []map[string]string{nil, {"WorkerConcurrency": "60", "SweepConcurrency": "0"}} {
			want := given[strings.TrimSuffix(logical, "Function")+"Concurrency"] // "" is AWS::NoValue
			if got := c.chosen(p["ReservedConcurrentExecutions"], given); got != want {
				t.Errorf("%s has %q reserved with %v, want %q", logical, got, given, want)
			}
		}
	})
	if found != 4 {
		t.Errorf("%d functions, want 4", found)
	}
}
