package mutants

const consoleEvidence = "idem/operator/console/evidence.go"

// consoles: what a person settles from a page.
var consoles = []Mutant{
	{Name: "a card settles by its reference alone", File: consoleEvidence, Old: "a.Outcome, a.Reference, a.Evidence = one.Outcome, one.Reference, one.Evidence", New: "a.Outcome, a.Reference = one.Outcome, one.Reference"},
	{Name: "a card settles what it proves nothing of", File: consoleEvidence, Old: " && o.Doubt == \"\"", New: ""},
	{Name: "a card settles without its bytes", File: consoleEvidence, Old: " && len(o.Evidence) > 0", New: ""},
	{Name: "what can't be settled is promised to be", File: "idem/operator/console/plan.go", Old: "	case p.unsettled:\n", New: "	case false && p.unsettled:\n"},
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
