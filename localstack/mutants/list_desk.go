package mutants

// Mutants of the operator's desk and of its command line: what they say that they did, or would do.

const (
	deskSweepFile     = "idem/operator/sweep.go"
	deskReconcileFile = "idem/operator/reconcile.go"
	deskRecordFile    = "idem/operator/record.go"
	rehearseFile      = "idem/outbox/rehearse.go"
)

// desks: what an operator's desk says of a change.
var desks = []Mutant{
	{Name: "a sweep that failed is done", File: deskSweepFile, Old: "did.Messages.Errors > 0 || did.Records.Errors > 0:", New: "false:"},
	{Name: "a sweep takes trouble for another release's row", File: deskSweepFile, Old: "failed > 0 && e.Report.Messages.OtherRelease+e.Report.Records.OtherRelease == failed", New: "failed > 0"},
	{Name: "a sweep does not say that another release's row failed", File: deskSweepFile, Old: "failed > 0 && e.Report.Messages.OtherRelease+e.Report.Records.OtherRelease == failed", New: "failed < 0"},
	{Name: "a sweep that goes on is told as JSON", File: deskSweepFile, Old: "			case bool: // of unfinished\n", New: "			case []any:\n"},
	{Name: "a question that decided nothing is done", File: deskReconcileFile, Old: "	if decision == outbox.DecisionUndecided ||", New: "	if false && decision == outbox.DecisionUndecided ||"},
	{Name: "a question that left its message dead is done", File: deskReconcileFile, Old: "		return d.whyDead(ctx, id)\n", New: "		return nil\n"},
	{Name: "a message that died of silence keeps evidence", File: deskReconcileFile, Old: "	case len(keptBy(m)) > 0:\n", New: "	case len(keptBy(m)) >= 0:\n"},
	{Name: "nobody is asked about a message", File: deskReconcileFile, Old: " && known && !rules.Probed &&", New: " && known && !rules.Probed && false &&"},
	{Name: "a dry run of a message promises what is refused", File: "idem/operator/message.go", Old: "	case err != nil:\n		return \"\", false, err\n	}\n	return of.would(m, does), false, nil", New: "	}\n	return of.would(m, does), false, nil"},
	{Name: "a dry run promises a settlement that can't be made", File: "idem/operator/message.go", Old: "	case errors.Is(err, ErrUnsettled) && does.Unsettled != nil:\n		return unsettledWould(m, does), true, nil\n", New: "	case errors.Is(err, ErrUnsettled) && does.Unsettled != nil:\n"},
	{Name: "a dry run does not say that a message dies", File: "idem/operator/message.go", Old: "	if does.State == m.State {\n", New: "	if does.State != \"\" || m.State != \"\" {\n"},
	{Name: "a dry run promises that nobody is called where the chain goes on", File: "idem/operator/message.go", Old: "	case does.Next != \"\":\n		return \"settle what", New: "	case false && does.Next != \"\":\n		return \"settle what"},
	{Name: "a dry run is silent about what a change sends", File: "idem/operator/message.go", Old: "	case does.Next == \"\":\n		return \"\"\n	case does.Undoes:", New: "	case does.Next != \"never\":\n		return \"\"\n	case does.Undoes:"},
	{Name: "a dry run of a close is silent about what undoes", File: "idem/operator/message.go", Old: "	case does.Next != \"\":\n		return \"cancel", New: "	case false && does.Next != \"\":\n		return \"cancel"},
	{Name: "a dry run promises that a provider without a look-up is asked", File: "idem/operator/message.go", Old: "storage.MessageUnknown && rules.Probed:", New: "storage.MessageUnknown && (rules.Probed || true):"},
	{Name: "a dry run of a redrive always starts it anew", File: "idem/operator/message.go", Old: "	case does.State == storage.MessagePending:\n", New: "	case does.State == storage.MessagePending || does.State == storage.MessageUnknown:\n"},
	{Name: "a dry run promises a release that is refused", File: deskRecordFile, Old: "			return executes + releasedTwice(r), admitted(\"released\", r, err)", New: "			_ = err\n			return executes + releasedTwice(r), nil"},
	{Name: "a dry run promises a resolution that is refused", File: deskRecordFile, Old: "			return fmt.Sprintf(\"complete it with status %d\", response.Status), admitted(\"resolved\", r, err)", New: "			_ = err\n			return fmt.Sprintf(\"complete it with status %d\", response.Status), nil"},
	{Name: "a dry run promises a cache-bust that is refused", File: deskRecordFile, Old: "			return executes, admitted(\"busted\", r, err)", New: "			return executes, nil"},
	{Name: "a dry run tells of a cache-bust that changes nothing", File: "idem/rehearse.go", Old: "	return code == protocol.Changed && err == nil, err", New: "	return err == nil, err"},
	{Name: "a dry run changes a record", File: "idem/change.go", Old: "			if c.rehearsed {\n", New: "			if c.rehearsed && false {\n"},
	{Name: "nobody is asked about an operation", File: deskRecordFile, Old: "r.State == storage.StateUnknown && d.cfg.Probes[r.Operation] == nil", New: "false"},
}

// lines: what an operator's command line does, and says.
var lines = []Mutant{
	{Name: "a change that was refused has an answer", File: "idem/operator/idemctl/commands.go", Old: "	if Unfinished(err) {\n", New: "	if Unfinished(err) && !errors.As(err, new(*operator.UnloggedError)) {\n"},
	{Name: "a full disk is the network's", File: "idem/operator/idemctl/trouble.go", Old: " || errors.As(err, new(*fs.PathError)) {\n		return false", New: " {\n		return false"},
	{Name: "a session that is over is for the environment", File: "idem/operator/idemctl/trouble.go", Old: "		errors.As(err, new(called)) &&", New: "		false && errors.As(err, new(called)) &&"},
	{Name: "a secret that can't be read is for the environment", File: "idem/operator/idemctl/own.go", Old: "	if err == nil || isTrouble(err) {", New: "	if err == nil {"},
	{Name: "a list is wider than a terminal beside a long token", File: "idem/operator/idemctl/table.go", Old: "[]int{cutMin, least}", New: "[]int{cutMin, max(least, cutMin)}"},
	{Name: "letters are deleted without an entry", File: "idem/operator/letters.go", Old: "	return d.carry(ctx, ch, action{name: \"redrive letters\",", New: "	if !ch.DryRun {\n		_, err := through(ctx)\n		return Result{}, err\n	}\n	return d.carry(ctx, ch, action{name: \"redrive letters\","},
}

// rehearsals: an operator's change that is tried, and not made.
var rehearsals = []Mutant{
	{Name: "a rehearsal forgets its record", File: rehearseFile, Old: "	if w.RecAs != protocol.Leave {\n", New: "	if w.RecAs != protocol.Leave && false {\n"},
	{Name: "a rehearsal forgets the message behind", File: rehearseFile, Old: "		if next != nil {\n", New: "		if false && next != nil {\n"},
	{Name: "a rehearsal forgets what it would send", File: rehearseFile, Old: "	if w.Next.State != protocol.NoMessage {\n		did.Next", New: "	if false {\n		did.Next"},
	{Name: "a rehearsal does not say why evidence is kept", File: rehearseFile, Old: "	case x.cause != nil:\n", New: "	case false && x.cause != nil:\n"},
	{Name: "a rehearsal is written", File: "idem/outbox/delivery.go", Old: "x.rehearsing != nil && action.Do == protocol.Send {", New: "x.rehearsing != nil && false {"},
	{Name: "a rehearsal is told of", File: "idem/outbox/decision.go", Old: "	if x.rehearsing != nil {\n", New: "	if false && x.rehearsing != nil {\n"},
}
