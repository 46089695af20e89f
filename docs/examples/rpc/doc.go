// Package rpc is what the examples of gRPC and Connect share: it runs the engine around one unary call. Copy it together with
// the file interceptor.go of one of the two.
//
// A call carries its key in the metadata "idempotency-key". The fields of the request message are what is fingerprinted: JSON
// and binary calls of Connect share a key. The value of a google.protobuf.Any counts as its bytes, so a caller that encodes a
// map in it anew for each try gets a mismatch. What is stored is the reply message, or the status with its details.
//
// These are not covered: deferred operations, whose 202 has no counterpart in an RPC, and policies that read a time
// from the key. Both are refused at start.
package rpc
