package stack

import (
	"strings"
	"testing"
)

// Alarms that nobody hears of are not deployed by accident.
func TestDeployNeedsAProviderAndAnAlarmTopic(t *testing.T) {
	for want, context := range map[string]map[string]string{
		"PROVIDER_URL": {"alarmTopic": "none"},
		"ALARM_TOPIC":  {"providerUrl": "https://provider.example"},
	} {
		err := Deploy(t.Context(), nil, Target{Root: t.TempDir(), Name: "idem-payments", Context: context})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s named", context, err, want)
		}
	}
}
