package stack_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
)

// The provider has a signature and no token: its path passes the authorizer, and leads nowhere else.
func TestWebhooksPassTheAuthorizer(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		if !webhooks(variant) {
			return
		}
		if strings.HasPrefix(variant, "http-") {
			template.has(t, "AWS::ApiGatewayV2::Route", map[string]any{
				"RouteKey": "ANY /v1/webhooks/provider", "AuthorizationType": "NONE", "AuthorizerId": assertions.Match_Absent(),
			})
		}
		found := 0
		for name, r := range template.Resources {
			switch {
			case r.Type == "AWS::ApiGatewayV2::Integration" && strings.HasPrefix(plain(r.Properties["IntegrationUri"]), "WebhookLive"):
				found++
			case r.Type == "AWS::ApiGateway::Method" && strings.Contains(fmt.Sprint(r.Properties["Integration"]), "WebhookLive"):
				found++
				resource := r.Properties["ResourceId"].(map[string]any)["Ref"].(string)
				if r.Properties["AuthorizationType"] != "NONE" || r.Properties["HttpMethod"] != "ANY" || template.path(resource) != "/v1/webhooks/provider" {
					t.Errorf("%s serves %s with %v", name, template.path(resource), r.Properties)
				}
			}
		}
		if found != 1 {
			t.Errorf("%d ways lead to the webhook function, want 1", found)
		}
	})
}

// path is the whole path of a REST API's resource.
func (s *synthesized) path(name string) string {
	r := s.Resources[name]
	if r.Type != "AWS::ApiGateway::Resource" {
		return ""
	}
	parent, _ := r.Properties["ParentId"].(map[string]any)["Ref"].(string)
	return s.path(parent) + "/" + r.Properties["PathPart"].(string)
}

// What stands beside the webhooks' path is the application's, whatever a gateway makes of a proxy further up.
func TestRESTAPIKeepsThePathsBesideTheWebhooks(t *testing.T) {
	for _, variant := range []string{"rest-gateway", "rest-function"} {
		template := synthesize(t, variant)
		served := map[string]bool{}
		for _, r := range template.Resources {
			if r.Type == "AWS::ApiGateway::Method" && strings.Contains(fmt.Sprint(r.Properties["Integration"]), "ApiLive") {
				resource, _ := r.Properties["ResourceId"].(map[string]any)["Ref"].(string)
				served[template.path(resource)] = true
			}
		}
		for _, path := range []string{"", "/{proxy+}", "/v1", "/v1/{proxy+}", "/v1/webhooks", "/v1/webhooks/{proxy+}"} {
			if !served[path] {
				t.Errorf("%s: the application does not serve %q", variant, path)
			}
		}
	}
}
