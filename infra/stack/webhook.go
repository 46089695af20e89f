package stack

import (
	"regexp"
	"slices"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/idemconstruct"
)

// webhookTimeout is longer than providers wait for an answer: what is settled by then is remembered for the next delivery.
const webhookTimeout = 15 * time.Second

// webhookPath is where the provider posts its webhooks.
const webhookPath = "/v1/webhooks/provider"

var localSecretForm = form{regexp.MustCompile(`^([A-Za-z0-9_-]{16,128})?$`), "16 to 128 letters, digits, _ and -"}

// webhookSecrets reads where the secret is, or, of a local stack, the secret itself.
func (r *reader) webhookSecrets(local bool) (id, value string) {
	id, value = r.matching("webhookSecret", "", secretForm), r.text("localWebhookSecret", "")
	switch { // and none of them shows it
	case !localSecretForm.pattern.MatchString(value):
		r.refuse("localWebhookSecret", "…", localSecretForm.allowed)
	case value != "" && !local:
		r.refuse("localWebhookSecret", "…", "nothing, unless local=true: it would stand in the template; webhookSecret names a secret")
	case value != "" && id != "":
		r.refuse("localWebhookSecret", "…", "nothing beside webhookSecret, or the other way round")
	}
	return id, value
}

// takesWebhooks says whether there is a secret, without which nobody could tell a webhook from a forged one.
func (c Config) takesWebhooks() bool { return c.WebhookSecret != "" || c.LocalWebhookSecret != "" }

// webhook ends messages as a worker does, and claims none. Evidence that can't be settled at once is kept, and a wake-up has the worker
// settle it.
func (p parts) webhook() function {
	environment := p.deliverEnvironment()
	own := append([]awsiam.PolicyStatement{idemconstruct.Allow([]string{"dynamodb:UpdateItem"}, p.payments.TableArn())}, p.queues.SendStatements()...)
	if p.config.WebhookSecret != "" {
		environment["WEBHOOK_SECRET_ID"] = jsii.String(p.config.WebhookSecret)
		own = append(own, p.config.readSecret(p.config.WebhookSecret))
	} else {
		environment["WEBHOOK_SECRET"] = jsii.String(p.config.LocalWebhookSecret)
	}
	own = append(own, p.scopeSecret(environment)...)
	return function{
		name: "webhook", id: "Webhook", description: "Settles what the provider tells by itself", memoryMiB: 256,
		timeout: webhookTimeout, environment: environment,
		statements: slices.Concat(p.tables.DeliverStatements(), p.seal(), own),
	}
}
