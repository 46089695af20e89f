package mutants

import "slices"

// The tests that stand for a part of the code, the quick ones first.
var (
	ofStore = []Tests{
		{Packages: "./idem/dynamo", Run: "Fence|Condition|Cancel|Touch|Error|Transport|Wire|Unknown|Write|Chunk|Mark|Loss|Expiry|Serialized"},
		{Packages: "./idem/dynamo"},
	}
	ofProtocol = []Tests{
		{Packages: "./idem/protocol"},
		{Packages: "./idem/memstore"},
		{Packages: "./idem/sim"},
		{Packages: "./idem"},
		{Packages: "./idem/outbox"},
		{Packages: "./idem/middleware"},
	}
	ofRows = []Tests{
		{Packages: "./idem", Run: "TestTheReferenceStoreDoesWhatTheCheckerExplores"},
		{Packages: "./idem/protocol/check", Run: "EveryRuleHolds", Flags: "-tags prove"},
	}
	ofFingerprint = []Tests{{Packages: "./idem/canonical"}}
	ofScope       = []Tests{{Packages: "./idem"}}
	ofWebhook     = []Tests{{Packages: "./idem/webhook"}}
	ofQuota       = []Tests{{Packages: "./idem/quota ./idem/quota/dynamoquota"}}
	ofCall        = []Tests{{Packages: "./idem/outbox/call"}}
	ofOutbox      = []Tests{{Packages: "./idem/outbox"}, {Packages: "./idem/sim"}}
	ofMiddleware  = []Tests{{Packages: "./idem/middleware"}}
	ofFunction    = []Tests{{Packages: "./idem/function"}}
	ofEngine      = []Tests{{Packages: "./idem"}, {Packages: "./idem/sim"}}
	ofApplication = []Tests{{Packages: "./functions/internal/payments", Run: "^TestSimulatedStories$"}}
	ofSeal        = []Tests{{Packages: "./idem/seal ./idem/seal/tablekeys"}}
	ofCache       = []Tests{{Packages: "./idem/cache"}}
	ofClient      = []Tests{{Packages: "./idem/client", Run: "Test[^T]|TestT[^h]|TestTh[^e]|TestThe[^TP]"}}
)

// Listed are the mutants that are written by hand.
func Listed() []Mutant {
	return slices.Concat(
		of(ofStore, fences), of(ofStore, transactions), of(ofStore, replies), of(ofStore, settlements),
		of(ofProtocol, decisions), of(ofProtocol, deliveries), of(ofRows, rows),
		of(ofFingerprint, fingerprints), of(ofScope, scopes), of(ofWebhook, webhooks), of(ofQuota, quotas),
		of(ofCall, calls), of(ofOutbox, outcomes), of(ofMiddleware, replays), of(ofFunction, functions), of(ofEngine, executions), of(ofSeal, seals), of(ofCache, caches), of(ofClient, journals),
		of(ofApplication, applications),
	)
}

// of gives mutants their tests.
func of(tests []Tests, all []Mutant) []Mutant {
	for i := range all {
		all[i].Tests = tests
	}
	return all
}
