package export

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
	"github.com/idem-go/idem-aws/idem/telemetry/metric"
	"github.com/idem-go/idem-aws/infra/spec"
)

type object = map[string]any

func ref(name string) object             { return object{"Ref": name} }
func attribute(name, of string) object   { return object{"Fn::GetAtt": []any{name, of}} }
func sub(text string) object             { return object{"Fn::Sub": text} }
func resource(kind string, p object) any { return object{"Type": kind, "Properties": p} }

// SAM is the template of an application, as YAML.
func SAM() ([]byte, error) {
	functions, resources := spec.Functions(spec.Choices{}), object{}
	for _, t := range tables() {
		resources[t.name+"Table"] = kept(resource("AWS::DynamoDB::GlobalTable", samTable(t)))
	}
	samQueues(resources)
	for _, f := range functions {
		if err := samFunction(resources, f); err != nil {
			return nil, err
		}
	}
	if err := samMappings(resources); err != nil {
		return nil, err
	}
	if err := samInline(resources); err != nil {
		return nil, err
	}
	samSchedules(resources, functions)
	if err := samAlarms(resources, functions); err != nil {
		return nil, err
	}
	inputs, err := samInputs()
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(inFull(object{
		"AWSTemplateFormatVersion": "2010-09-09",
		"Transform":                "AWS::Serverless-2016-10-31",
		"Description":              "An application of idem: tables, queues, functions, schedules and alarms",
		"Parameters":               samParameters(functions),
		"Conditions":               samConditions(functions),
		"Rules":                    samRules(functions),
		"Mappings":                 object{runShards: inputs},
		"Globals": object{"Function": object{
			"CodeUri": "build/", "Handler": "bootstrap", "Runtime": "provided.al2023", "Architectures": []string{"arm64"},
		}},
		"Resources": resources,
		"Outputs": object{
			"IdempotencyTable": object{"Value": ref("IdempotencyTable")}, "OutboxTable": object{"Value": ref("OutboxTable")},
			"WakeUpQueueUrl": object{"Value": ref("WakeUpQueue")}, "DeadLetterQueueUrl": object{"Value": ref("DeadLetterQueue")},
			"ApiFunctionArn": object{"Value": attribute("ApiFunction", "Arn")},
		},
	}))
	return append([]byte("# "+generated+"\n"), text...), err
}

// inFull has whole numbers as integers. YAML writes a float of a million and more with an exponent, which tools read as a float again.
func inFull(value any) any {
	switch v := value.(type) {
	case object:
		for key := range v {
			v[key] = inFull(v[key])
		}
	case []any:
		for i := range v {
			v[i] = inFull(v[i])
		}
	case float64:
		if v == math.Trunc(v) {
			return int64(v)
		}
	}
	return value
}

// samShards are the numbers of shards that the template can be deployed with. CloudFormation can't compute what each run looks into, so
// that a table has it.
var samShards = []int{8, 16, 32, 64, 128, shardsMax}

const (
	outboxShards = "OutboxShards"
	runShards    = "RunShards" // the table
)

// samInputs are the inputs of the runs, by the number of shards and the run.
func samInputs() (object, error) {
	all := object{}
	for _, shards := range samShards {
		inputs := object{}
		for n := range spec.Shards {
			input, err := json.Marshal(object{"shards": run{n: n}.shards(shards)})
			if err != nil {
				return nil, err
			}
			inputs[fmt.Sprint("Run", n)] = string(input)
		}
		all[strconv.Itoa(shards)] = inputs
	}
	return all, nil
}

func samParameters(functions []spec.Function) object {
	var allowed []string
	for _, shards := range samShards {
		allowed = append(allowed, strconv.Itoa(shards))
	}
	parameters := object{
		"AlarmTopic": object{"Type": "String", "MinLength": 1, "Description": topicDescription},
		outboxShards: object{"Type": "String", "Default": strconv.Itoa(spec.Shards), "AllowedValues": allowed, "Description": shardsDescription},
	}
	parameters[wakeUpConcurrency] = object{"Type": "Number", "Default": 0, "MinValue": 0, "MaxValue": spec.MappingMax, "Description": fmt.Sprintf(wakeUpsDescription, spec.WorkerElse)}
	parameters[inline] = object{"Type": "String", "Default": "false", "AllowedValues": []string{"false", "true"}, "Description": inlineDescription}
	for _, f := range functions {
		parameters[reserved(f)] = object{"Type": "Number", "Default": -1, "MinValue": -1, "Description": reservedDescription}
	}
	return parameters
}

func samConditions(functions []spec.Function) object {
	unless := func(parameter, value string) object {
		return object{"Fn::Not": []any{object{"Fn::Equals": []any{ref(parameter), value}}}}
	}
	conditions := object{"Tells": unless("AlarmTopic", noTopic), wakeUpsBounded: unless(wakeUpConcurrency, "0"), inlines: object{"Fn::Equals": []any{ref(inline), "true"}}}
	for _, f := range functions {
		conditions[reserves(f)] = unless(reserved(f), "-1")
	}
	return conditions
}

// reserved is the parameter, and reserves the condition, of a function's reserved executions.
func reserved(f spec.Function) string { return title(f.Role) + "Concurrency" }
func reserves(f spec.Function) string { return title(f.Role) + "Reserves" }

const (
	wakeUpConcurrency = "WakeUpConcurrency"
	wakeUpsBounded    = "WakeUpsBounded" // the condition

	inline  = "Inline"
	inlines = "Inlines" // the condition
)

// samRules refuse a deployment whose wake-ups would take more of the worker than is reserved, and one that reserves less for a function
// than its runs of a minute, of which some would be dropped. CloudFormation compares no numbers: for the wake-ups they ask only whether a
// bound was chosen, and for the runs they list what is too few.
func samRules(functions []spec.Function) object {
	rules := object{"WakeUpsFitTheWorker": object{
		"RuleCondition": object{"Fn::Not": []any{object{"Fn::Contains": []any{[]string{"-1", "0"}, ref("WorkerConcurrency")}}}},
		"Assertions": []any{object{
			"Assert":            object{"Fn::Not": []any{object{"Fn::Equals": []any{ref(wakeUpConcurrency), "0"}}}},
			"AssertDescription": fmt.Sprintf("WorkerConcurrency needs WakeUpConcurrency, %d less than it.", spec.WorkerElse),
		}},
	}}
	var few []string
	for n := 1; n < spec.Shards; n++ {
		few = append(few, strconv.Itoa(n))
	}
	for _, f := range functions {
		if f.Scheduled {
			rules["RunsFitThe"+title(f.Role)] = object{"Assertions": []any{object{
				"Assert":            object{"Fn::Not": []any{object{"Fn::Contains": []any{few, ref(reserved(f))}}}},
				"AssertDescription": fmt.Sprintf("%s is %d or more, the function's runs of a minute, or 0 or -1.", reserved(f), spec.Shards),
			}}}
		}
	}
	return rules
}

// kept is a resource that stays when the stack goes.
func kept(r any) any {
	o := r.(object)
	o["DeletionPolicy"], o["UpdateReplacePolicy"] = "Retain", "Retain"
	return o
}

func samTable(t table) object {
	var defined []any
	for _, a := range attributes(t.shape) {
		defined = append(defined, object{"AttributeName": a[0], "AttributeType": a[1]})
	}
	index := t.shape.Index
	properties := object{
		"AttributeDefinitions": defined,
		"BillingMode":          "PAY_PER_REQUEST",
		"KeySchema":            []any{object{"AttributeName": t.shape.Key, "KeyType": "HASH"}},
		"GlobalSecondaryIndexes": []any{object{
			"IndexName": index.Name,
			"KeySchema": []any{
				object{"AttributeName": index.Partition, "KeyType": "HASH"}, object{"AttributeName": index.Sort, "KeyType": "RANGE"},
			},
			"Projection": object{"ProjectionType": "INCLUDE", "NonKeyAttributes": index.Projected},
		}},
		"TimeToLiveSpecification": object{"AttributeName": t.shape.TTL, "Enabled": true},
		"Replicas": []any{object{
			"Region": ref("AWS::Region"), "DeletionProtectionEnabled": true,
			"GlobalSecondaryIndexes":           []any{object{"IndexName": index.Name}},
			"PointInTimeRecoverySpecification": object{"PointInTimeRecoveryEnabled": true},
		}},
	}
	if t.shape.StreamNewImage {
		properties["StreamSpecification"] = object{"StreamViewType": "NEW_IMAGE"}
	}
	return properties
}

func samQueues(resources object) {
	resources["DeadLetterQueue"] = kept(resource("AWS::SQS::Queue", object{
		"MessageRetentionPeriod": spec.DeadLetterRetention.Seconds(), "SqsManagedSseEnabled": true,
	}))
	resources["WakeUpQueue"] = resource("AWS::SQS::Queue", object{
		"MessageRetentionPeriod": spec.WakeUpRetention.Seconds(), "SqsManagedSseEnabled": true,
		"VisibilityTimeout": spec.Visibility(spec.WorkerTimeout, spec.BatchRecords).Seconds(),
		"RedrivePolicy":     object{"deadLetterTargetArn": attribute("DeadLetterQueue", "Arn"), "maxReceiveCount": spec.ReceivesMax(spec.Visibility(spec.WorkerTimeout, spec.BatchRecords))},
	})
	for _, queue := range []string{"DeadLetterQueue", "WakeUpQueue"} {
		resources[queue+"Policy"] = resource("AWS::SQS::QueuePolicy", object{
			"Queues":         []any{ref(queue)},
			"PolicyDocument": policy(onlyTLS(attribute(queue, "Arn"), object{"AWS": "*"})),
		})
	}
}

// policy is a document of statements.
func policy(statements ...any) object {
	return object{"Version": "2012-10-17", "Statement": statements}
}

// onlyTLS denies what comes without TLS.
func onlyTLS(arn any, who object) object {
	return object{
		"Effect": "Deny", "Action": "sqs:*", "Principal": who, "Resource": arn,
		"Condition": object{"Bool": object{"aws:SecureTransport": "false"}},
	}
}

// samARN is that of a resource of a permission.
func samARN(of spec.Resource) (any, error) {
	arns := map[spec.Resource]any{
		spec.IdempotencyTable: attribute("IdempotencyTable", "Arn"),
		spec.OutboxTable:      attribute("OutboxTable", "Arn"),
		spec.IdempotencyIndex: sub("${IdempotencyTable.Arn}/index/" + tables()[0].shape.Index.Name),
		spec.OutboxIndex:      sub("${OutboxTable.Arn}/index/" + tables()[1].shape.Index.Name),
		spec.OutboxStream:     attribute("OutboxTable", "StreamArn"),
		spec.OutboxStreams:    sub("${OutboxTable.Arn}/stream/*"),
		spec.WakeUps:          attribute("WakeUpQueue", "Arn"),
		spec.DeadLetter:       attribute("DeadLetterQueue", "Arn"),
	}
	return known(arns, of)
}

func known(arns map[spec.Resource]any, of spec.Resource) (any, error) {
	arn, ok := arns[of]
	if !ok {
		return nil, fmt.Errorf("export: there is no %s", of)
	}
	return arn, nil
}

// allowed writes permissions as statements.
func allowed(permissions []spec.Permission, arn func(spec.Resource) (any, error)) ([]any, error) {
	var statements []any
	for _, p := range permissions {
		var on []any
		for _, of := range p.On {
			name, err := arn(of)
			if err != nil {
				return nil, err
			}
			on = append(on, name)
		}
		statements = append(statements, object{"Effect": "Allow", "Action": p.Actions, "Resource": on})
	}
	return statements, nil
}

// ownLog lets a function write its own log.
func ownLog(arn any) object {
	return object{"Effect": "Allow", "Action": []string{"logs:CreateLogStream", "logs:PutLogEvents"}, "Resource": []any{arn}}
}

// assumed lets Lambda assume a role.
func assumed() object {
	return policy(object{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": object{"Service": "lambda.amazonaws.com"}})
}

// logDays is for how long logs are kept.
const logDays = 90

func samFunction(resources object, f spec.Function) error {
	statements, err := allowed(f.Permissions, samARN)
	if err != nil {
		return err
	}
	name := title(f.Role)
	resources[name+"Logs"] = kept(resource("AWS::Logs::LogGroup", object{"RetentionInDays": logDays}))
	resources[name+"Role"] = resource("AWS::IAM::Role", object{
		"AssumeRolePolicyDocument": assumed(),
		"Policies": []any{object{
			"PolicyName":     f.Role,
			"PolicyDocument": policy(append(statements, ownLog(attribute(name+"Logs", "Arn")))...),
		}},
	})
	resources[name+"Function"] = resource("AWS::Serverless::Function", object{
		"Description": f.Description, "MemorySize": f.MemoryMiB, "Timeout": f.Timeout.Seconds(),
		"Role": attribute(name+"Role", "Arn"), "LoggingConfig": object{"LogGroup": ref(name + "Logs")},
		"ReservedConcurrentExecutions": object{"Fn::If": []any{reserves(f), ref(reserved(f)), ref("AWS::NoValue")}},
		"Environment": object{"Variables": object{
			environment.Function:           f.Role,
			environment.IdempotencyTable:   ref("IdempotencyTable"),
			environment.OutboxTable:        ref("OutboxTable"),
			environment.OutboxShards:       ref(outboxShards),
			environment.WakeUpQueueURL:     ref("WakeUpQueue"),
			environment.DeadLetterQueueURL: ref("DeadLetterQueue"),
			environment.FunctionTimeout:    f.Timeout.String(),
			environment.MetricsNamespace:   metric.Namespace,
			environment.MetricsService:     ref("AWS::StackName"),
		}},
	})
	if f.Scheduled {
		resources[name+"Once"] = resource("AWS::Lambda::EventInvokeConfig", object{
			"FunctionName": ref(name + "Function"), "Qualifier": "$LATEST",
			"MaximumEventAgeInSeconds": spec.SchedulePeriod.Seconds(), "MaximumRetryAttempts": 0,
		})
	}
	return nil
}

// samInline lets the API function settle messages where that is chosen.
func samInline(resources object) error {
	statements, err := allowed(inlinePermissions(), samARN)
	if err != nil {
		return err
	}
	role := title(environment.API) + "Role"
	widened := resource("AWS::IAM::Policy", object{
		"PolicyName": "inline", "Roles": []any{ref(role)}, "PolicyDocument": policy(statements...),
	}).(object)
	widened["Condition"] = inlines
	resources[title(environment.API)+inline] = widened
	return nil
}

// pattern is the filter of the stream's mapping.
func pattern() (string, error) {
	text, err := json.Marshal(spec.InsertOfPending())
	return string(text), err
}

func samMappings(resources object) error {
	filter, err := pattern()
	if err != nil {
		return err
	}
	resources["StreamMapping"] = resource("AWS::Lambda::EventSourceMapping", object{
		"FunctionName": ref("WorkerFunction"), "EventSourceArn": attribute("OutboxTable", "StreamArn"), "Enabled": true,
		"StartingPosition": spec.StartingPosition, "BatchSize": spec.BatchRecords, "ParallelizationFactor": spec.ShardBatches,
		"BisectBatchOnFunctionError": true, "FunctionResponseTypes": []string{"ReportBatchItemFailures"},
		"MaximumRecordAgeInSeconds": spec.RecordAgeMax(false).Seconds(),
		"FilterCriteria":            object{"Filters": []any{object{"Pattern": filter}}},
		"DestinationConfig":         object{"OnFailure": object{"Destination": attribute("DeadLetterQueue", "Arn")}},
	})
	resources["WakeUpMapping"] = resource("AWS::Lambda::EventSourceMapping", object{
		"FunctionName": ref("WorkerFunction"), "EventSourceArn": attribute("WakeUpQueue", "Arn"), "Enabled": true,
		"BatchSize": spec.BatchRecords, "FunctionResponseTypes": []string{"ReportBatchItemFailures"},
		"ScalingConfig": object{"Fn::If": []any{wakeUpsBounded, object{"MaximumConcurrency": ref(wakeUpConcurrency)}, ref("AWS::NoValue")}},
	})
	return nil
}

// onlyOnce is the retry policy of a schedule's target: what was not delivered in its minute is the next one's work.
func onlyOnce() object {
	return object{"MaximumEventAgeInSeconds": spec.SchedulePeriod.Seconds(), "MaximumRetryAttempts": 0}
}

// everyMinute is the schedule.
func everyMinute() string { return "rate(1 minute)" }

func samSchedules(resources object, functions []spec.Function) {
	n := 0
	for some := range slices.Chunk(runs(functions), spec.RuleTargets) {
		n++
		rule := fmt.Sprintf("Schedule%d", n)
		var targets []any
		for i, r := range some {
			input := object{"Fn::FindInMap": []any{runShards, ref(outboxShards), fmt.Sprint("Run", r.n)}}
			function := title(r.role) + "Function"
			targets = append(targets, object{
				"Id": fmt.Sprintf("Target%d", i), "Arn": attribute(function, "Arn"), "Input": input, "RetryPolicy": onlyOnce(),
			})
			resources[rule+"May"+title(r.role)] = resource("AWS::Lambda::Permission", object{
				"Action": "lambda:InvokeFunction", "Principal": "events.amazonaws.com",
				"FunctionName": attribute(function, "Arn"), "SourceArn": attribute(rule, "Arn"),
			})
		}
		resources[rule] = resource("AWS::Events::Rule", object{
			"Description":        "Offers due and abandoned messages again, and asks about unknown ones",
			"ScheduleExpression": everyMinute(), "State": "ENABLED", "Targets": targets,
		})
	}
}
