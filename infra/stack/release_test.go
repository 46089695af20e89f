package stack_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// of are the resources of a type by their plain names.
func (s *synthesized) of(kind string) map[string]resource {
	found := map[string]resource{}
	for name, r := range s.Resources {
		if r.Type == kind {
			found[bare(name)] = r
		}
	}
	return found
}

// Nothing calls a function but by its alias: $LATEST changes before a deployment knows whether the new version is any good.
func TestEverythingCallsTheLiveAlias(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		called := map[string]string{}
		for name, r := range template.Resources {
			switch r.Type {
			case "AWS::Lambda::EventSourceMapping", "AWS::Lambda::Permission":
				called[name] = plain(r.Properties["FunctionName"])
			case "AWS::Events::Rule":
				for n, target := range r.Properties["Targets"].([]any) {
					called[fmt.Sprint(name, n)] = plain(target.(map[string]any)["Arn"])
				}
			case "AWS::ApiGatewayV2::Integration":
				called[name] = plain(r.Properties["IntegrationUri"])
			case "AWS::ApiGateway::Method":
				called[name] = plain(r.Properties["Integration"].(map[string]any)["Uri"])
			case "AWS::ApiGatewayV2::Authorizer", "AWS::ApiGateway::Authorizer":
				called[name] = plain(r.Properties["AuthorizerUri"])
			}
		}
		if len(called) < 8 {
			t.Errorf("only %d callers found: %v", len(called), called)
		}
		for name, function := range called {
			if !strings.Contains(function, "Live") || strings.Contains(function, "Function.") {
				t.Errorf("%s calls %s", name, function)
			}
		}
	})
}

// Each function has one alias, at the version of its present code. Where calls may be under way in old versions, they stay. The version
// of a deployment that fails does not: the same code would be no new version then, and could not be deployed again.
func TestVersionsStay(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		aliases, functions := template.of("AWS::Lambda::Alias"), template.of("AWS::Lambda::Function")
		if len(aliases) != len(functions) {
			t.Errorf("%d aliases of %d functions", len(aliases), len(functions))
		}
		for name, alias := range aliases {
			function, _ := strings.CutSuffix(name, "Live")
			version := alias.Properties["FunctionVersion"].(map[string]any)["Fn::GetAtt"].([]any)
			published := template.Resources[version[0].(string)]
			if alias.Properties["Name"] != "live" || plain(alias.Properties["FunctionName"]) != function+"Function" ||
				published.Type != "AWS::Lambda::Version" || version[1] != "Version" || plain(published.Properties["FunctionName"]) != function+"Function" {
				t.Errorf("%s: %v at %v", name, alias.Properties, published)
			}
			want := [2]string{"RetainExceptOnCreate", "Retain"}
			if variants[variant]["local"] != nil {
				want = [2]string{"Delete", "Delete"}
			}
			if got := [2]string{published.DeletionPolicy, published.UpdateReplacePolicy}; got != want {
				t.Errorf("%s: a version that goes, or is replaced: %v, want %v", name, got, want)
			}
		}
	})
}

// A deployment gives a new version, and so a canary, to the functions whose code or settings changed, and to no other.
func TestAVersionChangesWithItsFunctionOnly(t *testing.T) {
	build := buildFolder(t)
	versions := func() map[string]string {
		found := map[string]string{}
		for name, r := range synthesizeFrom(t, "http-gateway", build).Resources {
			if r.Type == "AWS::Lambda::Version" {
				found[plain(r.Properties["FunctionName"])] = name
			}
		}
		return found
	}
	before, again := versions(), versions()
	if !maps.Equal(before, again) || len(before) != 6 {
		t.Fatalf("the same code: %v, then %v", before, again)
	}
	if err := os.WriteFile(filepath.Join(build, "arm64", "worker", "bootstrap"), []byte("fixed"), 0o755); err != nil {
		t.Fatal(err)
	}
	for function, version := range versions() {
		if changed := version != before[function]; changed != (function == "WorkerFunction") {
			t.Errorf("%s: %s, then %s", function, before[function], version)
		}
	}
}

// dependencies are the resources that CloudFormation deploys before one.
func (s *synthesized) dependencies(t *testing.T, name string) (all []string) {
	t.Helper()
	for id, r := range s.document["Resources"].(map[string]any) {
		if bare(id) != name {
			continue
		}
		if after, ok := r.(map[string]any)["DependsOn"]; ok {
			for _, each := range list(after) {
				all = append(all, bare(each))
			}
		}
	}
	slices.Sort(all)
	return all
}

// What processes messages runs a release before what writes them does; a release that goes back goes the other way round.
func TestWorkersAreDeployedBeforeTheAPI(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		deliver := []string{"ReconcileLive", "SweepLive", "WorkerLive"}
		if webhooks(variant) {
			deliver = []string{"ReconcileLive", "SweepLive", "WebhookLive", "WorkerLive"}
		}
		back := chosen(variant, "rollback")
		if got := template.dependencies(t, "ApiLive"); back && len(got) != 0 || !back && !slices.Equal(got, deliver) {
			t.Errorf("the API comes after %v", got)
		}
		for _, each := range deliver {
			if got := template.dependencies(t, each); back && !slices.Equal(got, []string{"ApiLive"}) || !back && len(got) != 0 {
				t.Errorf("%s comes after %v", each, got)
			}
		}
	})
}

// Every function but the drift job is shifted by CodeDeploy, and an alarm that a release can cause takes it back. No local stack has
// any of it: emulators refuse it.
func TestAlarmsTakeAReleaseBack(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		groups := template.of("AWS::CodeDeploy::DeploymentGroup")
		if variants[variant]["local"] != nil || chosen(variant, "rollback") {
			if len(groups) != 0 || len(template.of("AWS::CodeDeploy::Application")) != 0 {
				t.Error("a local stack, or one that goes back while alarms ring, has CodeDeploy")
			}
			return
		}
		config := map[bool]string{false: "CodeDeployDefault.LambdaCanary10Percent10Minutes", true: "CodeDeployDefault.LambdaLinear10PercentEvery3Minutes"}[chosen(variant, "deployment")]
		for id, r := range template.document["Resources"].(map[string]any) {
			if r := r.(map[string]any); r["Type"] == "AWS::Lambda::Alias" {
				name := strings.TrimSuffix(bare(id), "Live")
				policy, shifted := r["UpdatePolicy"].(map[string]any)
				if shifted != (name != "Drift") {
					t.Errorf("%s: %v", id, policy)
				}
				if shifted && plain(policy["CodeDeployLambdaAliasUpdate"].(map[string]any)["DeploymentGroupName"]) != "Release"+name {
					t.Errorf("%s: %v", id, policy)
				}
			}
		}
		own := map[string][]string{
			"Api": {"GatewayErrors", "StoreError", "OutboxUnsent", "OutboxUnauthorized"}, "Authorizer": {"GatewayErrors"},
			"Worker": {"DueOld", "OutboxUnsent", "OutboxUnauthorized"}, "Relay": {"StreamLate"}, "Webhook": {"WebhookFailed"},
		}
		for name, group := range groups {
			function := strings.TrimPrefix(name, "Release")
			var alarms []string
			watched := group.Properties["AlarmConfiguration"].(map[string]any)
			for _, each := range watched["Alarms"].([]any) {
				alarms = append(alarms, strings.TrimPrefix(plain(each.(map[string]any)["Name"]), "Alarms"))
			}
			want := slices.Concat([]string{"ReleaseHarm", "StoreRefused", "FunctionErrors" + function, "ReleaseErrors" + function}, own[function])
			slices.Sort(want)
			slices.Sort(alarms)
			// While the new version has a tenth of the calls, all of it may fail without FunctionErrors: so its own are looked at.
			looked := template.alarms(t)["ReleaseErrors"+function]
			for _, term := range looked.Metrics {
				if of := term.MetricStat.Metric; of.MetricName != "" {
					told := map[string]string{}
					for _, d := range of.Dimensions {
						told[fmt.Sprint(d.Name)] = plain(d.Value)
					}
					version, _, found := strings.Cut(told["ExecutedVersion"], ".Version")
					if told["FunctionName"] != function+"Function" || told["Resource"] != function+"Function"+"live" && told["Resource"] != function+"Function:live" || !found || !strings.HasPrefix(version, function+"FunctionCurrentVersion") {
						t.Errorf("%s looks at %v", name, told)
					}
				}
			}
			if len(looked.Metrics) != 3 {
				t.Errorf("%s has no alarm on its new version", name)
			}
			if watched["Enabled"] != true || watched["IgnorePollAlarmFailure"] == true || !slices.Equal(alarms, want) {
				t.Errorf("%s: %v, want %v", name, alarms, want)
			}
			events := fmt.Sprint(group.Properties["AutoRollbackConfiguration"].(map[string]any)["Events"])
			if events != "[DEPLOYMENT_FAILURE DEPLOYMENT_STOP_ON_REQUEST DEPLOYMENT_STOP_ON_ALARM]" || group.Properties["DeploymentConfigName"] != config {
				t.Errorf("%s: %s, %v", name, events, group.Properties["DeploymentConfigName"])
			}
		}
		if want := len(template.of("AWS::Lambda::Function")) - 1; len(groups) != want {
			t.Errorf("%d deployment groups, want %d", len(groups), want)
		}
	})
}

// What a release does with money, keys and rows ends every deployment: ReleaseHarm is all of these alarms in one, and rings as they do.
func TestReleaseHarmIsTheAlarmsOnMoneyInOne(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		alarms := template.alarms(t)
		harm, made := alarms["ReleaseHarm"]
		if shifts := len(template.of("AWS::CodeDeploy::DeploymentGroup")) > 0; made != shifts {
			t.Fatalf("there is ReleaseHarm: %v, and CodeDeploy: %v", made, shifts)
		}
		if !made {
			return
		}
		want, got := map[string]bool{}, map[string]bool{}
		for _, id := range []string{
			"EvidenceDiffers", "MessageGone", "OutboxDead", "RecordUnreadable", "SealNotAuthentic", "SettleFailed", "TimeoutShort", "UnknownTopic",
		} {
			one := alarms[id]
			want[fmt.Sprint(one.Namespace, one.MetricName, one.Dimensions, one.Statistic, one.Period)] = true
			if one.Threshold != harm.Threshold || one.DatapointsToAlarm != harm.DatapointsToAlarm || one.EvaluationPeriods != harm.EvaluationPeriods {
				t.Errorf("%s rings at other times than ReleaseHarm", id)
			}
		}
		for _, term := range harm.Metrics {
			if of := term.MetricStat; of.Metric.MetricName != "" {
				got[fmt.Sprint(of.Metric.Namespace, of.Metric.MetricName, of.Metric.Dimensions, of.Stat, of.Period)] = true
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("ReleaseHarm looks at %v, want %v", got, want)
		}
		if harm.AlarmActions != nil {
			t.Errorf("ReleaseHarm tells %v what another alarm tells", harm.AlarmActions)
		}
	})
}

// CodeDeploy takes 10 alarms of a deployment group ("AlarmsLimitExceededException"), and CloudFormation asks it last: a group with more
// rolls the whole stack back. No emulator counts them.
func TestNoDeploymentGroupHasMoreAlarmsThanCodeDeployTakes(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		for name, group := range template.of("AWS::CodeDeploy::DeploymentGroup") {
			if alarms := group.Properties["AlarmConfiguration"].(map[string]any)["Alarms"].([]any); len(alarms) > 10 {
				t.Errorf("%s has %d alarms", name, len(alarms))
			}
		}
	})
}

// A stack gets other tables while it is stopped: its aliases move at once then, and starting it again changes concurrency and mappings
// only. Else the versions before would run with the tables before, for as long as a canary takes.
func TestAStoppedStackMovesAllAliasesAtOnce(t *testing.T) {
	build := buildFolder(t)
	versions := func(template *synthesized) map[string]string {
		found := map[string]string{}
		for name, r := range template.Resources {
			if r.Type == "AWS::Lambda::Version" {
				found[plain(r.Properties["FunctionName"])] = name
			}
		}
		return found
	}
	other := imported(nil)
	other["lost"] = "records"
	running := synthesizeContext(t, production(other), build)
	other["stopped"] = "true"
	stopped := synthesizeContext(t, production(other), build)
	stopped.counts(t, "AWS::CodeDeploy::DeploymentGroup", 0)
	if got, want := versions(running), versions(stopped); len(want) != 6 || !maps.Equal(got, want) {
		t.Errorf("started: %v, stopped: %v", got, want)
	}
	before := versions(synthesizeContext(t, production(nil), build))
	for _, function := range []string{"ApiFunction", "WorkerFunction", "SweepFunction", "ReconcileFunction"} {
		if versions(stopped)[function] == before[function] {
			t.Errorf("%s has the version of the other tables", function)
		}
	}
}

// With deployment=now no alarm can stop a release: it is for the one that ends the alarm.
func TestDeploymentNow(t *testing.T) {
	template := synthesizeContext(t, map[string]any{"account": "111122223333", "region": "eu-central-1", "alarmTopic": "none", "deployment": "now"}, buildFolder(t))
	template.counts(t, "AWS::CodeDeploy::DeploymentGroup", 0)
	template.counts(t, "AWS::Lambda::Alias", 6)
	if got := template.dependencies(t, "ApiLive"); len(got) != 3 {
		t.Errorf("the API comes after %v", got)
	}
	if _, err := read(map[string]any{"providerUrl": "http://127.0.0.1:9000", "local": true, "alarmTopic": "none", "deployment": "canary"}, nil); err == nil ||
		!strings.Contains(err.Error(), `context deployment="canary" is refused; allowed: now`) {
		t.Errorf("canary with local: %v", err)
	}
}
