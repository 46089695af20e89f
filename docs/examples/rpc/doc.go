// Package rpc is what the examples of gRPC and Connect share: it runs the engine around one unary call. Copy it together with
// one of the two interceptors.
//
// A call carries its key in the metadata "idempotency-key". The request message, in its deterministic encoding, is what is
// fingerprinted: JSON and binary calls of Connect share a key. What is stored is the reply message, or the status with its
// details.
//
// These are not covered: deferred operations, whose 202 has no counterpart in an RPC, and policies that read a time
// from the key. Both are refused at start.
package rpc
