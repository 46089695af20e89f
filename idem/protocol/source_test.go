package protocol

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A source is tests by behaviour: they run the engine or the worker on a store, and demand what docs/semantics.md promises, in its words.
type source struct {
	// directory is their package's, from this one's.
	directory string
	tests     []string
}

// sources are, for each table, what says the same without having been written by the machines. No table is written anew while one of
// them fails.
var sources = map[string][]source{
	"request_meets_record.txt": {
		{"..", []string{"TestDoMismatchInEveryState", "TestDoExpiryStartsANewIncarnation", "TestTombstoneAnswersGoneAndThenTheKeyIsNew", "TestBetweenExpiryAndFreedomAKeyIsReplayedAndATombstoneIsGone", "TestWrappedDeadLeaseIsUnknownAndNeverExecuted", "TestWrappedDeclaredSafeRunsAgain", "TestACacheBustFreesTheKeyAfterTheCachesAge", "TestOnesOwnReserveKeepsTheQuotasRight", "TestAnExpiredKeyIsFreeOnlyAfterTheSkew"}},
		{"../middleware", []string{"TestStates", "TestStatesOfADeadLease"}},
	},
	"handler_ends.txt": {
		{"..", []string{"TestDoExecutesOnceThenReplaysByteForByte", "TestDoDeferredAnswersTheSame202UntilItIsSettled", "TestDoRejectIsStoredAndReplayed", "TestDoStoresByPolicy", "TestDoHandlerErrorOrPanicReleases", "TestWrappedFailureProvesNothing", "TestNothingHappenedFreesTheKeyUnlessTheAnswerIsASuccess"}},
	},
	"reply_to_write.txt": {
		{"..", []string{"TestLostReplyOnCommit", "TestCommitThatIsFencedOffNeverLands", "TestCommitThatLandsBeforeTheFenceOffIsAnswered", "TestContentionIsTriedAgain", "TestContentionForEverReleasesWith503", "TestDoRetryReadsAndRunsAgain", "TestARejectionBesideALockThatWasNotJudgedRunsAgain", "TestARejectionBesideAnythingThatWasNotJudgedIsSentAgain", "TestWhatWasToldToHaveFailedNeverCommitsLater", "TestWrappedLateEvidenceSettlesWhatWasParked"}},
	},
	"errand_meets_message.txt": {
		{"../outbox", []string{"TestSweepJudgesEachMessage", "TestReconcileJudgesEachFinding", "TestKeyRetentionEnds", "TestAnOpenCallIsRepeatedUntilTheMarginOfItsKeysRetention", "TestAttemptsOverWithAnOpenCall", "TestAttemptsOverWithNothingOpen", "TestAttemptsOverIsLeftToProbes", "TestALaterPhaseIsNotAnsweredWithATimeout", "TestARefusedPhaseIsFollowedByWhatUndoesTheOneBefore", "TestAnUndoingThatIsGivenUpStandsBeforeAnOperator", "TestWakeUpsThatNeedNothing", "TestAMessageOfAnotherReleaseStopsNobody", "TestAWebhooksDeclineOfNobodyKnowsWhichAttemptIsKept", "TestADeclineNeverOverrulesWhatIsKeptAsDelivered", "TestOperatorCloses", "TestMessagesGoADayAfterTheirRecordHoweverItEnded", "TestOperatorRedrivesKeptEvidence", "TestRedrivenByAnOperatorIsAskedAbout", "TestDeadIsToldOfEveryDay"}},
	},
	"call_ends.txt": {
		{"../outbox", []string{"TestDeliverSettlesOnce", "TestRefusedIsDeadAtOnce", "TestACallThatSaysNothingMayHaveHappened", "TestNoCallWithoutALease", "TestAttemptsOverWithAnOpenCall", "TestProviderTroubleEndsInOneDelivery"}},
	},
	"settlement_ends.txt": {
		{"../outbox", []string{"TestSettleWithoutAnyReply", "TestFailedSettlementKeepsItsEvidence", "TestEvidenceAfterTheEnd", "TestEvidenceMeetsAnotherEnd", "TestADefiniteAnswerIsKeptWhenItCannotBeSettled", "TestNoPhaseFollowsWhatHasFailedHoweverItIsRedriven", "TestLateEvidenceOfACancelledPhaseIsKept", "TestNothingOfAChainGoesBeforeItsEnd", "TestMessagesGoADayAfterTheirRecordHoweverItEnded"}},
	},
}

// confirmed runs the sources of a table, and says why it must not be written.
func confirmed(t *testing.T, name string) error {
	t.Helper()
	if len(sources[name]) == 0 {
		return fmt.Errorf("sources has no tests that say the same by behaviour")
	}
	for _, s := range sources[name] {
		command := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-short", "-run", "^("+strings.Join(s.tests, "|")+")$", s.directory)
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("its tests in %s fail (%v): the change breaks a promise, or they must change first\n%s", s.directory, err, out)
		}
	}
	return nil
}

// TestEveryTableHasASecondSource: a golden file that the code writes itself would follow every fault of the code.
func TestEveryTableHasASecondSource(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(sources) {
		t.Errorf("%d tables, and %d have sources", len(files), len(sources))
	}
	for _, path := range files {
		name := filepath.Base(path)
		if len(sources[name]) == 0 {
			t.Errorf("%s has no source", name)
		}
		for _, s := range sources[name] {
			code := testsOf(t, s.directory)
			for _, test := range s.tests {
				if !regexp.MustCompile(`(?m)^func ` + test + `\(t \*testing\.T\)`).MatchString(code) {
					t.Errorf("%s: %s has no %s", name, s.directory, test)
				}
			}
		}
	}
}

// TestATableIsNotWrittenWhileASourceFails: nor where there is none.
func TestATableIsNotWrittenWhileASourceFails(t *testing.T) {
	if err := confirmed(t, "nothing.txt"); err == nil {
		t.Error("a table without a source may be written")
	}
	directory := filepath.Join("testdata", "failing")
	sources["planted.txt"] = []source{{"./" + directory, []string{"TestFails"}}}
	defer delete(sources, "planted.txt")
	if err := confirmed(t, "planted.txt"); err == nil || !strings.Contains(err.Error(), "--- FAIL: TestFails") {
		t.Errorf("a table whose source fails may be written: %v", err)
	}
}

// testsOf is the code of a package's tests.
func testsOf(t *testing.T, directory string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(directory, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	return code.String()
}
