package stack_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"

	"github.com/idem-go/idem-aws/infra/stack"
)

// production is the least context of a stack that goes to AWS, and more.
func production(more map[string]any) map[string]any {
	context := map[string]any{"providerUrl": "https://provider.example", "account": "111122223333", "region": "eu-central-1", "alarmTopic": "none"}
	maps.Copy(context, more)
	return context
}

// What is reserved stands in the template of each function, and where nothing is, nothing does: Lambda takes 0 for never.
func TestReservedConcurrency(t *testing.T) {
	for variant, reserved := range map[string]map[string]any{
		"http-gateway": {"Api": 400.0, "Authorizer": 100.0, "Worker": 200.0, "Sweep": 10.0, "Reconcile": 10.0, "Drift": nil},
		"rest-gateway": {
			"Api": 400.0, "Authorizer": 100.0, "Webhook": 50.0, "Worker": 60.0, "Relay": 20.0, "Sweep": nil, "Reconcile": 18.0, "Drift": nil,
		},
		"http-origins-gateway": {"Api": nil, "Authorizer": nil, "Webhook": nil, "Worker": nil, "Sweep": nil, "Reconcile": nil, "Drift": nil},
		"http-function":        {"Api": nil, "Worker": nil, "Sweep": nil, "Reconcile": nil},
	} {
		for name, want := range reserved {
			function := synthesize(t, variant).only(t, "AWS::Lambda::Function", name+"Function")
			if got := function.Properties["ReservedConcurrentExecutions"]; got != want {
				t.Errorf("%s: %s has %v, want %v", variant, name, got, want)
			}
		}
	}
}

// A map of cdk.json and its JSON from the command line say the same; what they do not name keeps its default.
func TestReadConcurrency(t *testing.T) {
	want := stack.Concurrency{Authorizer: 100, API: 300, Webhook: 50, Worker: 100, Relay: 40, Reconcile: 10}
	for _, given := range []any{`{"api": 300, "worker": 100, "sweep": 0}`, map[string]any{"api": 300.0, "worker": 100.0, "sweep": 0.0}} {
		got, err := read(production(map[string]any{"concurrency": given}), nil)
		if err != nil || got.Concurrency != want || got.WorkerConcurrency != 50 {
			t.Errorf("%v: %+v, %d, %v; want %+v and 50", given, got.Concurrency, got.WorkerConcurrency, err, want)
		}
	}
	for _, context := range []map[string]any{
		{"concurrency": "none", "accountConcurrency": 10, "workerConcurrency": 1000}, // a new account
		{"concurrency": "none", "local": true},
		{"accountConcurrency": 870},                                                                            // without webhooks and relay the defaults are 720
		{"accountConcurrency": 910, "outbox": "sqs", "webhookSecret": "payments/webhook"},                      // with them 810
		{"accountConcurrency": 926, "outbox": "sqs", "webhookSecret": "payments/webhook", "outboxShards": 256}, // and 826 with the most runs
		{"accountConcurrency": 820, "workerConcurrency": 150},
		{"outboxShards": 256, "concurrency": `{"sweep": 16, "reconcile": 0}`},
		{"outbox": "sqs", "workerConcurrency": 190},
		{"outbox": "sqs", "concurrency": `{"relay": 0}`, "streamShards": 40},
		{"streamShards": 16, "streamBatches": 5},
	} {
		if _, err := read(production(context), nil); err != nil {
			t.Errorf("%v: %v", context, err)
		}
	}
}

// What cannot hold is refused, with the field, its value and the rule that it breaks.
func TestReadConcurrencyRefuses(t *testing.T) {
	for want, context := range map[string]map[string]any{
		`context concurrency="authorizer 100, api 400, worker 200, sweep 10, reconcile 10: 720 in all" is refused; allowed: at most 719 in all, ` +
			`which is accountConcurrency (819) less the 100 that must stay unreserved`: {"accountConcurrency": 819},
		`webhook 50, worker 200, relay 40, sweep 10, reconcile 10: 810 in all" is refused; allowed: at most 809 in all`: {
			"accountConcurrency": 909, "outbox": "sqs", "webhookSecret": "payments/webhook",
		},
		`webhook 50, worker 200, relay 40, sweep 18, reconcile 18: 826 in all" is refused; allowed: at most 825 in all`: {
			"accountConcurrency": 925, "outbox": "sqs", "webhookSecret": "payments/webhook", "outboxShards": 256,
		},
		`webhook 50, worker 200, relay 40, sweep 10, reconcile 10: 1310 in all" is refused; allowed: at most 900 in all`: {
			"concurrency": `{"api": 900}`, "outbox": "sqs", "webhookSecret": "payments/webhook",
		},
		`allowed: at most 0 in all, which is accountConcurrency (10)`:                 {"accountConcurrency": 10},
		`context concurrency.api="-1" is refused; allowed: 0 to 100000`:               {"concurrency": `{"api": -1}`},
		`context concurrency.drift="5" is refused; allowed: none, or {"authorizer"`:   {"concurrency": map[string]any{"drift": 5.0}},
		`context concurrency="{\"api\": \"many\"}" is refused; allowed: none, or {`:   {"concurrency": `{"api": "many"}`},
		`context concurrency="all" is refused; allowed: none, or {`:                   {"concurrency": "all"},
		`context concurrency="null" is refused; allowed: none, or {`:                  {"concurrency": "null"},
		`context concurrency="{}" is refused; allowed: nothing or none, with local=t`: {"concurrency": "{}", "local": true},
		`context workerConcurrency="151" is refused; allowed: 2 to 150: concurrency.worker (200) less 10 and less streamBatches × streamShards (40)`: {
			"workerConcurrency": "151",
		},
		`context workerConcurrency="0" is refused; allowed: 2 to 150`:                                                     {"workerConcurrency": 0},
		`context workerConcurrency="191" is refused; allowed: 2 to 190: concurrency.worker (200) less 10`:                 {"workerConcurrency": 191, "outbox": "sqs"},
		`context concurrency.worker="50" is refused; allowed: what leaves 2 or more to the wake-ups`:                      {"concurrency": `{"worker": 50}`},
		`context concurrency.worker="200" is refused; allowed: what leaves 2 or more to the wake-ups`:                     {"streamShards": 19},
		`context concurrency.sweep="7" is refused; allowed: at least 8, the runs of a minute with outboxShards (8), or 0`: {"concurrency": `{"sweep": 7}`},
		`context concurrency.reconcile="15" is refused; allowed: at least 16, the runs of a minute with outboxShards (29), or 0`: {
			"concurrency": `{"reconcile": 15}`, "outboxShards": 29,
		},
		`context wakeUpsMax="999" is refused; allowed: 1000 to 10000000`:                                       {"wakeUpsMax": 999, "outbox": "sqs"},
		`context probesMax="15" is refused; allowed: 16 to 10000`:                                              {"probesMax": 15, "outboxShards": 29},
		`context concurrency.relay="40" is refused; allowed: at least streamBatches × streamShards = 50, or 0`: {"outbox": "sqs", "streamShards": 5},
	} {
		if _, err := read(production(context), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v; want\n%s", context, err, want)
		}
	}
}

// The stage bounds what comes in at all, and the routes that move money have less.
func TestThrottles(t *testing.T) {
	template := synthesize(t, "http-gateway")
	paying := map[string]any{"ThrottlingRateLimit": 500, "ThrottlingBurstLimit": 500}
	template.has(t, "AWS::ApiGatewayV2::Stage", map[string]any{
		"DefaultRouteSettings": map[string]any{"ThrottlingRateLimit": 1000, "ThrottlingBurstLimit": 1000},
		"RouteSettings": map[string]any{
			"ANY /v1/payments": paying, "ANY /v1/payments/{id}/refunds": paying, "ANY /v1/payouts": paying, "ANY /v1/transfers": paying,
		},
	})
	after := 0
	for _, each := range template.document["Resources"].(map[string]any) {
		if each := each.(map[string]any); each["Type"] == "AWS::ApiGatewayV2::Stage" {
			for _, name := range list(each["DependsOn"]) {
				if r := template.Resources[name.(string)]; r.Type == "AWS::ApiGatewayV2::Route" && strings.HasPrefix(r.Properties["RouteKey"].(string), "ANY ") {
					after++
				}
			}
		}
	}
	if after != 4 {
		t.Errorf("the stage comes after %d of the routes that it names", after)
	}
	for _, variant := range []string{"http-origins-gateway", "http-function"} {
		synthesize(t, variant).has(t, "AWS::ApiGatewayV2::Stage", map[string]any{
			"DefaultRouteSettings": assertions.Match_Absent(), "RouteSettings": assertions.Match_Absent(),
		})
	}
}

// A REST API has one method for all that moves money: POST, at the proxy above the paths.
func TestThrottlesOfARESTAPI(t *testing.T) {
	template := synthesize(t, "rest-gateway")
	template.has(t, "AWS::ApiGateway::Stage", map[string]any{"MethodSettings": assertions.Match_ArrayWith(&[]any{
		map[string]any{"ResourcePath": "/*", "HttpMethod": "*", "DataTraceEnabled": false, "ThrottlingRateLimit": 200, "ThrottlingBurstLimit": 100},
		map[string]any{
			"ResourcePath": "/~1v1~1{proxy+}", "HttpMethod": "POST", "DataTraceEnabled": false, "ThrottlingRateLimit": 90, "ThrottlingBurstLimit": 80,
		},
	})})
	template.has(t, "AWS::ApiGateway::Method", map[string]any{"HttpMethod": "POST", "AuthorizationType": "CUSTOM"})
	synthesize(t, "rest-function").has(t, "AWS::ApiGateway::Stage", map[string]any{"MethodSettings": assertions.Match_Absent()})
}
