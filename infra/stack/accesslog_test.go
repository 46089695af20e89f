package stack_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// Every request has a line with the ids of the gateway's request and of the function's, and nothing in it that a client would
// keep secret.
func TestAccessLog(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		kind, name, settings := "AWS::ApiGatewayV2::Stage", "HttpApiDefaultStage", "AccessLogSettings"
		if strings.HasPrefix(variant, "rest") {
			kind, name, settings = "AWS::ApiGateway::Stage", "RestApiDeploymentStage", "AccessLogSetting"
		}
		log, ok := template.only(t, kind, name).Properties[settings].(map[string]any)
		if local := strings.HasSuffix(variant, "function"); local == ok {
			t.Fatalf("access log: %v, local: %v", ok, local)
		} else if local {
			return
		}
		if plain(log["DestinationArn"]) != "AccessLogs.Arn" {
			t.Errorf("logs to %v", log["DestinationArn"])
		}
		if group := template.only(t, "AWS::Logs::LogGroup", "AccessLogs"); group.DeletionPolicy != "Retain" || group.Properties["RetentionInDays"] != 90.0 {
			t.Errorf("the log is %s, and kept for %v days", group.DeletionPolicy, group.Properties["RetentionInDays"])
		}
		var fields map[string]string
		if err := json.Unmarshal([]byte(log["Format"].(string)), &fields); err != nil {
			t.Fatal(err)
		}
		if fields["requestId"] != "$context.requestId" || fields["functionRequestId"] != "$context.integration.requestId" {
			t.Errorf("request ids: %v", fields)
		}
		for field, value := range fields {
			if !strings.HasPrefix(value, "$context.") || strings.Contains(strings.ToLower(value), "key") || strings.Contains(value, "header") {
				t.Errorf("%s is %s", field, value)
			}
		}
	})
}
