package main

import (
	"fmt"

	"github.com/idem-go/idem-aws/localstack/provider"
)

// wrongMax is how many lines tell of the same mistake.
const wrongMax = 10

// effects counts the charges that the provider made for the keys that were sent, and says what is wrong: each payment that was
// accepted has exactly one, each other key at most one.
func effects(charges []provider.Object, sent []string, accepted []payment) (made int, wrong []string) {
	times := map[string]int{}
	for _, key := range sent {
		times[key] = 0
	}
	for _, charge := range charges {
		if _, ours := times[charge.Reference]; ours {
			times[charge.Reference]++
			made++
		}
	}
	for _, key := range sent {
		if times[key] > 1 {
			wrong = append(wrong, fmt.Sprintf("%d effects for the key %s, want 1", times[key], key))
		}
	}
	for _, p := range accepted {
		if times[p.key] == 0 {
			wrong = append(wrong, fmt.Sprintf("no effect for the key %s, which was accepted", p.key))
		}
	}
	if more := len(wrong) - wrongMax; more > 0 {
		wrong = append(wrong[:wrongMax:wrongMax], fmt.Sprintf("and %d more keys", more))
	}
	return made, wrong
}
