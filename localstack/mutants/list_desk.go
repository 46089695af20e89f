package mutants

// Mutants of the operator's desk and of its command line: what they say that they did, or would do.

const (
	deskSweepFile     = "idem/operator/sweep.go"
	deskReconcileFile = "idem/operator/reconcile.go"
)

// desks: what an operator's desk says of a change.
var desks = []Mutant{
	{Name: "a sweep that failed is done", File: deskSweepFile, Old: "did.Messages.Errors > 0 || did.Records.Errors > 0:", New: "false:"},
	{Name: "a sweep that goes on is told as JSON", File: deskSweepFile, Old: "			case bool: // of unfinished\n", New: "			case []any:\n"},
	{Name: "a question that decided nothing is done", File: deskReconcileFile, Old: "	if decision == outbox.DecisionUndecided ||", New: "	if false && decision == outbox.DecisionUndecided ||"},
	{Name: "a question that left its message dead is done", File: deskReconcileFile, Old: "		return d.whyDead(ctx, id)\n", New: "		return nil\n"},
	{Name: "a message that died of silence keeps evidence", File: deskReconcileFile, Old: "	case len(keptBy(m)) > 0:\n", New: "	case len(keptBy(m)) >= 0:\n"},
	{Name: "nobody is asked about a message", File: deskReconcileFile, Old: " && known && !rules.Probed &&", New: " && known && !rules.Probed && false &&"},
	{Name: "nobody is asked about an operation", File: "idem/operator/record.go", Old: "r.State == storage.StateUnknown && d.cfg.Probes[r.Operation] == nil", New: "false"},
}
