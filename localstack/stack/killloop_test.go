package stack

import (
	"slices"
	"testing"
)

func TestKillLoopIsRepeatedByItsCommand(t *testing.T) {
	k := KillLoop{Seed: 17, Requests: 1000, Options: Options{Emulator: Ministack}}
	if got, want := k.again(), "make chaos SEED=17 N=1000 EMULATOR=ministack"; got != want {
		t.Errorf("again: %q, want %q", got, want)
	}
	k.Hasten, k.Options = true, Options{Emulator: LocalStack, Encryption: true, Outbox: "sqs"}
	if got, want := k.again(), "make chaos SEED=17 N=1000 EMULATOR=localstack ENCRYPTION=on OUTBOX=sqs HASTEN=1"; got != want {
		t.Errorf("again: %q, want %q", got, want)
	}
	if got, want := k.arguments()[9:], []string{"-chaos.seed", "17", "-chaos.requests", "1000", "-chaos.schedule=false"}; !slices.Equal(got, want) {
		t.Errorf("arguments: %q, want %q", got, want)
	}
}
