package stage

import (
	"fmt"
	"strings"

	"github.com/idem-go/idem-aws/infra/stack"
)

// fillProduction writes the settings into context that production has by default and other stages don't. A production stage whose
// worker reads the stream says so itself, with outbox=streams: there a slow batch of one tenant holds up those behind it. Keys that
// people take for harmless are refused where money moves, unless testKeys=accept.
func fillProduction(context map[string]string) {
	if _, said := context["outbox"]; !said {
		context["outbox"] = string(stack.SQS)
	}
	if _, said := context["testKeys"]; !said {
		context["testKeys"] = string(stack.TestKeysRefuse)
	}
}

// checkProduction returns an error that lists the settings that production demands and config does not have.
func checkProduction(config stack.Config) error {
	var missing []string
	demand := func(met bool, setting, reason string) {
		if !met {
			missing = append(missing, fmt.Sprintf("  context.%s: %s", setting, reason))
		}
	}
	demand(config.ProviderSecret != "", "providerSecret must be set", "the provider can't tell our calls from anybody's otherwise")
	demand(config.AlarmTopic != stack.NoAlarmTopic, "alarmTopic must be a topic's ARN", "with none, alarms tell nobody")
	demand(config.Encryption == stack.On, "encryption must be on", "stored responses and payloads are plain text otherwise")
	demand(config.ScopeSecret != "", "scopeSecret must be set", "operation ids confirm guesses of keys otherwise")
	demand(config.FingerprintSecret != "", "fingerprintSecret must be set", "fingerprints are plain hashes of requests otherwise")
	demand(config.WebhookSecret != "", "webhookSecret must be set", "the provider's webhooks are not taken otherwise")
	demand(config.Quota.NewKeys > 0, "quotaNewKeys must be above 0", "one tenant can use the capacity of all otherwise")
	demand(config.Quota.ActiveKeys > 0, "quotaActiveKeys must be above 0", "one tenant can fill the table otherwise")
	demand(config.Quota.Waits > 0, "quotaWaits must be above 0", "repetitions of one tenant can hold every execution of the api otherwise")
	demand(config.Quota.LookUps > 0, "quotaLookUps must be above 0", "one tenant can use the capacity of all otherwise")
	demand(config.WorkerConcurrency > 0, "workerConcurrency must be 2 or more, or concurrency must reserve executions for worker", "a provider that hangs can have all executions of the account otherwise")
	demand(config.Outbox == stack.SQS || config.Concurrency.Worker > 0, "concurrency must reserve executions for worker with outbox=streams", "Lambda bounds the batches of a stream by nothing else")
	demand(config.Backup, "backup must be on", "a deleted table can't be restored otherwise")
	demand(config.Trail != stack.TrailOff, "trail must be people or all", "nobody can tell who changed the audit log otherwise")
	demand(config.Deployment != stack.Now || config.Stopped || config.Rollback, "deployment must be canary or linear", "a bad release has all calls at once otherwise")
	demand(config.TerminationProtection, "terminationProtection must not be false", "the stack can be deleted otherwise")
	if missing == nil {
		return nil
	}
	return fmt.Errorf("\"production\": true demands settings that are missing:\n%s", strings.Join(missing, "\n"))
}
