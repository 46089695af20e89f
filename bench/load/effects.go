package main

import (
	"fmt"

	"github.com/idem-go/idem-aws/localstack/provider"
)

// wrongMax is how many lines tell of the same mistake.
const wrongMax = 10

// since are the charges that were not there before.
func since(before, after []provider.Object) (made []provider.Object) {
	there := map[string]bool{}
	for _, charge := range before {
		there[charge.ID] = true
	}
	for _, charge := range after {
		if !there[charge.ID] {
			made = append(made, charge)
		}
	}
	return made
}

// effects counts the charges that the provider made during the run, and says what is wrong: each payment that was accepted has exactly
// one, each other key at most one, and there is none with another reference.
func effects(charges []provider.Object, sent []string, accepted []payment) (made int, wrong []string) {
	times := map[string]int{}
	for _, key := range sent {
		times[key] = 0
	}
	for _, charge := range charges {
		made++
		if _, ours := times[charge.Reference]; !ours {
			wrong = append(wrong, fmt.Sprintf("charge %s has the reference %q, under which nothing was sent: an effect too many, or somebody else uses the stack", charge.ID, charge.Reference))
			continue
		}
		times[charge.Reference]++
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
		wrong = append(wrong[:wrongMax:wrongMax], fmt.Sprintf("and %d more keys or charges", more))
	}
	return made, wrong
}
