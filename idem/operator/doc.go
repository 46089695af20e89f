// Package operator is what a person does about operations that the system can't end by itself: it tells an operation's
// whole story, lists what is stuck, unknown or dead, and changes it, each change with a reason, fenced by what the person
// saw, and written to an audit log before it is tried.
//
// Nothing here writes a record or a message by itself: changes are events of idem.Engine and outbox.Operator, which refuse
// what the contract does not admit. Package idemctl is the command over it.
package operator
