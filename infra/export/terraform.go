package export

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
	"github.com/idem-go/idem-aws/idem/telemetry/metric"
	"github.com/idem-go/idem-aws/infra/spec"
)

// Terraform is the module of an application, in Terraform's JSON syntax.
func Terraform() ([]byte, error) {
	functions := spec.Functions(spec.Choices{})
	resources := object{"aws_dynamodb_table": object{}}
	for _, t := range tables() {
		resources["aws_dynamodb_table"].(object)[strings.ToLower(t.name)] = tfTable(t)
	}
	if err := tfQueues(resources); err != nil {
		return nil, err
	}
	if err := tfFunctions(resources, functions); err != nil {
		return nil, err
	}
	if err := tfMappings(resources); err != nil {
		return nil, err
	}
	tfSchedules(resources, functions)
	if err := tfAlarms(resources, functions); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(object{
		"//":        generated,
		"terraform": object{"required_version": ">= 1.5", "required_providers": object{"aws": object{"source": "hashicorp/aws", "version": ">= 5.0, < 7.0"}}},
		"variable":  tfVariables(functions),
		"resource":  resources,
		"output":    tfOutputs(functions),
	}, "", "  ")
	return append(text, '\n'), err
}

func tfVariables(functions []spec.Function) object {
	var roles, scheduled []string
	for _, f := range functions {
		if roles = append(roles, f.Role); f.Scheduled {
			scheduled = append(scheduled, f.Role)
		}
	}
	return object{
		"name":         object{"type": "string", "description": "Begins the name of every resource."},
		"package":      object{"type": "string", "description": "Path of the zip file with the binary of all functions, bootstrap."},
		"alarm_topic":  object{"type": "string", "description": topicDescription},
		"architecture": object{"type": "string", "default": "arm64", "description": "Of the binary: arm64 or x86_64."},
		"environment":  object{"type": "map(string)", "default": object{}, "description": "Variables of the application's own. Those that the module sets win."},
		"inline":       object{"type": "bool", "default": false, "description": inlineDescription},
		"shards": object{
			"type": "number", "default": spec.Shards, "description": shardsDescription,
			"validation": object{
				"condition":     fmt.Sprintf("${var.shards >= %d && var.shards <= %d && floor(var.shards) == var.shards}", spec.Shards, shardsMax),
				"error_message": fmt.Sprintf("shards must be a whole number, %d to %d.", spec.Shards, shardsMax),
			},
		},
		"concurrency": object{
			"type": "map(number)", "default": object{}, "description": "By function (" + strings.Join(roles, ", ") + "). " + reservedDescription,
			"validation": object{
				"condition": fmt.Sprintf(`${alltrue([for name, value in var.concurrency : contains([%s], name) && value >= -1 && floor(value) == value && (name != "worker" || value <= 0 || value >= %d) && (!contains([%s], name) || value <= 0 || value >= %d)])}`,
					quoted(roles), spec.WorkerElse+spec.MappingMin, quoted(scheduled), spec.Shards),
				"error_message": fmt.Sprintf("concurrency has whole numbers, -1 or more, for %s; of worker -1, 0, or %d or more: its wake-ups get %d less; of %s -1, 0, or %d or more: their runs of a minute.",
					strings.Join(roles, ", "), spec.WorkerElse+spec.MappingMin, spec.WorkerElse, strings.Join(scheduled, " and "), spec.Shards),
			},
		},
	}
}

// quoted are names as the elements of a list in Terraform's language.
func quoted(names []string) string { return `"` + strings.Join(names, `", "`) + `"` }

func tfOutputs(functions []spec.Function) object {
	outputs := object{
		"idempotency_table":     object{"value": "${aws_dynamodb_table.idempotency.name}"},
		"outbox_table":          object{"value": "${aws_dynamodb_table.outbox.name}"},
		"wake_up_queue_url":     object{"value": "${aws_sqs_queue.wake_ups.url}"},
		"dead_letter_queue_url": object{"value": "${aws_sqs_queue.dead_letter.url}"},
		"api_invoke_arn":        object{"value": "${aws_lambda_function.api.invoke_arn}"},
		"api_function_name":     object{"value": "${aws_lambda_function.api.function_name}"},
	}
	for _, f := range functions { // for permissions of the application's own
		outputs[f.Role+"_role_name"] = object{"value": "${aws_iam_role." + f.Role + ".name}"}
	}
	return outputs
}

func tfTable(t table) object {
	var defined []any
	for _, a := range attributes(t.shape) {
		defined = append(defined, object{"name": a[0], "type": a[1]})
	}
	index := t.shape.Index
	properties := object{
		"name": "${var.name}-" + strings.ToLower(t.name), "billing_mode": "PAY_PER_REQUEST",
		"hash_key": t.shape.Key, "attribute": defined,
		"global_secondary_index": []any{object{
			"name": index.Name, "hash_key": index.Partition, "range_key": index.Sort,
			"projection_type": "INCLUDE", "non_key_attributes": index.Projected,
		}},
		"ttl":                         object{"attribute_name": t.shape.TTL, "enabled": true},
		"point_in_time_recovery":      object{"enabled": true},
		"deletion_protection_enabled": true,
		"lifecycle":                   object{"prevent_destroy": true},
	}
	if t.shape.StreamNewImage {
		properties["stream_enabled"], properties["stream_view_type"] = true, "NEW_IMAGE"
	}
	return properties
}

func tfQueues(resources object) error {
	redrive, err := text(object{"deadLetterTargetArn": "${aws_sqs_queue.dead_letter.arn}", "maxReceiveCount": spec.ReceivesMax(spec.Visibility(spec.WorkerTimeout, spec.BatchRecords))})
	if err != nil {
		return err
	}
	resources["aws_sqs_queue"] = object{
		"dead_letter": object{
			"name": "${var.name}-dead-letter", "message_retention_seconds": spec.DeadLetterRetention.Seconds(), "sqs_managed_sse_enabled": true,
			"lifecycle": object{"prevent_destroy": true},
		},
		"wake_ups": object{
			"name": "${var.name}-wake-ups", "message_retention_seconds": spec.WakeUpRetention.Seconds(), "sqs_managed_sse_enabled": true,
			"visibility_timeout_seconds": spec.Visibility(spec.WorkerTimeout, spec.BatchRecords).Seconds(), "redrive_policy": redrive,
		},
	}
	policies := object{}
	for _, queue := range []string{"dead_letter", "wake_ups"} {
		document, err := text(policy(onlyTLS("${aws_sqs_queue."+queue+".arn}", object{"AWS": "*"})))
		if err != nil {
			return err
		}
		policies[queue] = object{"queue_url": "${aws_sqs_queue." + queue + ".url}", "policy": document}
	}
	resources["aws_sqs_queue_policy"] = policies
	return nil
}

// text is a value as JSON within a string of Terraform's, where ${ } stands for a value of another resource.
func text(value any) (string, error) {
	written, err := json.Marshal(value)
	return string(written), err
}

// tfARN is that of a resource of a permission.
func tfARN(of spec.Resource) (any, error) {
	arns := map[spec.Resource]any{
		spec.IdempotencyTable: "${aws_dynamodb_table.idempotency.arn}",
		spec.OutboxTable:      "${aws_dynamodb_table.outbox.arn}",
		spec.IdempotencyIndex: "${aws_dynamodb_table.idempotency.arn}/index/" + tables()[0].shape.Index.Name,
		spec.OutboxIndex:      "${aws_dynamodb_table.outbox.arn}/index/" + tables()[1].shape.Index.Name,
		spec.OutboxStream:     "${aws_dynamodb_table.outbox.stream_arn}",
		spec.OutboxStreams:    "${aws_dynamodb_table.outbox.arn}/stream/*",
		spec.WakeUps:          "${aws_sqs_queue.wake_ups.arn}",
		spec.DeadLetter:       "${aws_sqs_queue.dead_letter.arn}",
	}
	return known(arns, of)
}

func tfFunctions(resources object, functions []spec.Function) error {
	logs, roles, policies, made, once := object{}, object{}, object{}, object{}, object{}
	trust, err := text(assumed())
	if err != nil {
		return err
	}
	for _, f := range functions {
		statements, err := allowed(f.Permissions, tfARN)
		if err != nil {
			return err
		}
		document, err := text(policy(append(statements, ownLog("${aws_cloudwatch_log_group."+f.Role+".arn}:*"))...))
		if err != nil {
			return err
		}
		name := "${var.name}-" + f.Role
		logs[f.Role] = object{"name": "/aws/lambda/" + name, "retention_in_days": logDays, "lifecycle": object{"prevent_destroy": true}}
		roles[f.Role] = object{"name": name, "assume_role_policy": trust}
		policies[f.Role] = object{"name": f.Role, "role": "${aws_iam_role." + f.Role + ".id}", "policy": document}
		made[f.Role] = tfFunction(f, name)
		if f.Scheduled {
			once[f.Role] = object{
				"function_name":                "${aws_lambda_function." + f.Role + ".function_name}",
				"maximum_event_age_in_seconds": spec.SchedulePeriod.Seconds(), "maximum_retry_attempts": 0,
			}
		}
	}
	if policies[environment.API+"_inline"], err = tfInline(); err != nil {
		return err
	}
	resources["aws_cloudwatch_log_group"], resources["aws_iam_role"], resources["aws_iam_role_policy"] = logs, roles, policies
	resources["aws_lambda_function"], resources["aws_lambda_function_event_invoke_config"] = made, once
	return nil
}

// tfInline lets the API function settle messages where that is chosen.
func tfInline() (object, error) {
	statements, err := allowed(inlinePermissions(), tfARN)
	if err != nil {
		return nil, err
	}
	document, err := text(policy(statements...))
	return object{
		"count": "${var.inline ? 1 : 0}", "name": "inline", "role": "${aws_iam_role." + environment.API + ".id}", "policy": document,
	}, err
}

func tfFunction(f spec.Function, name string) object {
	own, err := text(object{
		environment.Function:           f.Role,
		environment.IdempotencyTable:   "${aws_dynamodb_table.idempotency.name}",
		environment.OutboxTable:        "${aws_dynamodb_table.outbox.name}",
		environment.OutboxShards:       "${tostring(var.shards)}",
		environment.WakeUpQueueURL:     "${aws_sqs_queue.wake_ups.url}",
		environment.DeadLetterQueueURL: "${aws_sqs_queue.dead_letter.url}",
		environment.FunctionTimeout:    f.Timeout.String(),
		environment.MetricsNamespace:   metric.Namespace,
		environment.MetricsService:     "${var.name}",
	})
	if err != nil {
		panic("export: " + err.Error()) // strings by strings
	}
	return object{
		"function_name": name, "description": f.Description, "role": "${aws_iam_role." + f.Role + ".arn}",
		"filename": "${var.package}", "source_code_hash": "${filebase64sha256(var.package)}",
		"handler": "bootstrap", "runtime": "provided.al2023", "architectures": []string{"${var.architecture}"},
		"memory_size": f.MemoryMiB, "timeout": f.Timeout.Seconds(),
		// lookup's default is what the provider takes for none.
		"reserved_concurrent_executions": `${lookup(var.concurrency, "` + f.Role + `", -1)}`,
		"environment":                    object{"variables": "${merge(var.environment, " + own + ")}"},
		"logging_config":                 object{"log_format": "Text", "log_group": "${aws_cloudwatch_log_group." + f.Role + ".name}"},
		// Without the permissions a mapping could not be made.
		"depends_on": []string{"aws_iam_role_policy." + f.Role},
	}
}

func tfMappings(resources object) error {
	filter, err := pattern()
	if err != nil {
		return err
	}
	resources["aws_lambda_event_source_mapping"] = object{
		"stream": object{
			"function_name": "${aws_lambda_function.worker.arn}", "event_source_arn": "${aws_dynamodb_table.outbox.stream_arn}", "enabled": true,
			"starting_position": spec.StartingPosition, "batch_size": spec.BatchRecords, "parallelization_factor": spec.ShardBatches,
			"bisect_batch_on_function_error": true, "function_response_types": []string{"ReportBatchItemFailures"},
			"maximum_record_age_in_seconds": spec.RecordAgeMax(false).Seconds(), "maximum_retry_attempts": -1,
			"filter_criteria":    object{"filter": []any{object{"pattern": filter}}},
			"destination_config": object{"on_failure": object{"destination_arn": "${aws_sqs_queue.dead_letter.arn}"}},
		},
		"wake_ups": object{
			"function_name": "${aws_lambda_function.worker.arn}", "event_source_arn": "${aws_sqs_queue.wake_ups.arn}", "enabled": true,
			"batch_size": spec.BatchRecords, "function_response_types": []string{"ReportBatchItemFailures"},
			// What the stream leaves of the executions that are reserved: a wake-up that finds none waits for a visibility time-out.
			"dynamic": object{"scaling_config": object{
				"for_each": `${lookup(var.concurrency, "worker", -1) > 0 ? [1] : []}`,
				"content":  object{"maximum_concurrency": fmt.Sprintf(`${min(lookup(var.concurrency, "worker", -1) - %d, %d)}`, spec.WorkerElse, spec.MappingMax)},
			}},
		},
	}
	return nil
}

func tfSchedules(resources object, functions []spec.Function) {
	rules, targets, permissions := object{}, object{}, object{}
	for i, r := range runs(functions) {
		input := fmt.Sprintf("${jsonencode({shards = range(%d, var.shards, %d)})}", r.n, spec.Shards)
		rule := fmt.Sprintf("schedule_%d", i/spec.RuleTargets+1)
		rules[rule] = object{
			"name":                "${var.name}-" + strings.ReplaceAll(rule, "_", "-"),
			"description":         "Offers due and abandoned messages again, and asks about unknown ones",
			"schedule_expression": everyMinute(), "state": "ENABLED",
		}
		targets[fmt.Sprintf("run_%d", i+1)] = object{
			"rule": "${aws_cloudwatch_event_rule." + rule + ".name}", "arn": "${aws_lambda_function." + r.role + ".arn}", "input": input,
			"retry_policy": object{"maximum_event_age_in_seconds": spec.SchedulePeriod.Seconds(), "maximum_retry_attempts": 0},
		}
		permissions[rule+"_may_"+r.role] = object{
			"action": "lambda:InvokeFunction", "principal": "events.amazonaws.com",
			"function_name": "${aws_lambda_function." + r.role + ".function_name}", "source_arn": "${aws_cloudwatch_event_rule." + rule + ".arn}",
		}
	}
	resources["aws_cloudwatch_event_rule"], resources["aws_cloudwatch_event_target"], resources["aws_lambda_permission"] = rules, targets, permissions
}
