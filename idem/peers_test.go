package idem_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// heldBy names, for each case of docs/peers.md, tests that hold it: functions, or cases of package storetest. It is the only place
// that knows the numbers: a test says the failure in words.
var heldBy = map[string][]string{
	"P1":  {"TestTwoHoldersTheLateCommitIsRejected", "TestTwoHoldersAHandlerThatOverstaysAnswersWithTheWinnersResult"},
	"P2":  {"TestTwoHoldersAHandlerThatOverstaysAnswersWithTheWinnersResult", "any one part of the fence that is wrong is a conflict and nothing happens"},
	"P3":  {"TestASendingAfterALostReplyIsResolved", "TestAnInsertMeetsItsOwnRecordWhenItIsSentAgain"},
	"P4":  {"TestDoRefusesAnEmptyKeyOrTenant", "FuzzKeyByPointer"},
	"P5":  {"TestDoWithoutTimeLeftReservesNothing"},
	"P6":  {"TestOneBoundOnAResponse", "TestWrappedResponseTooLarge"},
	"P7":  {"TestATransactionSentAgainSendsIdenticalBytes", "TestHandlerChangesItsInput"},
	"P8":  {"TestNestedOperationsDoNotShareAnything", "TestNestedFunctions"},
	"P9":  {"TestWrappedDeadLeaseIsUnknownAndNeverExecuted"},
	"P10": {"TestDuplicateThatIsTurnedAwayFreesNothing", "any one part of the fence that is wrong is a conflict and changes nothing"},
	"P11": {"TestErrorIsNotStored", "TestWrappedHandlerThatFailsLeavesUnknown"},
	"P12": {"TestOutputIsReplayed", "TestOnTheWire"},
	"P13": {"TestLeaseEndsWhenItShould", "a final record is replaced from the millisecond of its expiry on, not before"},
	"P14": {"TestRecordKeyLeavesNoDelimiterToInject"},
	"H1":  {"TestCommitThatIsFencedOffNeverLands", "TestCommitThatLandsBeforeTheFenceOffIsAnswered"},
	"H2":  {"TestSlowWorkerBesideSweepAndReconciler", "a record that is final already is a conflict and nothing happens"},
	"H3":  {"TestA202IsNeverExecutedAgain"},
	"H4":  {"TestRedriveOnDayThree", "TestLegacyCharge"},
	"H5":  {"TestZombieLandsAfterProvenAbsence", "TestReconcileWaitsForProofOfAbsence"},
	"H6":  {"TestNothingOfAnExpiredIncarnationTouchesTheNext", "a revision under another operation id admits nothing"},
	"H7":  {"another execution of the same scope and epoch is judged by its own condition", "a token that comes back with another content is an error, never a success"},
	"H8":  {"TestRenamedOperationKeepsItsKeysInBothDirections", "TestFingerprintIsComparedUnderTheSecretItWasStoredWith"},
	"H9":  {"TestLateEvidenceSettlesWhatTheSweepParked", "a definite answer settles from any state that is not final, any epoch and any owner"},
	"H10": {"TestResponseTooLarge", "TestWrappedResponseTooLarge"},
	"H11": {"TestCancellationReasonsAreReadByPosition", "TestDoRetryReadsAndRunsAgain"},
	"H12": {"TestTombstoneAnswersGoneAndThenTheKeyIsNew", "TestFirstSentProtectsAndNeverRejectsALiveRecord"},
	"H13": {"TestAnIncompleteResponseIsNeverReplayed", "TestChunksOutliveAnAmendedRecord"},
	"H14": {"TestValidationLooksUpFirst", "TestValidationMeetsExpiry"},
	"H15": {"TestNobodyIsToldAnythingBeforeTheyAreAuthorised", "TestOnReplayAddsOnlyWhatIsNotStored"},
	"H16": {"TestInProgressDuplicateFailsItsItem", "TestFIFOStopsAtTheInProgressDuplicate"},
	"H17": {"TestRecordsOfALaterReleaseAreUnavailable", "TestPayloadOfAnotherVersionIsLeftToItsRelease"},
	"H18": {"TestWhatNetHTTPRepeatsIsCounted", "TestADropOnAReusedConnectionShowsAResend"},
	"H19": {"TestAttemptsOverWithAnOpenCall", "TestProviderFaultsEndInOneCharge"},
	"H20": {"TestPayoutThatIsGivenUp", "TestSettlementsAreTheSameEachTime"},
	"H21": {"TestWrappedHandlerThatFailsLeavesUnknown", "TestWrappedFailureProvesNothing"},
}

// heldElsewhere does so for the bullets of "Seen elsewhere", by words of theirs.
var heldElsewhere = map[string][]string{
	"the key ignored the payment method":                                   {"TestPaymentKeys"},
	"the key was sent on one endpoint of the flow, and not on the next":    {"TestPayoutIsDoneInOneRequest"},
	"`FailedEntryCount` is ignored":                                        {"TestQueueReportsWhatFailed", "TestUnprocessedKeysAreRead"},
	"integers above 2^53 collide":                                          {"TestDifferentRequests"},
	"The query string and the path are left out":                           {"TestDifferentRequests", "TestRouter"},
	"check-then-act":                                                       {"TestDoTwentySimultaneousDuplicates"},
	"Success is sent to the client before the commit is known":             {"TestContentionForEverReleasesWith503"},
	"Unlock, complete and heartbeat check only the key":                    {"TestDuplicateThatIsTurnedAwayFreesNothing"},
	"A client that disconnects cancels the save and releases the claim":    {"TestClientThatHangsUpChangesNothing"},
	"A message is marked as processed before it is handled":                {"TestErrorIsNotStored"},
	"The layer stores its own 409 or 422 as the response":                  {"TestConformance"},
	"A waiter that gives up deletes the row of the live owner":             {"TestConformance"},
	"The default settings replay a response across tenants or endpoints":   {"TestConformance"},
	"The end of a lease is taken for permission to run a withdrawal again": {"TestWrappedDeadLeaseIsUnknownAndNeverExecuted"},
	"a replay is not byte-exact, and binary bodies are corrupted":          {"TestOnTheWire"},
	"A `Set-Cookie` header is replayed":                                    {"TestOnTheWire"},
	"The effect is done first, and the record is written afterwards":       {"TestWorkerKilledBetweenChargeAndSettle"},
	"The reaper deletes keys that are unfinished":                          {"TestRecordRemovedByTTLOnlyWhereNothingCanHaveHappenedUntold"},
	"Composed keys are open to delimiter injection":                        {"TestRecordKeyLeavesNoDelimiterToInject"},
}

var (
	peerCase   = regexp.MustCompile(`(?m)^- ([PH][0-9]+) `)
	peerBullet = regexp.MustCompile(`(?m)^- `)
	newLine    = regexp.MustCompile(`\n\s*`)
	// testName is a test's; contractCase is one of package storetest.
	testName     = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
	contractCase = regexp.MustCompile(`(?m)^\t\{"([^"]+)", func`)
)

// Every case of docs/peers.md is held by tests that "go test ./..." runs.
func TestEveryCaseOfThePeersIsHeld(t *testing.T) {
	there := tests(t)
	var cases []string
	for _, found := range peerCase.FindAllStringSubmatch(peers(t), -1) {
		cases = append(cases, found[1])
		if len(heldBy[found[1]]) == 0 {
			t.Errorf("no test is named for %s", found[1])
		}
	}
	if known := slices.Sorted(maps.Keys(heldBy)); len(cases) < 30 || !slices.Equal(known, slices.Sorted(slices.Values(cases))) {
		t.Errorf("docs/peers.md has the cases %q, heldBy %q", cases, known)
	}
	for name, held := range heldBy {
		for _, test := range held {
			if !there[test] {
				t.Errorf("%s is held by %q, which is no test", name, test)
			}
		}
	}
}

// So is every bullet of "Seen elsewhere".
func TestEverythingSeenElsewhereIsHeld(t *testing.T) {
	_, section, _ := strings.Cut(peers(t), "\n## Seen elsewhere\n")
	section, _, _ = strings.Cut(section, "\n## ")
	open := map[string]bool{}
	for _, bullet := range peerBullet.Split(section, -1)[1:] {
		open[newLine.ReplaceAllString(strings.TrimSpace(bullet), " ")] = true
	}
	bullets, there := slices.Collect(maps.Keys(open)), tests(t)
	if len(bullets) < 10 {
		t.Fatalf("docs/peers.md has %d bullets", len(bullets))
	}
	for words, held := range heldElsewhere {
		i := slices.IndexFunc(bullets, func(bullet string) bool { return strings.Contains(bullet, words) })
		if i < 0 {
			t.Errorf("docs/peers.md does not say %q", words)
			continue
		}
		delete(open, bullets[i])
		for _, test := range held {
			if !there[test] {
				t.Errorf("%q is held by %q, which is no test", words, test)
			}
		}
	}
	for bullet := range open {
		t.Errorf("no test is named for: %s", bullet)
	}
}

func peers(t *testing.T) string {
	t.Helper()
	document, err := os.ReadFile("../docs/peers.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

// tests are the names of all tests that "go test ./..." runs, and of the cases of the contract that those of the stores run.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	there := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("looking for tests: %w", err)
		}
		if entry.IsDir() {
			if name := entry.Name(); name != ".." && strings.HasPrefix(name, ".") || slices.Contains([]string{"node_modules", "testdata"}, name) {
				return filepath.SkipDir
			}
			return nil
		}
		contract := filepath.Ext(path) == ".go" && filepath.Dir(path) == filepath.Join("..", "idem", "storetest")
		if !strings.HasSuffix(path, "_test.go") && !contract {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || strings.HasPrefix(string(text), "//go:build") {
			return err
		}
		for _, found := range testName.FindAllStringSubmatch(string(text), -1) {
			there[found[1]] = true
		}
		if contract {
			for _, found := range contractCase.FindAllStringSubmatch(string(text), -1) {
				there[found[1]] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
}
