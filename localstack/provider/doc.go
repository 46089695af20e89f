// Package provider simulates a payment provider: charges, refunds, screenings, their releases, and payouts over HTTP, with
// idempotency keys, signed webhooks, and every way in which a call to the outside can go wrong, on request. The package
// belongs to this repository's tools and has no compatibility promise.
//
// It is an http.Handler, so a test starts it in its own process:
//
//	simulator := provider.New(provider.Config{WebhookSecret: "secret"})
//	server := httptest.NewServer(simulator)
//	defer server.Close() // waits for requests, so the simulator has to let go of them first
//	defer simulator.Close()
//	control := provider.Control{URL: server.URL}
//	err := control.Faults(ctx, provider.Rule{On: provider.Charge, Source: "card_x", Fault: provider.DropAfter, Times: 1})
//
// and localstack/cmd/provider runs it as a process of its own. The README beside this file shows it with curl.
//
// There are no magic sources: nothing fails unless a rule says so. What a rule did is visible afterwards, because the
// control listing shows every object ever made with the number of requests that carried its key.
//
// State is in memory and per Provider; all of it is safe for concurrent use. Time stamps, key expiry and listing delay
// follow Config.Now; the waits of faults and webhooks pass in real time.
package provider
