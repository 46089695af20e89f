package protocol_test

import (
	"fmt"

	"github.com/idem-go/idem-aws/idem/protocol"
)

// A driver performs one request of an atomic operation against a record in memory: each action with one call.
func Example() {
	config := protocol.Config{Kind: protocol.Atomic, ExecutionMax: 30_000, LeaseMargin: 5_000, Life: protocol.Life{Retention: 3_600_000}}
	var rows protocol.Rows
	now := protocol.Instant(1_795_262_400_000)

	execution := protocol.NewExecution(protocol.Request{Seed: protocol.ID{1, 1}, Incarnation: protocol.ID{2, 2}})
	input := protocol.Input{What: protocol.Begin, Now: now}
	for {
		var action protocol.Action
		execution, action = execution.Next(input, &config)
		input = protocol.Input{Now: now}
		switch action.Do {
		case protocol.Admit:
			fmt.Println("admit the key")
			input.What = protocol.Admitted
		case protocol.Send:
			input.What = protocol.Replied
			rows, input.Reply = protocol.Apply(rows, action.Write, 0)
			fmt.Println("write the record, completed:", rows.Rec.State == protocol.Completed)
		case protocol.Run:
			fmt.Println("run the handler")
			input.What, input.Result = protocol.HandlerEnded, protocol.Result{Code: protocol.Responded, Answer: 1, Alone: true}
		case protocol.Tell:
			fmt.Println("executed:", action.Say.Code == protocol.Executed, "answer:", action.Say.Answer)
			return
		}
	}
	// Output:
	// admit the key
	// write the record, completed: false
	// run the handler
	// write the record, completed: true
	// executed: true answer: 1
}
