// Package operator shows an operator what is stored of an operation, and changes what the system cannot decide by
// itself. A [Desk] inspects an operation, lists what is stuck, unknown or dead, and changes it. Each change has a
// reason, is fenced by what the operator saw, and is written to an audit log before it is tried.
//
// Use it to build tools for operators. Package idemctl is a command over it, and package console a page; an
// application that links one of those only has to make the Desk. Do not call it to serve requests: those go through
// an idem.Engine, and deliveries through package outbox.
//
// An [AuditLog] is in package auditlog on DynamoDB, and in package memlog for tests. A Desk writes no record or
// message by itself: its changes are calls of idem.Engine and outbox.Operator, which refuse what would lose an effect
// or make it happen twice.
package operator
