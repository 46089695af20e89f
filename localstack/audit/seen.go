package audit

import "fmt"

// Seen is how much of a run the audits had before them. An audit that is shown nothing finds nothing wrong.
type Seen struct {
	Answers AnswerCounts
	Tenants TenantCounts
	Writes  WriteCounts
	// Messages is how many messages there are when all is over.
	Messages int
	// Whole says that all tests ran: some of them leave messages unknown, which then end.
	Whole bool
}

// few is how many executed keys, or final answers, a run of some tests may have without anything in the tables that belongs to them.
const few = 20

// Nothing says which audit had nothing before it although clients were answered: tables are named otherwise in the requests than in the
// audit, attributes have other names, records lie under other keys, or the proxy keeps no journal.
func (s Seen) Nothing() (broken []string) {
	blame := func(invariants, of string, clients int) {
		broken = append(broken, fmt.Sprintf("%s: of what %d answers say, the audit saw no %s: it proves nothing", invariants, clients, of))
	}
	if s.Answers.Final >= few && s.Answers.Stored == 0 {
		blame("I4", "answer in a record", s.Answers.Final)
	}
	if s.Answers.Executed >= few && s.Messages > 0 && s.Tenants.Rows == 0 {
		blame("I5", "message beside its record", s.Answers.Executed)
	}
	if s.Answers.Executed >= few && s.Tenants.IDs == 0 {
		blame("I5", "id that belongs to a tenant", s.Answers.Executed)
	}
	if s.Answers.Executed >= few && s.Whole && s.Tenants.Foreign == 0 {
		blame("I5", "request by another tenant's id", s.Answers.Executed)
	}
	if s.Answers.Executed >= few && s.Writes.Steps == 0 {
		blame("I7, I8", "write after another one", s.Answers.Executed)
	}
	if s.Answers.Executed >= few && s.Whole && s.Writes.FromUnknown == 0 {
		blame("I7", "step out of unknown", s.Answers.Executed)
	}
	return broken
}
