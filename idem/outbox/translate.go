package outbox

import "github.com/idem-go/idem-aws/idem/protocol"

// outcomeOf is what an outcome means to a machine.
func outcomeOf(o Outcome) protocol.Outcome {
	switch o := o.(type) {
	case Delivered:
		return protocol.OutDelivered
	case Declined:
		return protocol.OutDeclined
	case NotExecuted:
		if o.Unsent || o.Unauthorized {
			return protocol.OutUncalled
		}
		return protocol.OutNotExecuted
	case Refused:
		if o.Unproven {
			return protocol.OutRefusedOpen
		}
		return protocol.OutRefused
	}
	return protocol.OutAmbiguous
}

// findingOf is what a finding means to a machine.
func findingOf(f Finding) protocol.Outcome {
	switch f := f.(type) {
	case Found:
		return outcomeOf(f.Outcome)
	case Absent:
		return protocol.OutAbsent
	}
	return protocol.OutUnclear
}
