package stack

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/emulator"
)

// crashes is a test of a hundred thousand runs, each in one goroutine: the race detector would find nothing there, and take
// minutes for it.
const crashes = "^TestCrashAtEveryCall$"

// A check cuts off every call, and of the cuts that may follow one of them it plays every n-th: of the application's, and of the
// library's in simulated time. So does it with explorations of the protocol that the checkout has a table of.
const (
	cutsPlayed    = 8 // of the application and of the library alike
	exploredAgain = 4
)

// seedsApart is how far the first seeds of two commits are from each other: more than a check plays stories.
const seedsApart = 100_000

// stories are simulated, and stepsLeast is how many calls to the store and the provider a check simulates in them. planted are those
// that find a rule which was removed. simulated are stories of the payments application.
const (
	simulated  = "^TestSimulatedStories$"
	stories    = "^(TestStories|TestEveryKindSurvivesACutAtEveryCallAndThenAnother)$"
	stepsLeast = "1000000"
	planted    = "^TestPlanted"
)

// alike compares DynamoDB with the reference store, in stories that differ for each commit: in a check alikeStories of them.
const (
	alike        = "^TestAnswersAsTheReferenceStoreDoes$"
	alikeStories = 9
)

// otherPrograms are tests in which other programs do the work: the race detector sees nothing of clients that are not Go, and of
// shells.
const otherPrograms = "^TestThe(TypeScript|Python)Package|" + inTerminal

// isolation are measurements of time, which are made where less runs beside them.
const isolation = "ThatHangAreTheirTenantsAlone$"

// oneGoroutine are tests that compute for seconds in one goroutine, as with megabytes to encrypt: there is no race to find. Under the
// detector they took a third of all its time.
const oneGoroutine = "^Test(ContractOnDynamoDB|StoredBytesHoldNoPlaintext|TheReferenceStoreDoesWhatTheCheckerExplores" +
	"|AnswersAsTheReferenceStoreDoes|Sequences|TheOnlyEvidenceIsSentForAsLongAsTheProcessLives|ListGoesOnWhereItEnded" +
	"|StateDiagramsShowEveryTransition|PublicPackagesAreDocumentedForTheirReaders|PublicPackagesSayWhomTheyAreFor)$"

// calm is the environment of tests that allocate much and keep little: the collector would take a third of their time.
var calm = []string{"GOGC=400"}

// storeTests are the packages whose tests the second DynamoDB emulator has something to say about: the contract of the store, of
// quotas, of sealed records and of the application's own rows.
var storeTests = []string{"./idem/dynamo", "./idem/seal", "./idem/cache", "./idem/quota/dynamoquota", "./functions/internal/apikey", "./functions/internal/payments"}

// library is the part of the library's module that its users import. fullSize are its packages whose tests the race detector
// gets at a smaller size, or not at all: they run without it as well.
const library = "./idem/..."

var fullSize = []string{"./idem", "./idem/outbox", "./idem/dynamo", "./idem/client", "./idem/operator", "./idem/operator/idemctl", "./idem/seal", "./idem/memstore"}

// sequential are the packages of the library in which one goroutine does everything: the race detector does not see them at all.
var sequential = []string{"./idem/canonical", "./idem/protocol/...", "./idem/scaffold", "./idem/sim"}

// fast is told in the comment of Fast.
func (c *Check) fast(ctx context.Context) error {
	own := packages(".", "functions")
	return errors.Join(
		c.Out.Step("gofmt", func() error { return c.formatted(ctx) }),
		c.Out.Step("go vet of the library and the functions", func() error {
			return emulator.Run(ctx, c.Root, nil, "go", append([]string{"vet"}, own...)...)
		}),
		c.test(ctx, "tests of the library and the functions, in memory and on dynoxide", testRun{
			environment: calm, arguments: append([]string{"-short", "-p", "4", "-skip", crashes + "|" + isolation + "|" + otherPrograms}, own...),
		}),
	)
}

// unit runs the tests of every module but the CDK app's, the store's against every DynamoDB emulator that is installed. The
// library's own run under the race detector, and are not repeated here where that is so: see race.
func (c *Check) unit(ctx context.Context) error {
	others := crashes + "|" + stories + "|" + simulated
	if !emulator.MkDocsTool().Installed(c.Root) {
		c.leaveOut("the documentation site (it needs Python 3.11)")
		others += "|^TestSite"
	}
	switch err := c.postgresql(ctx); {
	case errors.Is(err, localtool.ErrNoPostgreSQL):
		c.leaveOut("the store on PostgreSQL (" + err.Error() + ")")
		others += "|" + onPostgreSQL
	case err != nil:
		return err
	}
	missing, err := c.terminal(ctx)
	if err != nil {
		return err
	}
	for _, m := range missing {
		c.leaveOut(m.reads + " (" + m.program + " is not installed)")
		others += "|^" + m.test + "$"
	}
	if !c.Whole {
		others += "|" + alike
	}
	return c.test(ctx, "unit and store tests on dynoxide", testRun{
		environment: calm, arguments: append([]string{"-skip", others}, c.withoutDetector(ctx)...),
	})
}

// alike compares the stores in a commit's own stories. The whole has those of every seed from 0 that `go test` plays.
func (c *Check) alike(ctx context.Context) error {
	if c.Whole {
		return nil
	}
	from := c.number(ctx) * alikeStories
	return c.test(ctx, fmt.Sprintf("DynamoDB's store and the reference store in %d stories from seed %d", alikeStories, from), testRun{
		environment: calm,
		arguments:   []string{"-run", alike, "./idem/dynamo", "-alike.from", strconv.Itoa(from), "-alike.stories", strconv.Itoa(alikeStories)},
	})
}

// crashes cuts the application off at every call, in simulated time.
func (c *Check) crashes(ctx context.Context) error {
	return c.test(ctx, "the application, crashing at every call", testRun{
		environment: calm, arguments: append([]string{"-run", crashes, "./functions/internal/payments"}, c.part(ctx, "crash", cutsPlayed)...),
	})
}

// stories plays the library in simulated time, from seeds, and cut off at every call.
func (c *Check) stories(ctx context.Context) error {
	seed := c.firstSeed(ctx)
	return c.test(ctx, "stories of a million simulated calls from seed "+seed+", and cuts at every call", testRun{
		environment: calm,
		arguments: append([]string{"-run", stories, "./idem/sim", "-sim.steps", stepsLeast, "-sim.seed", seed, "-sim.deep", "2"},
			c.part(ctx, "sim", cutsPlayed)...),
	})
}

// simulated plays the application in simulated time, from seeds.
func (c *Check) simulated(ctx context.Context) error {
	seed := c.firstSeed(ctx)
	return c.test(ctx, "stories of the application in 200,000 simulated calls from seed "+seed, testRun{
		environment: calm, arguments: []string{"-run", simulated, "./functions/internal/payments", "-sim.steps", "200000", "-sim.seed", seed},
	})
}

// withoutDetector are the packages whose tests run without the race detector.
func (c *Check) withoutDetector(ctx context.Context) []string {
	modules := unitModules()
	if c.Whole || !detects(ctx) {
		return packages(modules...)
	}
	others := slices.DeleteFunc(modules, func(module string) bool { return module == "." })
	return slices.Concat(fullSize, sequential, []string{"./internal/..."}, packages(others...))
}

// part says which of many like ones a check plays: all, or every n-th, and other ones for each commit.
func (c *Check) part(ctx context.Context, of string, n int) []string {
	if c.Whole {
		return nil
	}
	return []string{"-" + of + ".every", strconv.Itoa(n), "-" + of + ".skipped", strconv.Itoa(c.number(ctx) % n)}
}

// firstSeed is the seed of the first story that a check plays: each commit plays other stories, and the same commit the same ones.
func (c *Check) firstSeed(ctx context.Context) string {
	return strconv.Itoa(c.number(ctx) * seedsApart)
}

// number is of the commit that is checked: what differs between checks goes by it.
func (c *Check) number(ctx context.Context) int { return commits(ctx, c.Root) + c.Ahead }

// commits is how many lead to the checkout; 0 where it has no history.
func commits(ctx context.Context, root string) int {
	command := exec.CommandContext(ctx, "git", "rev-list", "--count", "HEAD")
	command.Dir = root
	output, err := command.Output()
	if err != nil {
		return 0
	}
	count, _ := strconv.Atoi(strings.TrimSpace(string(output)))
	return count
}

// dynamoDBLocal runs the store's tests on AWS's own emulator, where the commit has their turn. All packages share one: Java takes seconds to start, and more until it
// is quick.
func (c *Check) dynamoDBLocal(ctx context.Context) error {
	if !c.hasTurn(ctx, "store tests on "+localtool.DynamoDBLocal, storesOnLocal...) {
		return nil
	}
	if !emulator.DynamoDBLocalTool().Installed(c.Root) {
		c.leaveOut("store tests on DynamoDB Local (they need Java 17 and Maven)")
		return nil
	}
	tested := append([]string{"-short"}, storeTests...)
	if c.Whole {
		tested = packages(unitModules()...)
	}
	endpoint, err := localtool.Open(ctx, localtool.DynamoDBLocal)
	if err != nil {
		return err
	}
	defer endpoint.Stop()
	return c.test(ctx, "store tests on "+localtool.DynamoDBLocal, testRun{
		environment: append([]string{"IDEM_STORE_ENDPOINTS=" + endpoint.URL}, calm...),
		arguments:   append([]string{"-skip", crashes + "|" + simulated + "|" + inTerminal}, tested...),
	})
}

// race runs the library's tests with the race detector, the longest of them at a smaller size, because it is ten times as slow.
// The detector needs a C compiler.
func (c *Check) race(ctx context.Context) error {
	if !detects(ctx) {
		c.leaveOut("the race detector (it needs gcc)")
		return nil
	}
	seen, err := c.concurrent(ctx)
	if err != nil {
		return err
	}
	arguments := append([]string{"-race", "-short", "-skip", otherPrograms + "|" + oneGoroutine}, seen...)
	if c.Whole {
		arguments = append([]string{"-race", "-skip", crashes + "|" + inTerminal}, packages(unitModules()...)...)
	}
	return c.test(ctx, "tests with the race detector", testRun{environment: calm, arguments: arguments})
}

// concurrent are the library's packages that the race detector sees.
func (c *Check) concurrent(ctx context.Context) ([]string, error) {
	all, err := c.list(ctx, library)
	if err != nil {
		return nil, err
	}
	others, err := c.list(ctx, sequential...)
	return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(others, name) }), err
}

// list names the packages of the patterns.
func (c *Check) list(ctx context.Context, patterns ...string) ([]string, error) {
	command := exec.CommandContext(ctx, "go", append([]string{"list"}, patterns...)...)
	command.Dir = c.Root
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", strings.Join(patterns, " "), err)
	}
	return strings.Fields(string(output)), nil
}

// detects says whether the race detector runs here.
func detects(ctx context.Context) bool {
	return exec.CommandContext(ctx, "gcc", "--version").Run() == nil
}
