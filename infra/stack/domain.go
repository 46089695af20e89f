package stack

import (
	"regexp"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/jsii-runtime-go"
)

var (
	domainForm      = form{regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+)?$`), "a domain name in lower case, as api.shop.example"}
	certificateForm = form{regexp.MustCompile(`^(arn:aws[a-z-]*:acm:[a-z0-9-]+:[0-9]{12}:certificate/[a-z0-9-]{1,64})?$`), "the ARN of a certificate in AWS Certificate Manager"}
)

// readDomain reads the API's own name and its certificate: both, or none.
func (r *reader) readDomain(config *Config) {
	config.DomainName, config.Certificate = r.matching("domainName", "", domainForm), r.matching("certificate", "", certificateForm)
	parts := strings.Split(config.Certificate, ":")
	switch {
	case (config.DomainName == "") != (config.Certificate == ""):
		r.refuse("certificate", config.Certificate, "a certificate's ARN with domainName, and nothing without")
	case config.DomainName != "" && config.Local:
		r.refuse("domainName", config.DomainName, "nothing, with local=true")
	case len(parts) > 3 && parts[3] != config.Region:
		r.refuse("certificate", config.Certificate, "a certificate in "+config.Region+", where the API is")
	}
}

// named gives an API its own name, at which it takes TLS 1.2 and newer, and returns its URL. The name that AWS gave it is switched
// off, so that nobody calls it past what stands before the other.
func named(stack awscdk.Stack, config Config, api, stage *string) *string {
	domain := awsapigatewayv2.NewCfnDomainName(stack, jsii.String("Domain"), &awsapigatewayv2.CfnDomainNameProps{
		DomainName: jsii.String(config.DomainName),
		DomainNameConfigurations: &[]any{&awsapigatewayv2.CfnDomainName_DomainNameConfigurationProperty{
			CertificateArn: jsii.String(config.Certificate), EndpointType: jsii.String("REGIONAL"), SecurityPolicy: jsii.String("TLS_1_2"),
		}},
	})
	awsapigatewayv2.NewCfnApiMapping(stack, jsii.String("DomainMapping"), &awsapigatewayv2.CfnApiMappingProps{
		ApiId: api, Stage: stage, DomainName: domain.Ref(),
	})
	output(stack, "DomainTarget", domain.AttrRegionalDomainName())
	output(stack, "DomainHostedZoneId", domain.AttrRegionalHostedZoneId())
	return jsii.String("https://" + config.DomainName)
}

// ownName says whether the name that AWS gives an API is switched off; nil where it is all there is.
func (c Config) ownName() *bool {
	if c.DomainName == "" {
		return nil
	}
	return jsii.Bool(true)
}
