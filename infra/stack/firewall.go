package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awswafv2"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// wafRateDefault is per address and five minutes: more than twice what one tenant's quotas let through, because a tenant may have
// one address, as the provider has for its webhooks.
const wafRateDefault = 100_000

// The bounds of AWS WAF.
const (
	wafRateMin = 10
	wafRateMax = 2_000_000_000
)

// readFirewall reads whether there is one. An HTTP API takes no web ACL.
func (r *reader) readFirewall(config *Config) {
	config.WAF = choice(r, "waf", "off", "on") == "on"
	config.WAFRate = r.within("wafRate", wafRateDefault, wafRateMin, wafRateMax)
	switch {
	case config.WAF && config.API != REST:
		r.refuse("waf", "on", "off, with api=http: AWS WAF protects no HTTP API; api=rest has it")
	case config.WAF && config.Local:
		r.refuse("waf", "on", "off, with local=true: emulators have none")
	}
}

// managedRules are AWS's rules, in the order in which they are asked, and which of them only count.
var managedRules = []struct {
	name   string
	counts []string
}{
	{"AWSManagedRulesAmazonIpReputationList", nil},
	{"AWSManagedRulesKnownBadInputsRuleSet", nil},
	// It would block every body over 8 KB; the application bounds bodies itself.
	{"AWSManagedRulesCommonRuleSet", []string{"SizeRestrictions_BODY"}},
}

// protect puts a web ACL before the stage of a REST API.
func protect(scope constructs.Construct, api awsapigateway.RestApi, config Config) {
	if !config.WAF {
		return
	}
	self := constructs.NewConstruct(scope, jsii.String("Firewall"))
	rules := []any{&awswafv2.CfnWebACL_RuleProperty{
		Name: jsii.String("Rate"), Priority: jsii.Number(0), VisibilityConfig: seen("Rate"),
		Action: &awswafv2.CfnWebACL_RuleActionProperty{Block: map[string]any{}},
		Statement: &awswafv2.CfnWebACL_StatementProperty{RateBasedStatement: &awswafv2.CfnWebACL_RateBasedStatementProperty{
			AggregateKeyType: jsii.String("IP"), Limit: jsii.Number(config.WAFRate),
		}},
	}}
	for i, each := range managedRules {
		rules = append(rules, managedRule(each.name, each.counts, i+1))
	}
	list := awswafv2.NewCfnWebACL(self, jsii.String("Acl"), &awswafv2.CfnWebACLProps{
		Scope: jsii.String("REGIONAL"), DefaultAction: &awswafv2.CfnWebACL_DefaultActionProperty{Allow: map[string]any{}},
		VisibilityConfig: seen("Firewall"), Rules: &rules,
	})
	awswafv2.NewCfnWebACLAssociation(self, jsii.String("Stage"), &awswafv2.CfnWebACLAssociationProps{
		ResourceArn: api.DeploymentStage().StageArn(), WebAclArn: list.AttrArn(),
	})
}

func managedRule(name string, counts []string, priority int) *awswafv2.CfnWebACL_RuleProperty {
	group := &awswafv2.CfnWebACL_ManagedRuleGroupStatementProperty{VendorName: jsii.String("AWS"), Name: jsii.String(name)}
	var overrides []any
	for _, rule := range counts {
		overrides = append(overrides, &awswafv2.CfnWebACL_RuleActionOverrideProperty{
			Name: jsii.String(rule), ActionToUse: &awswafv2.CfnWebACL_RuleActionProperty{Count: map[string]any{}},
		})
	}
	if overrides != nil {
		group.RuleActionOverrides = &overrides
	}
	return &awswafv2.CfnWebACL_RuleProperty{
		Name: jsii.String(name), Priority: jsii.Number(priority), VisibilityConfig: seen(name),
		OverrideAction: &awswafv2.CfnWebACL_OverrideActionProperty{None: map[string]any{}},
		Statement:      &awswafv2.CfnWebACL_StatementProperty{ManagedRuleGroupStatement: group},
	}
}

// seen has a rule counted, and samples of what it met kept for three hours.
func seen(name string) *awswafv2.CfnWebACL_VisibilityConfigProperty {
	return &awswafv2.CfnWebACL_VisibilityConfigProperty{
		MetricName: jsii.String(name), CloudWatchMetricsEnabled: jsii.Bool(true), SampledRequestsEnabled: jsii.Bool(true),
	}
}
