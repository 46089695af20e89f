// Package protocol decides everything that happens to a record and to a message. It consists of pure state machines:
// values in, values out. It has no context, clock, randomness, goroutine or I/O.
//
// Applications do not need this package. Package idem drives [Execution] and [Change] against a store, and package
// outbox drives [Delivery]. Use it to study the protocol, to check it, or to write a driver of another kind.
//
// A machine is driven by its owner: give it an [Input], perform the [Action] that it returns, and give it the result,
// until the action is [Tell].
//
//	x := protocol.NewExecution(...)
//	in := protocol.Input{What: protocol.Begin, Now: now}
//	for {
//		var action protocol.Action
//		if x, action = x.Next(in, &config); action.Do == protocol.Tell {
//			return action.Say
//		}
//		in = perform(action) // one action, one call
//	}
//
// Package check explores the same functions exhaustively, with every fault that its budgets allow. No transition is
// written twice.
//
// The values are small and comparable, so that a checker can hold millions of them. A machine needs no bodies, keys or
// writes of an application: it judges headers ([Record], [Message]) and passes handles on ([Answer], [Write.Slot]), whose
// contents the driver holds. Times are values of type [Instant], by the clock of the process that read them.
package protocol
