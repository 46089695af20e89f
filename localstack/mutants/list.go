package mutants

import "slices"

// Tests that hold what the code writes itself: the tables of the machines, the design document's figures of them, the diagrams. Such a
// file is no second source: who changes the code writes it anew. So they kill no mutant.
const (
	tables   = "^(TestRequestMeetsRecord|TestHandlerEnds|TestReplyToWrite|TestErrandMeetsMessage|TestCallEnds|TestSettlementEnds|TestDesignShowsTheTables)$"
	diagrams = "^TestStateDiagrams"
)

// The tests that stand for a part of the code, the quick ones first.
var (
	ofStore = []Tests{
		{Packages: "./idem/dynamo", Run: "Fence|Frozen|LaterRelease|Condition|Cancel|Touch|Error|Transport|Wire|Unknown|Write|Chunk|Mark|Loss|Expiry|Serialized"},
		{Packages: "./idem/dynamo"},
	}
	ofProtocol = []Tests{
		{Packages: "./idem/protocol", Skip: tables},
		{Packages: "./idem/memstore"},
		{Packages: "./idem/sim"},
		{Packages: "./idem", Skip: diagrams},
		{Packages: "./idem/outbox"},
		{Packages: "./idem/middleware"},
	}
	ofRows = []Tests{
		{Packages: "./idem", Run: "TestTheReferenceStoreDoesWhatTheCheckerExplores|TestANextMessageThatIsThereIsInTheWayOfTheWholeSettlement"},
		{Packages: "./idem/protocol/check", Run: "^TestEveryRuleHoldsAndIsNeeded$/^explore$", Flags: "-tags prove"},
	}
	ofFingerprint = []Tests{{Packages: "./idem/canonical"}}
	ofScope       = []Tests{{Packages: "./idem", Skip: diagrams}}
	ofWebhook     = []Tests{{Packages: "./idem/webhook"}}
	ofQuota       = []Tests{{Packages: "./idem/quota ./idem/quota/dynamoquota"}}
	ofGuard       = []Tests{{Packages: "./idem/guard"}}
	ofCall        = []Tests{{Packages: "./idem/outbox/call"}}
	ofOutbox      = []Tests{{Packages: "./idem/outbox"}, {Packages: "./idem/sim"}}
	ofDeliveries  = []Tests{{Packages: "./idem/outbox"}}
	ofMiddleware  = []Tests{{Packages: "./idem/middleware"}}
	ofFunction    = []Tests{{Packages: "./idem/function"}}
	ofEngine      = []Tests{{Packages: "./idem", Skip: diagrams}, {Packages: "./idem/sim"}}
	ofLateStories = []Tests{{Packages: "./idem/sim", Run: "^TestStories$", Flags: "-sim.seed 4500 -sim.steps 60000"}}
	ofSimulator   = []Tests{{Packages: "./idem/sim"}}
	ofCuts        = []Tests{{Packages: "./idem/sim", Run: "^TestEveryKind"}}
	ofApplication = []Tests{{Packages: "./functions/internal/payments", Run: "^TestSimulatedStories$"}}
	ofExamples    = []Tests{{Packages: "./docs/examples/echorouter ./docs/examples/ginrouter"}}
	ofRPC         = []Tests{{Packages: "./docs/examples/rpc"}}
	ofStreams     = []Tests{{Packages: "./docs/examples/rpc ./docs/examples/grpc ./docs/examples/connect", Run: "Stream|Unknown"}}
	ofConform     = []Tests{{Packages: "./idem/conform", Run: "Gateway|FreedItsKey|ServicesOwn"}}
	ofReference   = []Tests{{Packages: "./idem/memstore", Run: "^TestContract$"}}
	ofShop        = []Tests{{Packages: "./docs/examples/guides/clients", Run: "^TestAJob|^TestWhat|^TestAStored"}}
	ofManyStories = []Tests{{Packages: "./functions/internal/payments", Run: "^TestSimulatedStories$", Flags: "-sim.steps 100000"}}
	ofSeal        = []Tests{{Packages: "./idem/seal ./idem/seal/tablekeys"}, {Packages: "./idem/seal/awskms", Run: "^TestNew"}}
	ofCache       = []Tests{{Packages: "./idem/cache"}}
	ofOperator    = []Tests{{Packages: "./idem/operator"}}
	ofRehearsals  = []Tests{{Packages: "./idem/outbox", Run: "Rehears"}, {Packages: "./idem/operator", Run: "DryRun"}}
	ofCommands    = []Tests{{Packages: "./idem/operator/idemctl"}}
	ofConsole     = []Tests{{Packages: "./idem/operator/console"}}
	ofJudgements  = []Tests{{Packages: "./functions/cmd/idemctl", Run: "^TestConsole|^TestFacts"}}
	ofTerminals   = []Tests{{Packages: "./internal/plaintext ./idem/operator/idemctl", Run: "Terminal"}}
	ofQueue       = []Tests{{Packages: "./idem/outbox/sqsqueue"}}
	ofPayments    = []Tests{{Packages: "./functions/internal/payments", Run: "Webhook|Redirect|TestProbeJudges|SomethingElse|AnotherKey"}}
	ofBalances    = []Tests{{Packages: "./functions/cmd/idemctl", Run: "Account|APayment|TheLastMessageSays"}}
	ofCutOvers    = []Tests{{Packages: "./functions/cmd/idemctl", Run: "CutOver|AfterTheRefusal"}}
	ofLosses      = []Tests{{Packages: "./functions/internal/drift ./functions/internal/drift/hourly", Run: "^TestWhat|Redriven|HoweverLate|PayoutsFunds|ByHand|HasExpired|HoldThat|CutShort|NotOurs|Classification"}}
	ofClocks      = []Tests{{Packages: "./idem/operator/awsctl", Run: "ComesLate|ClockIsOff"}}
	ofRestores    = []Tests{{Packages: "./idem/operator/awsctl", Run: "^TestARestore"}}
	ofMiddles     = []Tests{{Packages: "./functions/internal/payments", Run: "TornInItsMiddle|TornEnd|GivenUpPayout|ShowsAsDeclined|ATornPayout|ReleasedByHand|FinishedPayout|TornMessage|ItsNextMessage"}}
	ofAPIKeys     = []Tests{{Packages: "./functions/internal/apikey"}}
	ofCredentials = []Tests{{Packages: "./functions/internal/credential", Run: "NeverSent|TheReadingOf|NoClock"}}
	ofLedger      = []Tests{{Packages: "./functions/internal/payments", Run: "Totals|BalancesFollow|PaymentFollows|Comparison|SayTheyAreOthers|WithoutAReference|GivenBackIsNotSettled|BelowZero|Collecting|Fold|BeyondWhatThereIs|WithoutKeys"}}
	ofPutBacks    = []Tests{{Packages: "./functions/internal/payments", Run: "ALostRow"}}
	ofPages       = []Tests{{Packages: "./idem/seal/tablekeys ./idem/operator/awsctl ./idem/operator/auditlog ./functions/internal/apikey", Run: "EveryTenant|EveryEncrypted|Entr|ListIs"}}
	ofSecrets     = []Tests{{Packages: "./idem/lambdaapp/secret"}}
	ofDeadlines   = []Tests{{Packages: "./idem/lambdaapp ./functions/api", Run: "LeaseOutlives"}}
	ofFront       = []Tests{{Packages: "./idem/awslambda", Run: "Front"}}
	ofStage       = []Tests{{Packages: "./infra/stage"}}
	ofQueues      = []Tests{{Packages: "./infra/stack", Run: "MessagesLive"}}
	ofConstruct   = []Tests{{Packages: "./infra/idemconstruct", Run: "AccountOfAnEmulator"}}
	ofLocalStack  = []Tests{{Packages: "./localstack/stack", Run: "AFailedDeployment|AStackIsUp|EveryTerminal"}}
	ofInstalls    = []Tests{{Packages: "./localstack/emulator", Run: "AWait|Nobody|CDK"}}
	ofValues      = []Tests{{Packages: "./internal/shellvalue"}}
	ofTypeScript  = []Tests{{Packages: "./idem/client", Run: "^TestTheTypeScriptPackageKeepsTheSharedRules$/^package$"}}
	ofPython      = []Tests{{Packages: "./idem/client", Run: "^TestThePythonPackageKeepsTheSharedRules$/^package$"}}
	ofClient      = []Tests{{Packages: "./idem/client", Run: "Test[^T]|TestT[^h]|TestTh[^e]|TestThe[^TP]"}}
)

// Listed are the mutants that are written by hand.
func Listed() []Mutant {
	return slices.Concat(
		of(ofStore, fences),
		of(ofStore, transactions),
		of(ofStore, replies),
		of(ofStore, settlements),
		of(ofProtocol, decisions),
		of(ofProtocol, deliveries),
		of(ofCuts, people),
		of(ofRows, rows),
		of(ofFingerprint, fingerprints),
		of(ofScope, scopes),
		of(ofWebhook, webhooks),
		of(ofQuota, quotas),
		of(ofCall, calls),
		of(ofGuard, guards),
		of(ofOutbox, outcomes),
		of(ofDeliveries, lostUnderway),
		of(ofOperator, seenBefore),
		of(ofOutbox, reminders),
		of(ofOutbox, remainders),
		of(ofMiddleware, replays),
		of(ofFunction, functions),
		of(ofEngine, executions),
		of(ofSeal, seals),
		of(ofCache, caches),
		of(ofClient, journals),
		of(ofPython, pythons),
		of(ofMiddleware, comparisons),
		of(ofScope, bounds),
		of(ofFront, fronts),
		of(ofClocks, clocks),
		of(ofOperator, stories),
		of(ofOperator, desks),
		of(ofRehearsals, rehearsals),
		of(ofCommands, lines),
		of(ofConsole, consoles),
		of(ofOperator, gaps),
		of(ofOperator, answers),
		of(ofOperator, configured),
		of(ofTerminals, directions),
		of(ofJudgements, judgements),
		of(ofStore, wires),
		of(ofQueue, holds),
		of(ofPayments, acknowledgements),
		of(ofAPIKeys, apiKeys),
		of(ofCredentials, credentials),
		of(ofStage, productions),
		of(ofConstruct, emulations),
		of(ofQueues, letters),
		of(ofInstalls, installs),
		of(ofLocalStack, deployments),
		of(ofLocalStack, statuses),
		of(ofLocalStack, starts),
		of(ofValues, values),
		of(ofApplication, applications),
		of(ofSimulator, removals),
		of(ofLateStories, removalsOfLeases),
		of(ofSimulator, compared),
		of(ofManyStories, resources),
		of(ofExamples, mountings),
		of(ofRPC, cutOffs),
		of(ofStreams, streams),
		of(ofConform, accusations),
		of(ofReference, references),
		of(ofMiddleware, refusals),
		of(ofLosses, losses),
		of(ofMiddles, middles),
		of(ofRestores, restores),
		of(ofBalances, balances),
		of(ofPutBacks, putBacks),
		of(ofCutOvers, cutOvers),
		of(ofTypeScript, typeScripts),
		of(ofShop, shops),
		of(ofLedger, ledgers),
		of(ofPages, pages),
		of(ofSecrets, secrets),
		of(ofDeadlines, deadlines),
	)
}

// of gives mutants their tests.
func of(tests []Tests, all []Mutant) []Mutant {
	for i := range all {
		all[i].Tests = tests
	}
	return all
}

// Sample are n mutants that stand beside each other, so that most share their tests. With seeds that count up by one each mutant gets its
// turn.
func Sample(all []Mutant, n int, seed uint64) []Mutant {
	if n <= 0 || n >= len(all) {
		return all
	}
	turns := uint64((len(all) + n - 1) / n)
	from := int(seed%turns) * n
	return all[from:min(from+n, len(all))]
}
