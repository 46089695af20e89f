package mutants

const (
	heedFile     = "idem/protocol/heed.go"
	evidenceFile = "idem/protocol/settle.go"
)

// lostUnderway: a loss of data while a delivery, or a person, was at work.
var lostUnderway = []Mutant{
	{Name: "a worker that was frozen before it read a message goes by what it knew", File: heedFile, Old: "	return known || absent || found || unsettled\n", New: "	return known || absent || found && false || unsettled\n"},
	{Name: "a wake-up that brings its message goes by what was known", File: heedFile, Old: "	return known || absent || found || unsettled\n", New: "	return known && false || absent || found || unsettled\n"},
	{Name: "a reconciler that was frozen in its probe goes by what it knew", File: heedFile, Old: "	return known || absent || found || unsettled\n", New: "	return known || absent && false || found || unsettled\n"},
	{Name: "a claim that was not heard of asks what was lost before its call", File: heedFile, Old: " && m.Revision != d.At.W.Msg.Revision\n", New: "\n"},
	{Name: "a chain goes on by a call while nobody knows what was lost", File: evidenceFile, Old: "if d.Unread && (w.Next.State != NoMessage || state == Declined) {", New: "if d.Unread && state == Declined {"},
	{Name: "a decline settles while nobody knows what was lost", File: evidenceFile, Old: "if d.Unread && (w.Next.State != NoMessage || state == Declined) {", New: "if d.Unread && w.Next.State != NoMessage {"},
	{Name: "what was not executed is said to be so while nobody knows what was lost", File: "idem/protocol/fail.go", Old: "	if d.Unread {", New: "	if false {"},
	{Name: "what undoes dies while nobody knows what was lost", File: "idem/protocol/delivery.go", Old: "	if d.Unread && next.State == Dead {", New: "	if false {"},
	{Name: "what a call came to is judged by what was known of losses before it", File: heedFile, Old: "in.Meant.Continues || d.Asked == AskNotExecuted ||", New: "in.Meant.Continues ||"},
	{Name: "what follows a call counts as never called, whatever was lost in it", File: heedFile, Old: "in.Meant.Continues || d.Asked == AskNotExecuted ||", New: "in.Meant.Continues && d.Errand != Wake || d.Asked == AskNotExecuted ||"},
	{Name: "what follows evidence counts as never called, whatever was lost before", File: heedFile, Old: "in.Meant.Continues || d.Asked == AskNotExecuted ||", New: "in.Meant.Continues && d.Errand == Wake || d.Asked == AskNotExecuted ||"},
	{Name: "a call that outlived its claim is judged by what was known of losses before it", File: heedFile, Old: "return late && in.Outcome != OutDelivered &&", New: "return false && late && in.Outcome != OutDelivered &&"},
	{Name: "a call within its claim's time waits for what was lost", File: heedFile, Old: "return late && in.Outcome != OutDelivered &&", New: "return in.Outcome != OutDelivered &&"},
	{Name: "a decline whose key says which attempt it is about waits for what was lost", File: heedFile, Old: " && (keyless || in.Outcome != OutDeclined)", New: ""},
	{Name: "a frozen worker settles a decline by what was known of losses before", File: heedFile, Old: " || late && keyless && d.Asked == AskDeclined", New: ""},
	{Name: "a decline that the topic was asked about settles what was executed before a loss", File: evidenceFile, Old: "d.weak(c) || d.strayed(in.Now, c)): // the same", New: "d.weak(c)): // the same"},
	{Name: "a webhook's decline that the topic was asked about settles what was executed before a loss", File: evidenceFile, Old: "(d.Errand == Tidings && d.weak(c) || d.strayed(in.Now, c)): // the same", New: "(d.strayed(in.Now, c)): // the same"},
	{Name: "a decline that a frozen worker kept settles what was executed before a loss", File: evidenceFile, Old: "if m := d.Held; m.Kept == KeptDeclined &&", New: "if m := d.Held; false && m.Kept == KeptDeclined &&"},
	{Name: "a frozen worker's decline settles what another has executed before a loss", File: "idem/protocol/call.go", Old: "		if d.strayed(now, c) {", New: "		if d.strayed(now, c) && false {"},
	{Name: "a frozen worker fails what another has executed before a loss", File: evidenceFile, Old: "case d.Asked == AskNotExecuted && d.Errand != Close && d.Held.openSince(c) != 0:", New: "case d.Asked == AskNotExecuted && d.Errand != Close && d.Held.openSince(c) != 0 && false:"},
	{Name: "a chain goes on past a dead message by what was known of losses", File: evidenceFile, Old: "		d.Checked = d.Checked || m.State == Dead\n		return d.ask(now, c)", New: "		d.Checked = d.Checked || m.State == Dead\n		return d.settleNow(now, c)"},
	{Name: "what undoes is certain to be declined while nobody knows what was lost", File: heedFile, Old: "in.Outcome == OutDeclined && d.Held.Undoes", New: "false"},
	{Name: "what has no answer is certain to be declined while nobody knows what was lost", File: heedFile, Old: "in.Meant.Fails && d.Asked == AskDeclined", New: "false"},
	{Name: "what could not be read once holds back what was judged since", File: heedFile, Old: "d.Lost, d.Unread = max(d.Lost, in.Lost, d.SeenLost), in.Unread //", New: "d.Lost, d.Unread = max(d.Lost, in.Lost, d.SeenLost), d.Unread || in.Unread //"},
	{Name: "a loss that was heard of is forgotten", File: heedFile, Old: "d.Lost, d.Unread = max(d.Lost, in.Lost, d.SeenLost), in.Unread //", New: "d.Unread = in.Unread //"},
	{Name: "a person's decision is judged by less than what they knew", File: heedFile, Old: "max(d.Lost, in.Lost, d.SeenLost)", New: "max(d.Lost, in.Lost)"},
	{Name: "a person's evidence that could not be settled is kept through a loss", File: heedFile, Old: "found || unsettled\n", New: "found || unsettled && false\n"},
	{Name: "of what an operator was told of what was lost is asked", File: heedFile, Old: "d.Step != Alerting && m.State", New: "m.State"},
	{Name: "of what has ended what was lost is asked", File: heedFile, Old: " && !m.State.Final() &&", New: " &&"},
	{Name: "what a person sent without a reply was not sent where nobody knows what was lost", File: "idem/outbox/delivery.go", Old: " && (x.unheard == nil || x.machine.Seen.None()):", New: ":"},
	{Name: "a person's settlement that may have landed was throttled", File: "idem/outbox/delivery.go", Old: "!x.machine.At.Tainted && x.machine.Seen.None():", New: "!x.machine.At.Tainted:"},
	{Name: "a redrive goes on while nobody knows what was lost", File: heedFile, Old: " || d.Errand == Redrive\n}", New: "\n}"},
	{Name: "a chain goes on by a person's word while nobody knows what was lost", File: heedFile, Old: "d.Errand == Tidings || d.Errand == Judgement ||", New: "d.Errand == Tidings ||"},
	{Name: "a chain goes on by a webhook while nobody knows what was lost", File: heedFile, Old: "d.Errand == Tidings || d.Errand == Judgement ||", New: "d.Errand == Judgement ||"},
	{Name: "what was lost is asked for in the time that keeps an answer", File: "idem/outbox/heed.go", Old: "context.WithTimeout(ctx, left/4)", New: "context.WithTimeout(ctx, left)"},
	{Name: "what a person decided before a loss is carried out after it", File: heedFile, Old: "max(d.Lost, c.Topic.RefuseBefore) > d.SeenLost &&", New: "false &&"},
	{Name: "a person who was frozen through a loss knows what was lost", File: heedFile, Old: "return !d.Seen.None() || in.Meant.Continues ||", New: "return in.Meant.Continues ||"},
	{Name: "a person's evidence is settled whatever was lost since they looked", File: heedFile, Old: "	case Judgement, Close, Redrive:\n		return true\n", New: "	case Close, Redrive:\n		return true\n	case Judgement:\n		return false\n"},
	{Name: "a person who looked before a loss is told that another was faster", File: "idem/outbox/delivery.go", Old: "	case row != nil && translation.IDOf(row.Revision) == x.machine.Seen:\n", New: "	case false:\n"},
	{Name: "what a decision is about does not say how old the configuration makes it", File: "idem/outbox/topic.go", Old: "	if t.cfg.RefuseBefore.After(lost) {\n", New: "	if false {\n"},
}

// seenBefore: what a person saw before a loss of data.
var seenBefore = []Mutant{
	{Name: "what was seen before a loss is seen after it", File: "idem/operator/seen.go", Old: "	if !lost.IsZero() {\n", New: "	if false {\n"},
	{Name: "an instant that went back is a loss", File: "idem/operator/seen.go", Old: "after > before", New: "after != before"},
	{Name: "a list shows what was seen before a loss", File: "idem/operator/list.go", Old: "known: known, tenant", New: "known: known.AddDate(-10, 0, 0), tenant"},
	{Name: "an inspection shows what was seen before a loss", File: "idem/operator/inspect.go", Old: ", loss.Instant()\n", New: ", Loss{}.Instant()\n"},
}
