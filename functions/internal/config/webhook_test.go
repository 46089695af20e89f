package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/functions/internal/config"
)

func TestReadWebhookSecrets(t *testing.T) {
	environment(t, "WEBHOOK_SECRET=whsec_new,whsec_old")
	if w, err := config.Read[config.Webhook](); err != nil || !slices.Equal(w.WebhookSecrets, []string{"whsec_new", "whsec_old"}) || w.WebhookSecretID != "" {
		t.Errorf("%q, %q, %v", w.WebhookSecrets, w.WebhookSecretID, err)
	}
	environment(t, "WEBHOOK_SECRET_ID=payments/webhook")
	if w, err := config.Read[config.Webhook](); err != nil || w.WebhookSecretID != "payments/webhook" || len(w.WebhookSecrets) > 0 {
		t.Errorf("%q, %q, %v", w.WebhookSecrets, w.WebhookSecretID, err)
	}
	// Without a secret nothing can be verified, and with two places for it nobody knows which one counts.
	for _, changes := range [][]string{{"WEBHOOK_SECRET"}, {"WEBHOOK_SECRET="}, {"WEBHOOK_SECRET=whsec_known", "WEBHOOK_SECRET_ID=payments/webhook"}} {
		environment(t, changes...)
		err := check[config.Webhook]()
		if err == nil || !strings.Contains(err.Error(), "WEBHOOK_SECRET ") || !strings.Contains(err.Error(), "WEBHOOK_SECRET_ID") || strings.Contains(err.Error(), "whsec_known") {
			t.Errorf("%q: %v, want both named and no secret shown", changes, err)
		}
	}
	environment(t, "WEBHOOK_SECRET=whsec_new", "KEYS_TABLE=keys")
	if err := check[config.Webhook](); err == nil || !strings.Contains(err.Error(), "KMS_KEY_ID") {
		t.Errorf("%v, want what a worker checks too", err)
	}
}
