// Package conform holds the HTTP behaviour of a running service against docs/semantics.md: it sends requests with
// idempotency keys, as clients do that retry, race and make mistakes, and says of each clause whether the answers kept it.
//
// It knows nothing of the service but its address, one valid body and the [idem.Policy] that the service declares, so it
// serves for a deployment of this library, for a service that another library protects, and for one that was written by
// hand ([Target.Foreign]). Some of its requests execute: each makes what the endpoint makes, as [Report.Executed] counts.
// Use it on a test tenant, as `idemctl conform` does.
//
// It is black-box: it shows faults that a client can see. What holds after a crash or between two regions is shown by the
// tests of a store (package storetest) and of the protocol.
package conform
