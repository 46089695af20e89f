package config

import (
	"errors"
	"fmt"
)

// Webhook is the configuration of the webhook function, which ends messages as a worker does.
type Webhook struct {
	Worker
	Scopes
	// WebhookSecrets are those that the provider signs with, separated by commas: the newest first, and an older one until
	// it is not used any more. Anybody who may read a function's configuration reads its environment: it is for local stacks.
	WebhookSecrets []string `env:"WEBHOOK_SECRET"`
	// WebhookSecretID is the name or ARN of a secret of AWS Secrets Manager that holds them, read when the function starts, and
	// when none that is known has signed, and when they are five minutes old: at most once a minute.
	WebhookSecretID string `env:"WEBHOOK_SECRET_ID"`
}

func (w Webhook) check() error {
	var err error
	if (len(w.WebhookSecrets) == 0) == (w.WebhookSecretID == "") {
		err = fmt.Errorf("configuration: WEBHOOK_SECRET (%d secrets), WEBHOOK_SECRET_ID = %q: exactly one of them must be set", len(w.WebhookSecrets), w.WebhookSecretID)
	}
	return errors.Join(w.Worker.check(), w.Scopes.check(), err)
}
