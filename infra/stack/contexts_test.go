package stack_test

import (
	"fmt"
	"strings"
)

// contexts are those that a stack is synthesized with, and what they make of it.
type contexts map[string]any

// has says that a stack has what is off by default.
func has(key string) func(contexts) bool {
	return func(c contexts) bool { return c[key] != nil }
}

func always(contexts) bool { return true }

// webhooks tells whether it takes the provider's webhooks.
func (c contexts) webhooks() bool { return c["webhookSecret"] != nil || c["localWebhookSecret"] != nil }

// relayed tells whether a function puts the wake-ups of new messages into the queue.
func (c contexts) relayed() bool { return c["outbox"] == "sqs" }

// limited tells whether tenants have limits: on AWS they do, unless each of them is 0.
func (c contexts) limited() bool {
	for _, name := range []string{"quotaNewKeys", "quotaActiveKeys", "quotaLookUps", "quotaWaits"} {
		if value, said := c[name]; c["local"] == nil && (!said || fmt.Sprint(value) != "0") {
			return true
		}
	}
	return false
}

// shifts tells whether calls move to a new version little by little.
func (c contexts) shifts() bool {
	return c["local"] == nil && c["deployment"] != "now" && c["rollback"] == nil && c["stopped"] == nil
}

// ownNetwork tells whether the stack makes the network that calls to the provider leave from.
func (c contexts) ownNetwork() bool {
	return c["privateNetwork"] != nil && !strings.Contains(fmt.Sprint(c["privateNetwork"]), "subnets")
}

// onImported writes ARNs in the place of the names of resources that the stack imports.
func (c contexts) onImported(all map[string][]string) map[string][]string {
	names, ok := c["import"].(map[string]any)
	if !ok {
		return all
	}
	var pairs []string
	for member, name := range map[string]string{
		"idempotency": "TablesIdempotency", "outbox": "TablesOutbox", "payments": "Payments", "apiKeys": "ApiKeys", "audit": "AuditTable", "keys": "KeysTable",
	} {
		if table, imported := names[member]; imported {
			pairs = append(pairs, " "+name+".Arn", fmt.Sprintf(" arn:aws:dynamodb:eu-central-1:111122223333:table/%s", table))
		}
	}
	pairs = append(pairs, "TablesOutbox.StreamArn", fmt.Sprint(names["outboxStream"]))
	if key, imported := names["kmsKey"]; imported {
		pairs = append(pairs, "KeysKey.Arn", fmt.Sprintf("arn:aws:kms:eu-central-1:111122223333:key/%s", key))
	}
	named := strings.NewReplacer(pairs...)
	for _, may := range all {
		for n := range may {
			may[n] = named.Replace(may[n])
		}
	}
	return all
}
