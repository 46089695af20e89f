package mutants

const (
	applicationFile = "infra/idemconstruct/application.go"
	deployFile      = "localstack/stack/cdk.go"
	driftFile       = "infra/stack/drift.go"
	lockFile        = "localstack/emulator/lock.go"
	statusFile      = "localstack/stack/status.go"
)

// emulations: what must not reach an account of AWS.
var emulations = []Mutant{
	{Name: "an emulated stack may take the place of one in AWS", File: applicationFile, Old: "	if p.Emulated && *awscdk.Stack_Of(scope).Account() != EmulatorAccount {", New: "	if p.Emulated && *awscdk.Stack_Of(scope).Account() == \"\" {"},
	{Name: "an emulated stack goes where the credentials are", File: applicationFile, Old: "	return &awscdk.Environment{Account: jsii.String(EmulatorAccount)}", New: "	return nil"},
}

// deployments: what the local stack remembers of what it has deployed.
var deployments = []Mutant{
	{Name: "half a deployment counts as the one before it", File: deployFile, Old: "	if err := s.forgetDeployment(); err != nil {\n		return nil, err\n	}\n", New: ""},
}

// statuses: what says that the local stack is up.
var statuses = []Mutant{
	{Name: "a collector that nobody started is missing", File: statusFile, Old: "	return !optional || v[variable] != \"\"", New: "	return !optional || v[variable] != \"\" || name == daemonCollector"},
	{Name: "a fault proxy that has died is not missing", File: statusFile, Old: "	return !optional || v[variable] != \"\"", New: "	return !optional || v[variable] != \"\" && name != daemonFaultProxy"},
}

// letters: what is to be a dead letter lives until then.
var letters = []Mutant{
	{Name: "SQS drops a piece of the drift job before it is a dead letter", File: driftFile, Old: "	driftPieceRetention = (driftReceives + 1) * driftVisibility", New: "	driftPieceRetention = driftReceives * driftVisibility"},
}

// installs: what counts as installed, and what waits for another process.
var installs = []Mutant{
	{Name: "a stamp alone says that a tool is installed", File: "internal/localtool/localtool.go", Old: " && t.complete(root) == nil", New: ""},
	{Name: "a branch runs the CDK of another one", File: "localstack/emulator/cdk.go", Old: "		hash.Write(text)\n", New: ""},
	{Name: "a tool is installed while another process installs it", File: lockFile, Old: "		waits()\n		err = waitFor(ctx, file)\n", New: "		err = nil\n"},
	{Name: "nobody is told what an install waits for", File: lockFile, Old: "		waits()\n", New: ""},
}

// starts: which process a record is about.
var starts = []Mutant{
	{Name: "a process that runs is dead in another time zone", File: "localstack/stack/process_ps.go", Old: `"LC_ALL=C", "TZ=UTC")`, New: `"LC_ALL=C")`},
	{Name: "a process that runs is dead in another language", File: "localstack/stack/process_ps.go", Old: `"LC_ALL=C", "TZ=UTC")`, New: `"TZ=UTC")`},
}

// values: what a shell makes of a variable.
var values = []Mutant{
	{Name: "a shell splits a value at a space", File: "internal/shellvalue/shellvalue.go", Old: "%@+,=-]*$`)", New: "%@+,= -]*$`)"},
	{Name: "a value's own quote ends it", File: "internal/shellvalue/shellvalue.go", Old: "strings.ReplaceAll(value, \"'\", `'\\''`)", New: "value"},
}
