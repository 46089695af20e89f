package logview

import (
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
)

// crash is what the Go runtime writes when a function dies.
const crash = `panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x6f2a11]

goroutine 20 [running]:
main.inserted.func1({0x9e1d48, 0xc0000a6000}, 0xc00011e2d0)
	/build/functions/worker/main.go:52 +0x3a
github.com/idem-go/idem-aws/idem/awslambda.Stream.Inserted.func1({0x9e1d48, 0xc0000a6000}, {0x0, 0x0, 0x0})
	/build/idem/awslambda/image.go:31 +0x1d
github.com/idem-go/idem-aws/idem/awslambda.(*batch).one(0xc0001a2000, 0x3)
	/build/idem/awslambda/batch.go:120 +0x6f
github.com/idem-go/idem-aws/idem/awslambda.(*batch).run.func1()
	/build/idem/awslambda/batch.go:98 +0x45
created by github.com/idem-go/idem-aws/idem/awslambda.(*batch).run in goroutine 1
	/build/idem/awslambda/batch.go:96 +0x10e

goroutine 1 [IO wait]:
internal/poll.runtime_pollWait(0x7f1c2a0c8eb0, 0x72)
	/go/src/runtime/netpoll.go:351 +0x85
exit status 2`

var shownOfCrash = strings.Split(`12:00:00.000  -      worker      panic: runtime error: invalid memory address or nil pointer dereference
12:00:00.000  -      worker      [signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x6f2a11]
12:00:00.000  -      worker      
              goroutine 20 [running]:
              main.inserted.func1({0x9e1d48, 0xc0000a6000}, 0xc00011e2d0)
               /build/functions/worker/main.go:52 +0x3a
              github.com/idem-go/idem-aws/idem/awslambda.Stream.Inserted.func1({0x9e1d48, 0xc0000a6000}, {0x0, 0x0, 0x0})
               /build/idem/awslambda/image.go:31 +0x1d
              github.com/idem-go/idem-aws/idem/awslambda.(*batch).one(0xc0001a2000, 0x3)
               /build/idem/awslambda/batch.go:120 +0x6f
              github.com/idem-go/idem-aws/idem/awslambda.(*batch).run.func1()
              … worker: 7 more lines of the stack trace; RAW=1 shows them
12:00:00.000  -      worker      exit status 2`, "\n")

func TestACrashShowsItsReasonAndTheTopOfItsTrace(t *testing.T) {
	same(t, (&View{}).Round([]Entry{entry("worker", crash)}), shownOfCrash)
}

// An emulator may make an event of each line, and a round may end anywhere.
func TestATraceMayBeSpreadOverEntriesAndRounds(t *testing.T) {
	var entries []Entry
	for _, text := range strings.Split(crash, "\n") {
		entries = append(entries, entry("worker", text))
	}
	same(t, (&View{}).Round(entries), shownOfCrash)
	view, told := &View{}, 0
	for _, e := range entries {
		for _, line := range view.Round([]Entry{e}) {
			if strings.Contains(line, "1 more lines of the stack trace") {
				told++
			}
		}
	}
	if told != 7 {
		t.Errorf("%d hidden lines were told of, want 7", told)
	}
}

func TestATraceHidesNoLineOfAnotherFunctionAndNoneAfterIt(t *testing.T) {
	got := (&View{}).Round([]Entry{
		entry("worker", "goroutine 20 [running]:"), entry("api", "main.text()"), entry("worker", strings.Repeat("main.call()\n", 10)+"fatal: out of memory"),
		entry("worker", "main.text()"),
	})
	text := strings.Join(got, "\n")
	for _, want := range []string{"api         main.text()", "worker: 3 more lines", "worker      fatal: out of memory", "worker      main.text()"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// Each line of a trace that this runtime writes is taken for one.
func TestEveryLineOfARealTraceIsAFrame(t *testing.T) {
	lines := strings.Split(string(debug.Stack()), "\n")
	if !isTrace(lines[0]) || len(lines) < 5 {
		t.Fatalf("%q", lines)
	}
	for _, text := range lines[1:] {
		if !isFrame(text) {
			t.Errorf("%q", text)
		}
	}
}

func TestTheTraceOfAJSONLineStandsBelowIt(t *testing.T) {
	got := (&View{}).Round([]Entry{entry("api", `{"level":"ERROR","msg":"handler panicked","error":"index out of range","stack":`+
		fmt.Sprintf("%q", "goroutine 1 [running]:\n"+strings.Repeat("main.call()\n", 9))+`}`)})
	want := []string{"12:00:00.000  ERROR  api         -                     handler panicked  error=index out of range", "              goroutine 1 [running]:"}
	for range traceLinesMax - 1 {
		want = append(want, "              main.call()")
	}
	same(t, got, append(want, "              … api: 2 more lines of the stack trace; RAW=1 shows them"))
}
