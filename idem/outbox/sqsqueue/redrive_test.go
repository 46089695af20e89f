package sqsqueue_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/sqsqueue"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

type testCredentials struct{}

func (testCredentials) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
}

// pair is a queue of wake-ups with its dead-letter queue, on an emulator.
type pair struct {
	*sqsqueue.Queue
	client        *sqs.Client
	wakeUps, dead string
	// broken, where set, is an API call that gets no answer.
	broken atomic.Pointer[string]
}

var pairs atomic.Int64

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{}
	n := pairs.Add(1)
	p.client = newClient(dynamotest.Endpoint(t, dynamotest.Ministack), func(o *sqs.Options) {
		o.RetryMaxAttempts, o.HTTPClient = 1, breaking{p, o.HTTPClient}
	})
	for name, url := range map[string]*string{"wake-ups": &p.wakeUps, "dead": &p.dead} {
		out, err := p.client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(fmt.Sprintf("%s-%d", name, n))})
		if err != nil {
			t.Fatal(err)
		}
		*url = text(out.QueueUrl)
	}
	var err error
	if p.Queue, err = sqsqueue.New(p.client, p.wakeUps, p.dead); err != nil {
		t.Fatal(err)
	}
	return p
}

// breaking loses the requests of one API call.
type breaking struct {
	*pair
	next sqs.HTTPClient
}

func (b breaking) Do(r *http.Request) (*http.Response, error) {
	if call := b.broken.Load(); call != nil && strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+*call) {
		return nil, errors.New("connection reset")
	}
	return b.next.Do(r)
}

// put fills the dead-letter queue with bodies that a tenant's group, or none, brought.
func (p *pair) put(t *testing.T, group string, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		in := &sqs.SendMessageInput{QueueUrl: &p.dead, MessageBody: &body}
		if group != "" {
			in.MessageGroupId = &group
		}
		if _, err := p.client.SendMessage(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
}

// drain takes everything out of a queue of wake-ups.
func (p *pair) drain(t *testing.T, url string) map[idem.MessageID]types.Message {
	t.Helper()
	all := map[idem.MessageID]types.Message{}
	for {
		out, err := p.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: &url, MaxNumberOfMessages: 10,
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			return all
		}
		for _, m := range out.Messages {
			woken, err := sqsqueue.Read(text(m.Body))
			if err != nil {
				t.Fatal(err)
			}
			if _, twice := all[woken]; twice {
				t.Errorf("%s is there twice", woken)
			}
			all[woken] = m
			if _, err := p.client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What Lambda writes for a batch of stream records that it gives up.
const (
	lambdaFailure = `{"requestContext":{"requestId":"316aa6d0","functionArn":"arn:aws:lambda:us-east-1:000000000000:function:worker",` +
		`"condition":"RetryAttemptsExhausted","approximateInvokeCount":6},"responseContext":{"statusCode":200,"executedVersion":"$LATEST"},` +
		`"version":"1.0","timestamp":"2026-11-21T12:00:00.000Z","DDBStreamBatchInfo":{"shardId":"shardId-1","startSequenceNumber":"100",` +
		`"endSequenceNumber":"102","approximateArrivalOfFirstRecord":"2026-11-21T11:59:00Z","approximateArrivalOfLastRecord":"2026-11-21T11:59:00Z",` +
		`"batchSize":3,"streamArn":"arn:aws:dynamodb:us-east-1:000000000000:table/outbox/stream/2026-11-21T00:00:00.000"}}`
	letterOfDead = `{"message":"` + string(id) + `","topic":"payments.charge","reason":"attempts over","open":true,"attempts":10}`
	lateWakeUp   = `{"message":"` + string(id) + `"}`
)

var strangers = []string{"", "null", "7", "[]", "{}", `{"message":"op_1"}`, `{"topic":"payments.charge"}`, "hello"}

// outcomes counts a report's letters by kind and action.
func outcomes(r sqsqueue.RedriveReport) map[string]int {
	counts := map[string]int{}
	for _, l := range r.Letters {
		counts[string(l.Kind)+" "+string(l.Action)]++
	}
	return counts
}

func want(t *testing.T, r sqsqueue.RedriveReport, counts map[string]int) {
	t.Helper()
	if got := outcomes(r); !maps.Equal(got, counts) {
		t.Errorf("got %v, want %v", got, counts)
	}
}

func never(context.Context, outbox.DeadLetter, bool) error { return errors.New("never") }

// All kinds at once: looked at, redriven, and redriven again, when only what nobody knows is there.
func TestRedriveTwice(t *testing.T) {
	p := newPair(t)
	p.put(t, "", letterOfDead, lambdaFailure)
	p.put(t, "tenant-a", lateWakeUp)
	p.put(t, "", strangers[1:]...) // SQS takes no empty body
	unknown := len(strangers) - 1

	for range 2 {
		looked, err := p.Redrive(t.Context(), sqsqueue.RedriveOptions{DryRun: true}, nil)
		if err != nil || looked.More {
			t.Fatal(looked.More, err)
		}
		want(t, looked, map[string]int{"dead_message left": 1, "stream_failure left": 1, "wake_up left": 1, "unknown_body left": unknown})
	}
	var asked []outbox.DeadLetter
	redrive := func(_ context.Context, letter outbox.DeadLetter, _ bool) error {
		asked = append(asked, letter)
		return nil
	}
	report, err := p.Redrive(t.Context(), sqsqueue.RedriveOptions{}, redrive)
	if err != nil {
		t.Fatal(err)
	}
	want(t, report, map[string]int{"dead_message redriven": 1, "stream_failure acknowledged": 1, "wake_up redriven": 1, "unknown_body left": unknown})
	if !slices.Equal(asked, []outbox.DeadLetter{{Message: id, Topic: "payments.charge", Reason: "attempts over", Open: true, Attempts: 10}}) {
		t.Errorf("asked about %+v", asked)
	}
	details(t, report)
	woken := p.drain(t, p.wakeUps)
	if m, ok := woken[id]; len(woken) != 1 || !ok || m.Attributes["MessageGroupId"] != "tenant-a" {
		t.Errorf("woken %v", woken)
	}

	again, err := p.Redrive(t.Context(), sqsqueue.RedriveOptions{}, never)
	if err != nil {
		t.Fatal(err)
	}
	want(t, again, map[string]int{"unknown_body left": unknown})
	if woken := p.drain(t, p.wakeUps); len(woken) != 0 {
		t.Errorf("woken again: %v", woken)
	}
}

func details(t *testing.T, report sqsqueue.RedriveReport) {
	t.Helper()
	found := map[string]bool{}
	for _, l := range report.Letters {
		found[l.Detail] = true
		if l.ID == "" || l.SentAt.IsZero() || l.Error != "" {
			t.Errorf("%+v", l)
		}
		if about := l.Kind == sqsqueue.LetterDeadMessage || l.Kind == sqsqueue.LetterWakeUp; (l.Message == id) != about {
			t.Errorf("%s is about %q", l.Kind, l.Message)
		}
	}
	for _, detail := range []string{"attempts over", "RetryAttemptsExhausted: 3 records of shard shardId-1, 100 to 102"} {
		if !found[detail] {
			t.Errorf("no letter says %q", detail)
		}
	}
}

// The letter of a message that has expired goes, and is not said to be redriven.
func TestALetterWhoseMessageIsGoneIsSaidToBeGone(t *testing.T) {
	p := newPair(t)
	p.put(t, "", letterOfDead)
	gone := func(context.Context, outbox.DeadLetter, bool) error {
		return fmt.Errorf("op: %w", outbox.ErrMessageGone)
	}
	for _, counts := range []map[string]int{{"dead_message gone": 1}, {}} {
		report, err := p.Redrive(t.Context(), sqsqueue.RedriveOptions{}, gone)
		if err != nil {
			t.Fatal(err)
		}
		want(t, report, counts)
		for _, l := range report.Letters {
			if l.Message != id || l.Error != "" {
				t.Errorf("%+v", l)
			}
		}
	}
}

// A letter goes only after what it is about is safe without it: whatever call fails, the next run finds it.
func TestRedriveThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		broken  string
		redrive func(context.Context, outbox.DeadLetter, bool) error
		failed  map[string]int
	}{
		"refused":       {"", never, map[string]int{"dead_message failed": 1, "wake_up redriven": 1}},
		"can't wake":    {"SendMessage", succeed, map[string]int{"dead_message redriven": 1, "wake_up failed": 1}},
		"can't delete":  {"DeleteMessage", succeed, map[string]int{"dead_message failed": 1, "wake_up failed": 1}},
		"can't release": {"ChangeMessageVisibilityBatch", never, map[string]int{"dead_message failed": 1, "wake_up redriven": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			p.put(t, "", letterOfDead, lateWakeUp)
			p.broken.Store(&c.broken)
			report, err := p.Redrive(t.Context(), sqsqueue.RedriveOptions{Visibility: time.Second}, c.redrive)
			if err != nil {
				t.Fatal(err)
			}
			want(t, report, c.failed)
			left := 0
			for _, l := range report.Letters {
				if l.Action == sqsqueue.LetterFailed {
					left++
					if l.Error == "" {
						t.Errorf("%+v does not say why", l)
					}
				}
			}
			p.broken.Store(nil)
			finished := eventually(t, p, left)
			for _, l := range finished.Letters {
				if l.Action != sqsqueue.LetterRedriven {
					t.Errorf("%+v", l)
				}
			}
		})
	}
}

func succeed(context.Context, outbox.DeadLetter, bool) error { return nil }

// eventually runs until so many letters were dealt with: what a broken run could not give back comes after its visibility.
func eventually(t *testing.T, p *pair, letters int) sqsqueue.RedriveReport {
	t.Helper()
	var all sqsqueue.RedriveReport
	for end := time.Now().Add(time.Minute); len(all.Letters) < letters && time.Now().Before(end); {
		report, err := p.Redrive(t.Context(), sqsqueue.RedriveOptions{}, succeed)
		if err != nil {
			t.Fatal(err)
		}
		all.Letters = append(all.Letters, report.Letters...)
	}
	if len(all.Letters) != letters {
		t.Fatalf("%d letters, want %d: %+v", len(all.Letters), letters, all)
	}
	return all
}

// A redrive that can't settle what its message keeps buries the message again, into the queue that is being emptied: it is tried once a run,
// and leaves one letter.
func TestARedriveThatBuriesAgainLeavesOneLetter(t *testing.T) {
	p := newPair(t)
	p.put(t, "", letterOfDead, letterOfDead)
	tries := 0
	buries := func(context.Context, outbox.DeadLetter, bool) error {
		tries++
		p.put(t, "", letterOfDead)
		return errors.New("can't be settled")
	}
	for run := 1; run <= 2; run++ {
		report, err := p.Redrive(t.Context(), sqsqueue.RedriveOptions{Max: 20}, buries)
		if err != nil {
			t.Fatal(err)
		}
		want(t, report, map[string]int{"dead_message failed": 1, "dead_message repeated": 3 - run})
		if tries != run {
			t.Errorf("%d tries in %d runs", tries, run)
		}
	}
	want(t, eventually(t, p, 1), map[string]int{"dead_message redriven": 1})
}

// row is the message of letterOfDead as an operator's desk treats it.
type row struct {
	dead     bool
	redriven int
	// then is called after each redrive.
	then func()
}

var errDeadAgain = errors.New("it is dead again")

func (r *row) redrive(_ context.Context, _ outbox.DeadLetter, again bool) error {
	switch {
	case !r.dead:
		return nil
	case again:
		return errDeadAgain
	}
	r.dead, r.redriven = false, r.redriven+1
	if r.then != nil {
		r.then()
	}
	return nil
}

// A message that dies again as soon as it is redriven is redriven once in a run, also where older copies of its letter come after that. One
// letter of it stays, and says so.
func TestAMessageThatDiesAgainIsRedrivenOnceInARun(t *testing.T) {
	p := newPair(t)
	p.put(t, "", letterOfDead)
	p.put(t, "", slices.Repeat([]string{lambdaFailure}, 9)...)
	p.put(t, "", letterOfDead) // the older copy may come in the next batch
	message := row{dead: true}
	message.then = func() {
		p.put(t, "", letterOfDead)
		message.dead = true
	}
	for run, counts := range []map[string]int{
		{"dead_message redriven": 1, "dead_message failed": 1, "dead_message repeated": 1, "stream_failure acknowledged": 9},
		{"dead_message redriven": 1, "dead_message failed": 1},
	} {
		report, err := p.Redrive(t.Context(), sqsqueue.RedriveOptions{Max: 20}, message.redrive)
		if err != nil {
			t.Fatal(err)
		}
		want(t, report, counts)
		if message.redriven != run+1 {
			t.Errorf("redriven %d times in %d runs", message.redriven, run+1)
		}
		for _, l := range report.Letters {
			if l.Action == sqsqueue.LetterFailed && l.Error != errDeadAgain.Error() {
				t.Errorf("%+v", l)
			}
		}
	}
	want(t, eventually(t, p, 1), map[string]int{"dead_message redriven": 1})
}

// All letters of a message that is not dead any more go, whatever run received them first.
func TestLettersOfAMessageThatIsRedrivenGo(t *testing.T) {
	p := newPair(t)
	p.put(t, "", letterOfDead)
	if _, err := p.Redrive(t.Context(), sqsqueue.RedriveOptions{DryRun: true}, nil); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Millisecond) // the queue's clock goes on
	message := row{dead: true}
	message.then = func() { p.put(t, "", letterOfDead) } // it was on its way
	report, err := p.Redrive(t.Context(), sqsqueue.RedriveOptions{}, message.redrive)
	if err != nil {
		t.Fatal(err)
	}
	want(t, report, map[string]int{"dead_message redriven": 2})
	if message.redriven != 1 {
		t.Errorf("redriven %d times", message.redriven)
	}
}

// A run that takes longer than its letters are hidden for does not delete a further copy: another run may have taken the first letter for
// one, and deleted it.
func TestALongRedriveLeavesTheOnlyLetter(t *testing.T) {
	p := newPair(t)
	p.put(t, "", letterOfDead)
	opts := sqsqueue.RedriveOptions{Max: 20, Visibility: time.Second}
	report, err := p.Redrive(t.Context(), opts, func(ctx context.Context, _ outbox.DeadLetter, _ bool) error {
		time.Sleep(opts.Visibility + 200*time.Millisecond)
		first, err := p.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &p.dead, WaitTimeSeconds: 5})
		if err != nil || len(first.Messages) != 1 {
			t.Fatalf("the other run gets %v, %v", first, err)
		}
		if _, err := p.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &p.dead, ReceiptHandle: first.Messages[0].ReceiptHandle}); err != nil {
			t.Fatal(err)
		}
		p.put(t, "", letterOfDead)
		return errors.New("can't be settled")
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, report, map[string]int{"dead_message failed": 1, "dead_message left": 1})
	want(t, eventually(t, p, 1), map[string]int{"dead_message redriven": 1})
}

// A run is bounded, says so, and the next goes on.
func TestRedriveIsBounded(t *testing.T) {
	p := newPair(t)
	p.put(t, "", slices.Repeat([]string{lambdaFailure}, 14)...)
	for _, c := range []struct {
		letters int
		more    bool
	}{{11, true}, {3, false}, {0, false}} {
		report, err := p.Redrive(t.Context(), sqsqueue.RedriveOptions{Max: 11}, never)
		if err != nil || len(report.Letters) != c.letters || report.More != c.more {
			t.Errorf("%d letters, more %t, %v; want %+v", len(report.Letters), report.More, err, c)
		}
	}
}

// A run that is interrupted says what it did, and gives back the rest.
func TestRedriveThatIsInterrupted(t *testing.T) {
	p := newPair(t)
	p.put(t, "", slices.Repeat([]string{letterOfDead}, 4)...)
	ctx, cancel := context.WithCancel(t.Context())
	report, err := p.Redrive(ctx, sqsqueue.RedriveOptions{}, func(ctx context.Context, _ outbox.DeadLetter, _ bool) error {
		cancel()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
	want(t, report, map[string]int{"dead_message failed": 4})
	eventually(t, p, 4)

	down := "ReceiveMessage"
	p.broken.Store(&down)
	if _, err := p.Redrive(t.Context(), sqsqueue.RedriveOptions{}, never); err == nil {
		t.Error("a queue that can't be asked is no error")
	}
}

func TestRedriveRefusesItsOptions(t *testing.T) {
	p := newPair(t)
	for name, c := range map[string]struct {
		opts    sqsqueue.RedriveOptions
		redrive func(context.Context, outbox.DeadLetter, bool) error
	}{
		"too many":    {sqsqueue.RedriveOptions{Max: 10_001}, never},
		"negative":    {sqsqueue.RedriveOptions{Max: -1}, never},
		"too short":   {sqsqueue.RedriveOptions{Visibility: time.Millisecond}, never},
		"too long":    {sqsqueue.RedriveOptions{Visibility: 13 * time.Hour}, never},
		"a fraction":  {sqsqueue.RedriveOptions{Visibility: 1500 * time.Millisecond}, never},
		"nobody asks": {sqsqueue.RedriveOptions{}, nil},
	} {
		var refused *idem.ConfigError
		if _, err := p.Redrive(t.Context(), c.opts, c.redrive); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAReportIsToldInWords(t *testing.T) {
	for want, report := range map[string]sqsqueue.RedriveReport{
		"there were no letters": {},
		"acknowledged: 1, redriven: 2, and there may be more": {
			Letters: []sqsqueue.Redriven{{Action: sqsqueue.LetterRedriven}, {Action: sqsqueue.LetterAcknowledged}, {Action: sqsqueue.LetterRedriven}}, More: true,
		},
	} {
		if got := report.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
