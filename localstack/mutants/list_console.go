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
	{Name: "a sweep that goes on is told as JSON", File: deskSweepFile, Old: "			case bool: // of unfinished\n", New: "			case []any:\n"},
	{Name: "a question that decided nothing is done", File: deskReconcileFile, Old: "	if decision == outbox.DecisionUndecided ||", New: "	if false && decision == outbox.DecisionUndecided ||"},
	{Name: "a question that left its message dead is done", File: deskReconcileFile, Old: "		return d.whyDead(ctx, id)\n", New: "		return nil\n"},
	{Name: "a message that died of silence keeps evidence", File: deskReconcileFile, Old: "	case len(keptBy(m)) > 0:\n", New: "	case len(keptBy(m)) >= 0:\n"},
	{Name: "nobody is asked about a message", File: deskReconcileFile, Old: " && known && !rules.Probed &&", New: " && known && !rules.Probed && false &&"},
	{Name: "a dry run of a message promises what is refused", File: "idem/operator/message.go", Old: "	case err != nil:\n		return \"\", err\n	}\n	return of.would(ctx, m, becomes)", New: "	}\n	return of.would(ctx, m, becomes)"},
	{Name: "a dry run promises a settlement that can't be made", File: "idem/operator/message.go", Old: "	case errors.Is(err, ErrUnsettled):\n", New: "	case false && errors.Is(err, ErrUnsettled):\n"},
	{Name: "a dry run of a redrive always starts it anew", File: "idem/operator/message.go", Old: "	case storage.MessageUnknown:\n		return \"make", New: "	case storage.MessageCancelled:\n		return \"make"},
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
	{Name: "a list is wider than a terminal beside a long token", File: "idem/operator/idemctl/table.go", Old: "[]int{cutMin, least}", New: "[]int{cutMin, max(least, cutMin)}"},
	{Name: "letters are deleted without an entry", File: "idem/operator/letters.go", Old: "	return d.carry(ctx, ch, action{name: \"redrive letters\",", New: "	if !ch.DryRun {\n		_, err := through(ctx)\n		return Result{}, err\n	}\n	return d.carry(ctx, ch, action{name: \"redrive letters\","},
}

// rehearsals: an operator's change that is tried, and not made.
var rehearsals = []Mutant{
	{Name: "a rehearsal forgets its record", File: rehearseFile, Old: "	if w.RecAs != protocol.Leave {\n", New: "	if w.RecAs != protocol.Leave && false {\n"},
	{Name: "a rehearsal forgets the message behind", File: rehearseFile, Old: "		if next != nil {\n", New: "		if false && next != nil {\n"},
	{Name: "a rehearsal is written", File: "idem/outbox/delivery.go", Old: "x.rehearsing != nil && action.Do == protocol.Send {", New: "x.rehearsing != nil && false {"},
	{Name: "a rehearsal is told of", File: "idem/outbox/decision.go", Old: "	if x.rehearsing != nil {\n", New: "	if false && x.rehearsing != nil {\n"},
const consoleEvidence = "idem/operator/console/evidence.go"

// consoles: what a person settles from a page.
var consoles = []Mutant{
	{Name: "a card settles by its reference alone", File: consoleEvidence, Old: "a.Outcome, a.Reference, a.Evidence = one.Outcome, one.Reference, one.Evidence", New: "a.Outcome, a.Reference = one.Outcome, one.Reference"},
	{Name: "a card settles what it proves nothing of", File: consoleEvidence, Old: " && o.Doubt == \"\"", New: ""},
	{Name: "a card settles without its bytes", File: consoleEvidence, Old: " && len(o.Evidence) > 0", New: ""},
	{Name: "what can't be settled is promised to be", File: "idem/operator/console/change.go", Old: "	if would == operator.WouldKeep {", New: "	if false {"},
	{Name: "a card settles another message", File: consoleEvidence, Old: " || a.message() != one.Message:", New: ":"},
}

// judgements: what the provider's list proves.
var judgements = []Mutant{
	{Name: "an object is offered as evidence whatever a probe takes it for", File: "functions/cmd/idemctl/console.go", Old: "		shown.Doubt = strings.TrimPrefix(judged.Doubt.Error(), \"payments: \")\n", New: "		shown.Outcome = \"delivered\"\n"},
	{Name: "an object is offered without its bytes", File: "functions/cmd/idemctl/console.go", Old: ", Evidence: judged.Bytes,", New: ","},
}

// gaps: what is shown of a chain that a loss of data has torn.
var gaps = []Mutant{
	{Name: "a story ends at the gap that a loss made", File: "idem/operator/inspect.go", Old: "	if r != nil && torn(*r, before) {", New: "	if false {"},
	{Name: "whose tenant is known is inspected without its number", File: "idem/operator/inspect.go", Old: "		operation, asked = of, n\n", New: "		operation, asked = of, n*0\n"},
}

// configured: what only the instances' configuration says of a loss.
var configured = []Mutant{
	{Name: "a configured loss is never shown", File: "idem/operator/loss.go", Old: "	return Loss{RefuseBefore: at, Configured: d.configured()}, nil\n", New: "	return Loss{RefuseBefore: at}, nil\n"},
	{Name: "a row can't be set before what is configured", File: "idem/operator/loss.go", Old: "at.Before(loss.RefuseBefore)", New: "at.Before(loss.Instant())"},
}

// answers: what a person is told although something could not be read.
var answers = []Mutant{
	{Name: "a row that can't be read hides its operation", File: "idem/operator/inspect.go", Old: "		case err != nil && r == nil && len(messages) == 0:", New: "		case err != nil:"},
	{Name: "what the application can't read is not there", File: "idem/operator/inspect.go", Old: "			s.ApplicationError = err.Error()\n", New: "			s.ApplicationError = \"\"\n"},
}

// directions: what a terminal would act on.
var directions = []Mutant{
	{Name: "a terminal turns the direction of a text", File: "internal/plaintext/plaintext.go", Old: " || unicode.Is(unicode.Bidi_Control, r)", New: ""},
	{Name: "what an application's drift job writes is printed as it is", File: "idem/operator/idemctl/commands.go", Old: "	shown := visibleTable\n", New: "	shown := func(text string) string { return text }\n"},
}
