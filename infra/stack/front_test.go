package stack_test

import (
	"fmt"
	"strings"
	"testing"
)

// certificate is one of Certificate Manager's.
const certificate = "arn:aws:acm:eu-central-1:111122223333:certificate/0aa0aa0a-1234-5678-9abc-0123456789ab"

// fronted is a stack with an API of its own name, and a firewall before it where it can have one.
func fronted(t *testing.T, api string) *synthesized {
	t.Helper()
	context := map[string]any{
		"account": "111122223333", "region": "eu-central-1", "alarmTopic": "none", "api": api,
		"domainName": "api.shop.example", "certificate": certificate,
	}
	if api == "rest" {
		context["waf"], context["wafRate"] = "on", "5000"
	}
	return synthesizeContext(t, context, buildFolder(t))
}

// The API is called by its own name, over TLS 1.2 or newer, and not by the one that AWS gave it.
func TestDomain(t *testing.T) {
	for api, kind := range map[string]string{"http": "AWS::ApiGatewayV2::Api", "rest": "AWS::ApiGateway::RestApi"} {
		template := fronted(t, api)
		domain := template.only(t, "AWS::ApiGatewayV2::DomainName", "Domain").Properties
		settings := domain["DomainNameConfigurations"].([]any)[0].(map[string]any)
		if domain["DomainName"] != "api.shop.example" || settings["SecurityPolicy"] != "TLS_1_2" || settings["CertificateArn"] != certificate {
			t.Errorf("%s: %v", api, domain)
		}
		prefix := map[string]string{"http": "HttpApi", "rest": "RestApi"}[api]
		mapping := template.only(t, "AWS::ApiGatewayV2::ApiMapping", "DomainMapping").Properties
		if plain(mapping["ApiId"]) != prefix || plain(mapping["DomainName"]) != "Domain" || mapping["Stage"] == nil {
			t.Errorf("%s: %v", api, mapping)
		}
		if made := template.only(t, kind, prefix).Properties; made["DisableExecuteApiEndpoint"] != true {
			t.Errorf("%s answers by AWS's name too", api)
		}
		if url := template.Outputs["ApiUrl"].Value; url != "https://api.shop.example" {
			t.Errorf("%s: %v", api, url)
		}
	}
}

func TestCertificateIsWhereTheAPIIs(t *testing.T) {
	context := map[string]any{
		"providerUrl": "https://provider.example", "account": "111122223333", "region": "eu-central-1", "alarmTopic": "none",
		"domainName": "api.shop.example", "certificate": strings.Replace(certificate, "eu-central-1", "us-east-1", 1),
	}
	if _, err := read(context, nil); err == nil || !strings.Contains(err.Error(), "a certificate in eu-central-1") {
		t.Errorf("got %v", err)
	}
}

// The firewall is before the stage, has AWS's rules and the bound on one address, and blocks no body for its size alone.
func TestFirewall(t *testing.T) {
	template := fronted(t, "rest")
	association := template.only(t, "AWS::WAFv2::WebACLAssociation", "FirewallStage").Properties
	if plain(association["WebACLArn"]) != "FirewallAcl.Arn" || !strings.Contains(plain(association["ResourceArn"]), "/restapis/RestApi/stages/") {
		t.Errorf("%v, %s", association, plain(association["ResourceArn"]))
	}
	var rules []string
	for _, each := range template.only(t, "AWS::WAFv2::WebACL", "FirewallAcl").Properties["Rules"].([]any) {
		rule := each.(map[string]any)
		statement := rule["Statement"].(map[string]any)
		if rate, ok := statement["RateBasedStatement"].(map[string]any); ok {
			rules = append(rules, fmt.Sprint("rate ", rate["Limit"], " by ", rate["AggregateKeyType"], " ", rule["Action"]))
			continue
		}
		group := statement["ManagedRuleGroupStatement"].(map[string]any)
		rules = append(rules, fmt.Sprint(group["Name"], " ", rule["OverrideAction"], " ", group["RuleActionOverrides"]))
	}
	want := []string{
		"rate 5000 by IP map[Block:map[]]",
		"AWSManagedRulesAmazonIpReputationList map[None:map[]] <nil>",
		"AWSManagedRulesKnownBadInputsRuleSet map[None:map[]] <nil>",
		"AWSManagedRulesCommonRuleSet map[None:map[]] [map[ActionToUse:map[Count:map[]] Name:SizeRestrictions_BODY]]",
	}
	if strings.Join(rules, "\n") != strings.Join(want, "\n") {
		t.Errorf("rules\n%s\nwant\n%s", strings.Join(rules, "\n"), strings.Join(want, "\n"))
	}
	template.has(t, "AWS::ApiGateway::GatewayResponse", map[string]any{"ResponseType": "WAF_FILTERED", "StatusCode": "403"})
}
