package mutants

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/verify/faults.md from the faults, the planted rules and the list of mutants")

// A fault is a sequence of events that this project once got wrong, or was found to permit.
type fault struct {
	// what happened, in words of docs/semantics.md.
	what string
	// planted are rules whose removal brings it back, and which a story of the simulator finds; beyond is one that no story finds.
	planted []string
	beyond  string
	// explored is one whose removal the checker explores in a scenario about that sequence, where a rule guards more than the sequence and a
	// story finds it by another promise.
	explored string
	// mutants are listed ones that bring it back, each with the test by behaviour that fails then.
	mutants []dies
}

type dies struct{ mutant, by string }

// faults were found by reviews of the whole protocol.
var faults = []fault{
	{what: "A commit landed and its reply was lost. Its resend met contention, which counted as \"nothing happened\": a new transaction ran beside the first, and at a provider without keys there were two effects",
		planted: []string{"contention counts after a try without a reply", "contention counts after a commit without a reply, and nothing excludes what is loose", "inline delivery acts on what was sent"}},
	{what: "The same with the reserve of a wrapped handler: the record became unknown although the handler never ran",
		planted: []string{"a reserve without a reply is not given back", "one's own reserve is left standing when it is too late", "giving back ends at contention"},
		mutants: []dies{{"a key that was got late is given back until the store throttles", "TestAKeyThatWasGotLateIsGivenBackDespiteThrottles"}}},
	{what: "A wrapped handler ran longer than its lease. It was parked, asked about, found absent and freed, and the retry charged a second time",
		planted: []string{"a lease is not renewed"}},
	{what: "A wrapped handler charged, and then passed on a 429 of its second step: its key was free, and the retry charged again",
		planted: []string{"an answer that is not stored proves something"}},
	{what: "The same key and body for another order's path got the first order's answer: the second payment was silently lost",
		mutants: []dies{{"another path's request is the same", "TestAKeyNeverReplaysTheAnswerOfAnotherPathQueryOrMethod"}, {"stories: another payment's refund is the same request", "TestSimulatedStories"}}},
	{what: "The first message of a chain was removed by TTL while the second was open: nobody found the chain's recovery point, and an operator was told that it had ended",
		planted: []string{"a message may go before its chain"}},
	{what: "A webhook's evidence came in between an operator's look at a dead message and their write: a redrive erased it, or a close said \"Nothing was executed\" of a card that was charged",
		explored: "a message's fences see state, owner and epoch only", mutants: []dies{{"closing races with a redrive, and wins", "TestClosingLosesToARedrive"}}},
	{what: "A provider without keys answered, and the settlement met contention until its time was over: the definite answer was dropped",
		planted: []string{"what can't be settled is dropped"}},
	{what: "A wrapped handler ended after its request's time was over, its lease alive: no write was tried, and the record became unknown",
		planted: []string{"a completion is tried until its request's time is over", "a completion is not tried for the rest of its lease"}},
	{what: "The store took smaller responses than the engine: a wrapped handler's answer was refused when its work was done",
		mutants: []dies{{"a response may be larger than its store takes", "TestOneBoundOnAResponse"}}},
	{what: "A transaction was cancelled because a business condition failed and a lock was not judged: the rejection was stored, though the lock might have been lost",
		planted: []string{"a condition counts beside one that was not judged"}},
	{what: "The second phase of a chain was refused after the first was executed, and the client was told \"Nothing was executed\"; nothing undid the first",
		planted: []string{"what undoes an earlier phase is not sent", "what undoes after a decline is a phase like any other"}},
	{what: "A record that was freed had no end: its key answered the next payload with a mismatch years later",
		planted: []string{"what was freed holds its key until somebody executes it"}},
	{what: "An operator was told that a chain had ended, because its last message had; an earlier one was dead",
		mutants: []dies{{"only the last message of a chain is judged", "TestStoryJudgesEveryMessage"}}},
	{what: "A read through the cache overlapped a cache-bust of the same process: the answer that had been taken out of use was replayed for a minute",
		mutants: []dies{{"what a write overtook is kept", "TestAReadThatOverlapsACacheBustIsNotHeld"}}},
	{what: "A cache-bust was on its way when its process died, and landed 47 s later: its key executed while a cache could replay the old answer",
		planted: []string{"a cache-bust counts from when it was prepared"}},
	{what: "A copy of a wrapped handler's completion landed after its answer had been taken out of use, and the wrong answer was replayed again",
		planted: []string{"what is taken out of use still belongs to the execution that answered"},
		mutants: []dies{{"what is taken out of use is still its holder's", "TestALateCompletionDoesNotUndoACacheBust"}}},
	{what: "The look-up of a payment followed a redirect: the empty list of another host was taken for the provider's word that it had charged nothing, and that host got the credential",
		mutants: []dies{{"a probe goes where a redirect leads", "TestAProbeFollowsNoRedirect"}}},
	{what: "An operator's machine was minutes ahead: what its reconcile took for proof of absence was a request under way, which was made a second time",
		mutants: []dies{{"a clock that is off decides", "TestAMachineWhoseClockIsOffChangesNothing"}}},
	{what: "A dead message that nobody had ever claimed was started anew, and was cancelled at once because of its age",
		planted: []string{"what was started anew is as old as it was"}},
	{what: "`Idempotency-First-Sent: 0001-01-01T00:00:00Z` counted as no such header: a request that was far too old executed",
		mutants: []dies{{"a first-sent time of year 1 is none", "TestFirstSent"}}},
	{what: "Any 4xx of a provider counted as proof that nothing had happened",
		mutants: []dies{{"an unlisted status is a refusal", "TestPostClassifies"}, {"a call that says nothing did nothing", "TestACallThatSaysNothingMayHaveHappened"}}},
	{what: "A container was frozen between its decision and the wire. Its insert left when the winner's record had expired and was gone, and its condition held",
		beyond: "a try leaves after its own deadline", mutants: []dies{{"a request that was frozen leaves after its deadline", "TestAFrozenRequestNeverLeaves"}}},
	{what: "A settlement that met contention was made again by another call to the provider, and used up the message's attempts",
		planted: []string{"what can't be settled is given back for another call", "a call that never left counts as an attempt"}},
	{what: "A slow reply about an older encryption key replaced the tenant's newer one; after an erasure it brought the erased key back",
		mutants: []dies{{"an older key that is read late is current again", "TestASlowReplyBringsNoOlderKeyBack"}, {"an erasure is forgotten for a reply that is late", "TestAnErasureIsNotForgottenForASlowReply"}}},
	{what: "A message of a topic that this release does not know failed its stream record: it was tried again in front of all other tenants' messages",
		beyond: "a message of another release is judged", mutants: []dies{{"another release's message stops its worker", "TestAMessageOfAnotherReleaseStopsNobody"}}},
	{what: "Operation ids held an unsalted hash of tenant, operation and key, and went to the provider and the logs: guessable keys could be tested against them",
		mutants: []dies{{"records are named without the secret", "TestAGuessedKeyIsConfirmedByAnOperationIDOnlyWithoutASecret"}}},
	{what: "A sealed row opened beside another status, and a value in the open was taken in the place of a sealed one",
		mutants: []dies{{"a response opens beside another status", "TestAResponseOpensOnlyBesideItsStateAndStatus"}, {"a payload in the open takes a sealed one's place", "TestAPayloadInThePlaceOfASealedOneIsNotDelivered"}, {"an answer in the open is taken where all is sealed", "TestSealedOnlyRefusesAnAnswerInTheOpen"}}},
	{what: "A delivery was kept on a message, and then a decline came by webhook: the client was told 402, charged, and nobody heard of it",
		planted: []string{"a decline settles what is kept as delivered"}},
	{what: "At a provider without keys the first attempt's decline was frozen. The second attempt charged, and then the decline settled the message: failed, and charged",
		planted: []string{"a decline settles from any attempt"}},
	{what: "A probe freed a wrapped record. Its holder's 201 came before the retry and was refused, and the retry executed again",
		planted: []string{"a completion does not settle from freed"}},
	{what: "Observe mode stored that running again was safe, and an instance that enforces took the record over: two charges",
		planted: []string{"observe mode stores permission"}},
	{what: "Observe mode gave a wrapped handler no operation id. Its write was looked up, found absent, and its key was freed; and a duplicate that had been executed beside such a record left no trace. The next release, which enforced, executed the retry: two charges",
		planted: []string{"what was observed permits"}, mutants: []dies{{"an observed handler does not know its operation id", "TestAnObservedHandlerKnowsTheOperationIDOfItsRecord"}}},
	{what: "A person found nothing under the operation id of an observed record that was unknown, and released it. A duplicate had paid beside it, under another id. The release took away the mark that only observe mode had executed, and the next release, which enforced, executed the retry: two charges",
		planted: []string{"proof about an observed record is proof about what ran beside it"}, mutants: []dies{{"proof about an observed record is proof about what ran beside it", "TestWhatWasObservedPermitsNobodyWhoEnforces"}, {"an observed answer is taken out of use", "TestAnObservedAnswerIsNotTakenOutOfUse"}}},
	{what: "A tenant's key was erased while its message was pending: nobody could close, settle or redrive it, and it stayed for ever",
		mutants: []dies{{"what nobody can open is called", "TestAMessageOfAnErasedTenantEndsDead"}}},
	{what: "One's own reserve, met as a conflict, counted as another's: the right to a new key was given back though the key was used",
		planted: []string{"one's own reserve is another's", "a right goes back though its reserve stands"}},
	{what: "After a restore, messages were called again that had been called before the loss; a webhook about a message that was gone was acknowledged, and never came again",
		beyond: "what was restored counts as never called", mutants: []dies{{"what was restored counts as never called", "TestARestoredMessageCountsAsCalled"}, {"a webhook about a message that is gone is done with", "TestWebhookForAMessageThatIsNotThereIsNotAcknowledged"}}},
	{what: "A queue handed a wake-up out again while its delivery lived, until it lay among the dead letters",
		mutants: []dies{{"a wake-up that is served is handed out again", "TestADeliveryThatGoesOnKeepsItsWakeUp"}}},
	{what: "An instance whose clock was ahead executed while another still promised a replay by `Idempotency-Expires`",
		planted: []string{"a key is free on the instant of its expiry"}},
	{what: "An older release wrote a whole row anew, and dropped what a later one had added to it",
		mutants: []dies{{"what a later release added to a record is dropped", "TestAttributesOfALaterReleaseAreCarriedThrough"}, {"what a later release added to a message is dropped", "TestAttributesOfALaterReleaseAreCarriedThroughInMessages"}}},
	{what: "A commit was late. Its resend lost an optimistic lock, the handler ran again and failed, and the client was told so; then the lock was back, and the first commit landed",
		planted: []string{"nothing happened is told while bytes are loose"}},
	{what: "A caller of the client in Python fell back to another host while it handled the first one's certificate error. The reply of the second was lost, and the error said that nothing had been sent: under a new key it was a second charge",
		mutants: []dies{{"what the caller was handling says what became of a request", "TestThePythonPackageKeepsTheSharedRules"}}},
	{what: "net/http sent a POST without a body again on its own, because the connection that it had reused broke. A gateway answered the second one with 401, and the client in Go took that for the answer to all that was ever sent",
		mutants: []dies{{"what net/http sent again counts as sent once", "TestAnAnswerToWhatNetHTTPSentAgainIsNoProofThatNothingHappened"}, {"a certificate that fails when net/http sends again proves that nothing was sent", "TestAnAnswerToWhatNetHTTPSentAgainIsNoProofThatNothingHappened"}}},
	{what: "A transport that calls no hooks of net/http/httptrace, such as an adapter of another HTTP library, sent a call and lost its answer. The call counted as never sent and was made again: two charges at a provider without keys",
		mutants: []dies{{"what a transport without hooks sent was never sent", "TestWhatATransportOfAnotherLibrarySentIsNotNeverSent"}}},
	{what: "After a loss of records observe mode answered every new key with 503, though it promises to refuse no request",
		mutants: []dies{{"an observed request is refused after a loss of records", "TestObserveRefusesNothingAfterALossOfRecords"}}},
	{what: "`idemctl apikey create --test` said that its key moves no money. It was a key like any other, and charged the provider of a production stage",
		mutants: []dies{{"a test key is taken where none is", "TestATestKeyIsRefusedWhereNoneIsTaken"}}},
	{what: "The example for echo let echo answer a handler's error, which happens when every middleware has ended: each refused or failed request was answered, stored and replayed as an empty 200",
		mutants: []dies{{"echo answers a returned error when the protection is over", "TestAnOrderIsPaidOnce"}, {"an answer that comes too late is not told", "TestAnAnswerAfterTheHandlerHasReturnedIsTold"}}},
	{what: "The example for gin had the paying handler in the router for everything else, too. http.ServeMux took `/orders/17%2Fpay` for another route, gin for `/orders/17/pay`: it paid without a key, and for anybody",
		mutants: []dies{{"a protected handler of gin is in front of the protection, too", "TestAnOrderIsPaidOnce"}, {"a protected router may be behind an exempt wildcard", "TestRouterFailsAtStartUp"}}},
	{what: "A shop's machine started with its date three days ahead, and its clock was set later. The clients took the key that its journal had for young until three days had passed: they sent it when the server's record was gone, and it executed again",
		mutants: []dies{{"a key from the future is young", "TestAKeyFromTheFutureIsNotSent"}, {"a key from the future is young to the client in Python", "TestThePythonPackageKeepsTheSharedRules"}}},
	{what: "Something between a probe and the provider dropped the look-up's key: of the list of all charges another tenant's settled a payment as succeeded that was never charged",
		mutants: []dies{{"a probe takes another key's object", "TestProbeJudgesTheAnswer"}, {"a lost operation is made of another key's object", "TestAnOperationIsMadeOfNoObjectOfAnotherKey"}}},
	{what: "A provider answered 201 with an object that it was still processing, or had declined. The client was told that the payment had succeeded, or the payout was made in spite of its screening",
		mutants: []dies{{"a 2xx is a success, whatever its object says", "TestAnAnswerWhoseObjectSaysSomethingElseIsAmbiguous"}, {"an answer that contradicts itself is evidence", "TestAnAnswerThatContradictsItselfIsAmbiguous"}}},
	{what: "Tables were made anew two days after a loss. The objects of lost payments were taken for ones that had expired: nobody listed them, and a client was charged for a payment that nobody made again",
		mutants: []dies{{"what a loss has taken is old enough to have expired", "TestWhatALossHasTakenIsMissingHoweverOldItIs"}}},
	{what: "After a restore a transfer's row could not be put back, and its accounts were corrected by the rows without it: the payer had its money again, and its client was told 201 for ever",
		mutants: []dies{{"an account is corrected by rows that lack a transfer", "TestNoAccountIsCorrectedByRowsThatLackATransferOfIt"}, {"one account is corrected whatever transfers lack their rows", "TestOneAccountIsNotCorrectedWhileATransferOfItHasNoRow"}}},
	{what: "A shop in TypeScript made each order's body in one Buffer of Node's, and began the next order before the first had left: the client's copy was a view, so both requests had the second order's bytes under two keys. One order was placed twice, the other one never",
		mutants: []dies{{"a Buffer's bytes are the caller's to change", "TestTheTypeScriptPackageKeepsTheSharedRules"}}},
	{what: "Two callers began one operation, and the first one's look was before the second one's entry, which took the file journal's last place. The first one counted, and was told that the operation has no entry and was not sent; under a new name or key it was a second charge",
		mutants: []dies{{"a journal that is full has no entry", "TestAJournalThatIsFilledWithTheOperationHasItsEntry"}}},
	{what: "Two callers of one operation got its decline. One ended the operation, and the customer's other card began the next one under the same name, whose reply was lost. Then the other caller ended the operation, by its name alone: the next one's entry was removed, and its next call had a new key and charged again",
		mutants: []dies{{"a late end is that of the next operation", "TestALateDoneLeavesTheNextOperation"}, {"a late end is that of the next operation in memory", "TestALateDoneLeavesTheNextOperation"}, {"a late end is that of the next operation to the client in TypeScript", "TestTheTypeScriptPackageKeepsTheSharedRules"}, {"a late end is that of the next operation to the client in Python", "TestThePythonPackageKeepsTheSharedRules"}}},
	{what: "A shop that was built as the guide says kept an order's answer, forgot its key, and died before it had acknowledged the job; or the queue delivered the job twice. The name had no key any more: the job placed a second order",
		mutants: []dies{{"an order whose answer is kept is placed again", "TestAJobThatComesAgainAfterItsAnswerIsKeptOrdersNothing"}}},
	{what: "A shop that was built as the guide says took the 401 of a token that was over for an order's answer: it kept \"Unauthorized\", forgot the key, and the order was lost. Of an answer that broke off while it was read it did not say that the order may have been placed",
		mutants: []dies{{"any answer decides about an order", "TestWhatDecidesNothingIsNotKept"}, {"an answer that breaks off says nothing of its order", "TestWhatBreaksOffMayHaveBeenPlaced"}}},
	{what: "A process was frozen with its lease at hand, before its wrapped handler had started. The operation was parked, found absent and freed, and the retry charged; then the process woke up and its handler charged a second time",
		mutants: []dies{{"a handler starts however long its process was frozen before it", "TestAHandlerThatIsFrozenBeforeItStartsDoesNotStart"}, {"a freeze after the clock was read gives a handler more time", "TestAFreezeAfterTheClockWasReadGivesAHandlerNoTime"}}},
	{what: "A worker had read that nothing was lost, and was frozen. Another one called a message, the data was lost and restored from before that, and an operator said so; then the first one woke up, read the message, and charged a second time. A reconciler that was frozen in its probe offered such a message anew",
		mutants: []dies{{"a worker that was frozen before it read a message goes by what it knew", "TestTheRowIsHeededAfterAFreezeBeforeTheMessageIsRead"}, {"a reconciler that was frozen in its probe goes by what it knew", "TestAbsenceBeforeTheLossProvesNothing"}, {"absence is dated by when it is written", "TestAbsenceIsDatedByItsQuestion"}}},
}

const faultsPage = `# Faults that were found once, and what finds them now
Reviews of the whole protocol found %d sequences of events in which an effect happened twice, or
what had happened was lost. Each was cured with a test. This page says for each what would find it
today if it came back.

- **A rule, taken out**: the real engine and workers run without one rule of the protocol, and the
  simulator plays stories, without a hint, until one breaks a promise. The row says which story, how
  many simulated calls were made until then, and how long the story is once it is made as short as
  possible. ` + "`make test`" + ` plays each of them again.
- **A change, made on purpose**: ` + "`make mutants`" + ` writes the fault into the code, and the test of that
  name fails.
- **Explored**: a rule that the checker takes out of the protocol's machines in the scenario of that
  name, because it guards more than this, and stories find it by another promise.
- **Beyond**: a rule that the checker takes out, and that no story of the simulator can show.

A test compares this page with the stories, the changes and the tests.

| | what happened | what finds it now |
|---|---|---|
`

// TestFaultsPageSaysWhatFindsThem holds docs/verify/faults.md against the stories that found planted rules, the listed mutants, and the
// tests that there are.
func TestFaultsPageSaysWhatFindsThem(t *testing.T) {
	stories, scenarios, tests, listed := planted(t), explored(t), testNames(t), map[string]bool{}
	for _, m := range Listed() {
		listed[m.Name] = m.Survives == ""
	}
	var page strings.Builder
	fmt.Fprintf(&page, faultsPage, len(faults))
	for i, f := range faults {
		var finds []string
		for _, name := range f.planted {
			story, ok := stories[name]
			if !ok {
				t.Errorf("fault %d: no story finds the rule %q", i+1, name)
			}
			finds = append(finds, fmt.Sprintf("without the rule (*%s*) %s", name, story))
		}
		if f.beyond != "" {
			if _, ok := stories[f.beyond]; ok {
				t.Errorf("fault %d: a story does find %q", i+1, f.beyond)
			}
			finds = append(finds, fmt.Sprintf("beyond the simulator: *%s*; the checker finds it", f.beyond))
		}
		if f.explored != "" {
			scenario, ok := scenarios[f.explored]
			if !ok {
				t.Errorf("fault %d: nothing breaks without %q in the checker's table", i+1, f.explored)
			}
			finds = append(finds, fmt.Sprintf("explored without the rule (*%s*) %s", f.explored, scenario))
		}
		for _, d := range f.mutants {
			if !listed[d.mutant] || !tests[d.by] {
				t.Errorf("fault %d: the mutant %q is listed to die: %v; %s exists: %v", i+1, d.mutant, listed[d.mutant], d.by, tests[d.by])
			}
			finds = append(finds, fmt.Sprintf("the change *%s*: `%s`", d.mutant, d.by))
		}
		if len(f.planted) == 0 && f.explored == "" && len(f.mutants) == 0 {
			t.Errorf("fault %d: nothing finds it", i+1)
		}
		fmt.Fprintf(&page, "| %d | %s | %s |\n", i+1, f.what, strings.Join(finds, "; "))
	}
	path := filepath.Join(root, "docs/verify/faults.md")
	got, err := os.ReadFile(path)
	switch {
	case *update:
		err = os.WriteFile(path, []byte(page.String()), 0o644)
	case err == nil && string(got) != page.String():
		err = fmt.Errorf("%s differs; go test ./localstack/mutants -run TestFaultsPage -update writes it", path)
	}
	if err != nil {
		t.Error(err)
	}
}

var plantedRow = regexp.MustCompile(`(?m)^(\S.*)\n    seed (\d+), after (\d+) steps, (\d+) faults in (\d+) lines: `)

// planted says which story found each rule that was removed.
func planted(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "idem/sim/testdata/planted.txt"))
	if err != nil {
		t.Fatal(err)
	}
	stories := map[string]string{}
	for _, row := range plantedRow.FindAllStringSubmatch(string(text), -1) {
		stories[row[1]] = fmt.Sprintf("the story of seed %s breaks, after %s calls; it has %s lines", row[2], thousands(t, row[3]), row[5])
	}
	return stories
}

var exploredRow = regexp.MustCompile(`(?m)^(\S.*) \[[^]]+\]\n    (\S.*): (\S.*), in \d+ steps$`)

// explored says in which scenario the checker finds each rule that it took out.
func explored(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "idem/protocol/check/testdata/table.txt"))
	if err != nil {
		t.Fatal(err)
	}
	scenarios := map[string]string{}
	for _, row := range exploredRow.FindAllStringSubmatch(string(text), -1) {
		scenarios[row[1]] = fmt.Sprintf("the scenario *%s* breaks: %s", row[2], row[3])
	}
	return scenarios
}

func thousands(t *testing.T, digits string) string {
	t.Helper()
	n, err := strconv.Atoi(digits)
	if err != nil {
		t.Fatal(err)
	}
	if n < 1000 {
		return digits
	}
	return thousands(t, strconv.Itoa(n/1000)) + fmt.Sprintf(",%03d", n%1000)
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t? ?\*testing\.T\)`)

// testNames are the tests of the library, the functions and the examples.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, directory := range []string{"idem", "functions", "docs/examples"} {
		err := filepath.WalkDir(filepath.Join(root, directory), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, f := range testFunction.FindAllStringSubmatch(string(text), -1) {
				names[f[1]] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}
