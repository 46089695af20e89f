// Package telemetry makes CloudWatch metrics of the library's log lines, in the Embedded Metric Format. It needs no
// client, no call and no agent: a metric is a member that a JSON log line carries. Use it for services whose log
// lines reach CloudWatch Logs, as the standard output of a Lambda function does. Elsewhere count the log lines by
// their messages, which package metric names.
//
// [NewHandler] wraps a JSON handler of log/slog. Give the resulting logger to the Config of every package of idem. A
// line whose message is the name of a metric counts one; delivered and declined messages carry their age too:
//
//	{"time":"…","level":"INFO","msg":"idempotency.reserve.replay","_aws":{"Timestamp":1795228800000,"CloudWatchMetrics":[
//	  {"Namespace":"idem","Dimensions":[["service"]],"Metrics":[{"Name":"idempotency.reserve.replay","Unit":"Count"}]}]},
//	 "service":"payments","idempotency.reserve.replay":1,"operation":"payments.create","tenant":"tenant-a","key_hash":"…"}
//
// A line that is written while something traced is handled has the members trace_id and span_id, in hex as collectors show them
// (package trace). It has neither where nothing is traced.
//
// Every other line passes as it is. Neither a tenant nor a key is a dimension, of which each value would be a metric to
// pay for: what a tenant does is counted from the lines, by Contributor Insights with the key $.tenant and a filter on
// $.msg, or by Logs Insights:
//
//	filter msg = "idempotency.reserve.replay" | stats count(*) as duplicates by tenant | sort duplicates desc
//
// A log level never loses a metric: lines with one are written whatever the level of the handler behind, and LOG_LEVEL
// decides about the others.
package telemetry
