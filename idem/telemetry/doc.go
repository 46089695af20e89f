// Package telemetry makes CloudWatch metrics of the library's log lines, in the Embedded Metric Format: no client, no
// call, no agent, only members that a JSON line carries besides.
//
// [NewHandler] stands before a JSON handler whose lines reach CloudWatch Logs, as those of a Lambda function's standard
// output do. A line whose message is the name of a metric (package metric) counts one; delivered and declined messages
// carry their age too:
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
