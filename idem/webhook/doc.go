// Package webhook verifies the signature of a provider's webhooks. A provider signs the body that it posts, and the
// time, with a secret that both sides know, in a header such as
//
//	Provider-Signature: t=1795228800,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd
//
// where v1 is the HMAC-SHA256 of t, a dot and the body's exact bytes. Stripe's signatures have this form. The time t
// keeps a recorded webhook from being sent again later. A header may have several v1, and other schemes beside them,
// which are ignored. Use the package for providers that sign in this form; others need code of their own.
//
//	verifier, err := webhook.New(webhook.Config{Secrets: []string{secret}, Header: "Provider-Signature"})
//	…
//	body, err := verifier.Read(r)
//	if errors.Is(err, webhook.ErrSignature) {
//		// 401, and nothing else happens
//	}
//
// A process that outlives a secret gives Config.Source, which is asked when no known secret has made a signature, and again every few
// minutes, so that a secret that has leaked is over once it was replaced.
//
// A signature says who sent a webhook, not that it is new: a provider sends each one again until it is answered with a
// success. Take an event's id as an idempotency key, for which package function is there.
package webhook
