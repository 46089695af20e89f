package stack

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/functions/route"
)

// Throttle is what API Gateway lets through, of all callers together: requests a second, and how many at once beyond that. The
// zero value is no throttle but the account's.
type Throttle struct{ Rate, Burst int }

const throttleOff = "off"

var throttleForm = form{regexp.MustCompile(`^(off|[1-9][0-9]{0,6}/[1-9][0-9]{0,6})$`), "requests per second/burst as 1000/1000, 1 to 9999999 each; off"}

// throttle is the value of a key that has one. A local stack has none unless it is asked for: emulators may refuse it.
func (r *reader) throttle(key, otherwise string, local bool) Throttle {
	if local {
		otherwise = throttleOff
	}
	value := r.matching(key, otherwise, throttleForm)
	rate, burst, _ := strings.Cut(value, "/")
	// What is no number was refused, or is off.
	perSecond, _ := strconv.Atoi(rate)
	atOnce, _ := strconv.Atoi(burst)
	return Throttle{perSecond, atOnce}
}

func (t Throttle) off() bool { return t == Throttle{} }

// throttleHTTP bounds the whole default stage, and the routes that make payments for themselves. A stage can only name routes
// that are there, so it comes after them.
func throttleHTTP(api awsapigatewayv2.HttpApi, config Config, paying []awsapigatewayv2.HttpRoute) {
	stage := api.DefaultStage().Node().DefaultChild().(awsapigatewayv2.CfnStage)
	if !config.APIThrottle.off() {
		stage.SetDefaultRouteSettings(&awsapigatewayv2.CfnStage_RouteSettingsProperty{
			ThrottlingRateLimit: jsii.Number(config.APIThrottle.Rate), ThrottlingBurstLimit: jsii.Number(config.APIThrottle.Burst),
		})
	}
	if config.PaymentThrottle.off() {
		return
	}
	routes := map[string]any{}
	for _, path := range route.Paying {
		routes["ANY "+path] = map[string]any{
			"ThrottlingRateLimit": config.PaymentThrottle.Rate, "ThrottlingBurstLimit": config.PaymentThrottle.Burst,
		}
	}
	stage.SetRouteSettings(routes)
	for _, each := range paying {
		stage.Node().AddDependency(each)
	}
}

// throttleREST is throttleHTTP for a REST API. There, what makes payments is one method: POST of the resource at path.
func throttleREST(options *awsapigateway.StageOptions, config Config, path string) {
	if !config.APIThrottle.off() {
		options.ThrottlingRateLimit = jsii.Number(config.APIThrottle.Rate)
		options.ThrottlingBurstLimit = jsii.Number(config.APIThrottle.Burst)
	}
	if !config.PaymentThrottle.off() {
		options.MethodOptions = &map[string]*awsapigateway.MethodDeploymentOptions{path + "/POST": {
			ThrottlingRateLimit: jsii.Number(config.PaymentThrottle.Rate), ThrottlingBurstLimit: jsii.Number(config.PaymentThrottle.Burst),
		}}
	}
}
