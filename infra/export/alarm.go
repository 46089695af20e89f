package export

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/idem-go/idem-aws/infra/spec"
)

// alarms are those of the application, with the schedule's rules by their names in both files.
func alarms(functions []spec.Function) []spec.Alarm {
	var rules []spec.Resource
	for i := range (len(runs(functions)) + spec.RuleTargets - 1) / spec.RuleTargets {
		rules = append(rules, ruleOf(i+1))
	}
	return spec.Alarms(functions, rules, tables()[0].shape.Index.Name, tables()[1].shape.Index.Name)
}

// ruleOf is one of the schedule's rules, from 1 on.
func ruleOf(n int) spec.Resource { return spec.Resource(fmt.Sprint("rule ", n)) }

// noTopic is the value of the parameter for alarms that only show, as idemconstruct.NoTopic.
const noTopic = "none"

// topicDescription is that of the parameter.
const topicDescription = "ARN of the SNS topic that alarms go to; none for alarms that only show."

// judged says how an alarm compares, and what it makes of periods without data.
func judged(a spec.Alarm) (comparison, missing string) {
	if a.Heartbeat {
		return "LessThanThreshold", "breaching"
	}
	return "GreaterThanOrEqualToThreshold", "notBreaching"
}

func described(a spec.Alarm) string {
	return spec.Described(a.Description, spec.Runbooks, cmp.Or(a.Runbook, a.ID))
}

// samNames and tfNames are what alarms call resources.
func samNames(functions []spec.Function) map[spec.Resource]any {
	names := map[spec.Resource]any{
		spec.Service: ref("AWS::StackName"), spec.IdempotencyTable: ref("IdempotencyTable"), spec.OutboxTable: ref("OutboxTable"),
		spec.WakeUps: attribute("WakeUpQueue", "QueueName"), spec.DeadLetter: attribute("DeadLetterQueue", "QueueName"),
	}
	for _, f := range functions {
		names[spec.FunctionOf(f.Role)] = ref(f.ConstructID() + "Function")
	}
	for i := range runs(functions) {
		names[ruleOf(i+1)] = ref(fmt.Sprintf("Schedule%d", i+1))
	}
	return names
}

func tfNames(functions []spec.Function) map[spec.Resource]any {
	names := map[spec.Resource]any{
		spec.Service: "${var.name}", spec.IdempotencyTable: "${aws_dynamodb_table.idempotency.name}", spec.OutboxTable: "${aws_dynamodb_table.outbox.name}",
		spec.WakeUps: "${aws_sqs_queue.wake_ups.name}", spec.DeadLetter: "${aws_sqs_queue.dead_letter.name}",
	}
	for _, f := range functions {
		names[spec.FunctionOf(f.Role)] = "${aws_lambda_function." + f.Role + ".function_name}"
	}
	for i := range runs(functions) {
		names[ruleOf(i+1)] = fmt.Sprintf("${aws_cloudwatch_event_rule.schedule_%d.name}", i+1)
	}
	return names
}

// dimension is the value of one.
func dimension(d spec.Dimension, names map[spec.Resource]any) (any, error) {
	if d.Of == "" {
		return d.Value, nil
	}
	return known(names, d.Of)
}

func samAlarms(resources object, functions []spec.Function) error {
	names := samNames(functions)
	for _, a := range alarms(functions) {
		comparison, missing := judged(a)
		properties := object{
			"AlarmDescription": described(a), "ComparisonOperator": comparison, "TreatMissingData": missing, "Threshold": a.Threshold,
			"DatapointsToAlarm": a.Periods, "EvaluationPeriods": a.OfLast,
			"AlarmActions": object{"Fn::If": []any{"Tells", []any{ref("AlarmTopic")}, ref("AWS::NoValue")}},
		}
		var queries []any
		if a.Expression != "" {
			queries = append(queries, object{"Id": "expr_1", "Expression": a.Expression, "ReturnData": true})
		}
		for _, m := range a.Metrics {
			metric, err := samMetric(m, names)
			if err != nil {
				return err
			}
			if a.Expression == "" {
				properties["Namespace"], properties["MetricName"], properties["Dimensions"] = m.Namespace, m.Name, metric["Dimensions"]
				properties["Statistic"], properties["Period"] = m.Statistic, m.Period.Seconds()
				continue
			}
			queries = append(queries, object{
				"Id": m.ID, "ReturnData": false,
				"MetricStat": object{"Metric": metric, "Period": m.Period.Seconds(), "Stat": m.Statistic},
			})
		}
		if a.Expression != "" {
			properties["Metrics"] = queries
		}
		resources[a.ID+"Alarm"] = resource("AWS::CloudWatch::Alarm", properties)
	}
	return nil
}

func samMetric(m spec.Metric, names map[spec.Resource]any) (object, error) {
	dimensions := []any{}
	for _, d := range m.Dimensions {
		value, err := dimension(d, names)
		if err != nil {
			return nil, err
		}
		dimensions = append(dimensions, object{"Name": d.Name, "Value": value})
	}
	return object{"Namespace": m.Namespace, "MetricName": m.Name, "Dimensions": dimensions}, nil
}

func tfAlarms(resources object, functions []spec.Function) error {
	names, made := tfNames(functions), object{}
	for _, a := range alarms(functions) {
		comparison, missing := judged(a)
		properties := object{
			"alarm_name": "${var.name}-" + a.ID, "alarm_description": described(a), "comparison_operator": comparison, "treat_missing_data": missing,
			"threshold": a.Threshold, "datapoints_to_alarm": a.Periods, "evaluation_periods": a.OfLast,
			"alarm_actions": `${var.alarm_topic == "` + noTopic + `" ? [] : [var.alarm_topic]}`,
		}
		var queries []any
		if a.Expression != "" {
			queries = append(queries, object{"id": "expr_1", "expression": a.Expression, "return_data": true})
		}
		for _, m := range a.Metrics {
			dimensions := object{}
			for _, d := range m.Dimensions {
				value, err := dimension(d, names)
				if err != nil {
					return err
				}
				dimensions[d.Name] = value
			}
			metric := object{"namespace": m.Namespace, "metric_name": m.Name, "dimensions": dimensions, "period": m.Period.Seconds()}
			if a.Expression == "" {
				for key, value := range metric {
					properties[key] = value
				}
				properties["statistic"] = m.Statistic
				continue
			}
			metric["stat"] = m.Statistic
			queries = append(queries, object{"id": m.ID, "return_data": false, "metric": metric})
		}
		if a.Expression != "" {
			properties["metric_query"] = queries
		}
		made[tfID(a.ID)] = properties
	}
	resources["aws_cloudwatch_metric_alarm"] = made
	return nil
}

// tfID is an alarm's id as Terraform writes names: "function_errors_api".
func tfID(id string) string {
	var name strings.Builder
	for i, r := range id {
		if i > 0 && r >= 'A' && r <= 'Z' {
			name.WriteByte('_')
		}
		name.WriteRune(r)
	}
	return strings.ToLower(name.String())
}
