package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"runtime/debug"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Topic describes one kind of effect. Worker, webhook, reconciler and operator all settle through its Settle. Its functions
// are called concurrently.
type Topic struct {
	// Name is stable for ever: it stands in every message. "payments.charge". Required.
	Name string
	// Call asks the provider for the effect, with m.ID as the downstream key, and returns what is known afterwards. Its
	// context ends before the caller's lease does. It must send at most one request (package call does); nil and a panic
	// count as [Ambiguous].
	Call func(ctx context.Context, m storage.Message) Outcome
	// Knows returns an error for a payload that this release can't read, such as one of a version that only another release
	// knows. The message is then left alone and told of, as one whose topic is not registered: it is not called, settled or
	// counted until a release that knows it delivers it. It is pure, and quick; a panic counts as an error. Default: every payload can
	// be read.
	Knows func(payload []byte) error
	// Probe looks the effect up at the provider by the same downstream key; it never causes one. Nil where the provider
	// offers no look-up: then only a webhook or an operator resolves what is unknown. Its context ends after
	// Config.CallTimeout; nil and a panic count as [Unclear]. A [Runner] calls it ProbesMax times at once.
	Probe func(ctx context.Context, m storage.Message) Finding
	// ProbesMax is how many probes of this topic one run of a [Runner] makes at once: what the provider allows, divided by the number
	// of runs that go on beside each other. Default Config.SweepConcurrency. With a SweepConcurrency of 1 it is 1.
	ProbesMax int
	// Settle says what an outcome means: [Delivered], [Declined], or [NotExecuted] when the message is given up and
	// provably nothing happened (give funds back, mark as failed). It is pure: the same message and outcome always yield
	// the same settlement. It cannot reject: after an error the message is dead, keeps its evidence, and waits for an
	// operator. Required.
	Settle func(m storage.Message, o Outcome) (Settlement, error)
	// Fallback is a short final response, which is stored where that of Settle is too large, or has more headers than
	// [storage.ResponseHeaderBytesMax]. The effect has happened, so
	// it must be settled. Default: the same status, and the operation id with the provider's reference as the body.
	Fallback func(m storage.Message, o Outcome) idem.Response
	// ResponseBytesMax bounds the final response, headers included. Default and upper bound: Config.ResponseBytesMax.
	ResponseBytesMax int
	// Keys is what the provider promises about downstream keys. The zero value is no promise.
	Keys Keys
	// LongestRequest is the longest time that a request can take to reach the provider and be processed, even if its
	// caller is gone. For how long a process may be frozen before it sends it is Config.FreezeAllowance. Default
	// Config.LongestRequest.
	LongestRequest time.Duration
	// ListingDelay is the longest time until Probe finds what was made. Default Config.ListingDelay.
	ListingDelay time.Duration
	// AttemptsMax bounds how often the provider is called before the message is dead, without calls that never left or whose
	// caller it refused. Claims whose worker died, or could not write what its call came to, have the same bound, and are counted
	// separately. Default 10; at most 250.
	AttemptsMax int
	// AgeMax bounds how old a message gets before it is dead. Default 24 h.
	AgeMax time.Duration
	// AbandonAfter bounds how long an operation whose first message nobody has claimed stays open. After it the operation
	// is cancelled and answered with 408. Default AgeMax.
	AbandonAfter time.Duration
	// UnknownMax bounds how long probes may leave a message undecided before it is dead, from when its absence could
	// first have been proven. Default 24 h. Without Probe there is no bound: the message stays unknown until a webhook or
	// an operator settles it.
	UnknownMax time.Duration
}

// Keys is a provider's promise that it answers a request whose key it has seen with the first request's result.
type Keys struct {
	// Honoured says that the provider makes this promise. Without it a call whose outcome is unknown is never followed by
	// another, unless its absence is proven. A risk remains that no protocol removes: if a request arrives later than
	// LongestRequest says, or an effect is listed later than ListingDelay says, the effect happens twice.
	Honoured bool
	// Retention is how long the provider remembers a key, from its first request. Required where Honoured is set, and
	// 0 otherwise.
	Retention time.Duration
}

// Settlement is what an outcome means to the application: business writes, and either the operation's final response or
// the next message of its chain.
//
// For a message of an operation that is complete without it, only the writes count. For [NotExecuted] the record gets the
// outbox's own answer. But if a later message of a chain was given up, Next compensates: it sends the message that undoes
// what an earlier one did. The given-up message is cancelled, the operation stays pending, and once the undoing message
// is delivered the record fails with the response of its Settle. An undoing message that is declined, refused or
// exhausted is dead: an operator must decide.
type Settlement struct {
	// Writes join the transaction that ends the message; none of their conditions may fail.
	Writes []idem.Write
	// Response is the operation's final response.
	Response idem.Response
	// Next, where set, continues the chain instead; a chain has at most [ChainMax] messages.
	Next *Next
}

// Next is the next message of an operation's chain.
type Next struct {
	// Topic is a registered topic, and Payload what it is given, at most [storage.PayloadBytesMax] (240 KiB).
	Topic   string
	Payload []byte
	// Undoes says that the message undoes an earlier one of the chain. Once it is delivered the operation has failed, with the
	// response of its own Settle. Where it is declined or given up it is dead, its Settle is not asked what that means, and an
	// operator decides. What follows a message of which nothing was executed, or an undoing one, undoes whatever is said here.
	Undoes bool
}

// Topics holds the registered topics and their configuration. It is immutable and safe for concurrent use.
type Topics struct {
	cfg    Config
	byName map[string]Topic
}

var topicName = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$`)

const (
	topicNameBytesMax = 64
	attemptsBound     = 250
)

// NewTopics checks the configuration and each topic against it, or returns an [*idem.ConfigError].
func NewTopics(cfg Config, topics ...Topic) (*Topics, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	registry := &Topics{cfg: cfg, byName: map[string]Topic{}}
	for _, topic := range topics {
		topic = topic.withDefaults(cfg)
		if err := topic.validate(cfg); err != nil {
			return nil, err
		}
		if _, ok := registry.byName[topic.Name]; ok {
			return nil, &idem.ConfigError{Field: "Topic.Name", Value: topic.Name, Rule: "is registered twice"}
		}
		registry.byName[topic.Name] = topic
	}
	return registry, nil
}

// Names lists the registered topics, sorted.
func (t *Topics) Names() []string { return slices.Sorted(maps.Keys(t.byName)) }

// Protocol returns what the state machine of a topic's messages depends on, and whether the topic is registered.
func (t *Topics) Protocol(name string) (protocol.Topic, bool) {
	topic, ok := t.byName[name]
	return topic.protocol(t.cfg).Topic, ok
}

// Absence returns the time from which it is proof that the provider has nothing of the message, and whether nobody can
// have called the provider for it at all. The message's topic must be registered. Data from before lost, or
// Config.RefuseBefore, may be missing.
func (t *Topics) Absence(m storage.Message, lost time.Time) (proof time.Time, untouched bool) {
	config, header := t.after(lost, m.Topic), translation.HeaderOf(&m)
	return translation.TimeOf(header.Provable(&config)), header.Abandonable(&config)
}

// Doubted says that a decline which the message keeps may be about one attempt of several: the provider honours no keys, and of what was
// sent from before lost, or Config.RefuseBefore, some may be missing. It settles nothing by itself. The message's topic must be registered.
func (t *Topics) Doubted(m storage.Message, lost time.Time) bool {
	config := t.after(lost, m.Topic)
	return m.KeptDeclined != nil && m.KeptDelivered == nil && translation.HeaderOf(&m).Doubted(&config)
}

// Lost returns the later of lost, which a store's RefuseBefore returned, and Config.RefuseBefore: until then data may have been lost.
func (t *Topics) Lost(lost time.Time) time.Time {
	if t.cfg.RefuseBefore.After(lost) {
		return t.cfg.RefuseBefore
	}
	return lost
}

// after is what a topic's messages are judged by after a loss.
func (t *Topics) after(lost time.Time, topic string) protocol.Config {
	config := t.byName[topic].protocol(t.cfg)
	config.Topic.RefuseBefore = translation.InstantOf(t.Lost(lost))
	return config
}

// reads returns an [*UnreadableError] for a message whose payload is another release's. What nobody can decrypt has none, and what
// has ended needs none. A panic is an error like any other, and told is called with its stack.
func (t Topic) reads(m storage.Message, told func(stack []byte)) error {
	if t.Knows == nil || m.Sealed || m.State.Final() {
		return nil
	}
	if err := t.knows(m.Payload, told); err != nil {
		return &UnreadableError{m.SchemaVersion, m.State, err}
	}
	return nil
}

// errPanicked: what a payload is, this release itself can't tell; it need not be another's.
var errPanicked = errors.New("panicked")

func (t Topic) knows(payload []byte, told func(stack []byte)) (err error) {
	defer func() {
		if p := recover(); p != nil {
			told(debug.Stack())
			err = fmt.Errorf("outbox: knows of %s %w with a %T", t.Name, errPanicked, p)
		}
	}()
	return t.Knows(payload)
}

func (t Topic) withDefaults(cfg Config) Topic {
	t.ResponseBytesMax = cmp.Or(t.ResponseBytesMax, cfg.ResponseBytesMax)
	t.LongestRequest = cmp.Or(t.LongestRequest, cfg.LongestRequest)
	t.ListingDelay = cmp.Or(t.ListingDelay, cfg.ListingDelay)
	t.ProbesMax = cmp.Or(t.ProbesMax, cfg.SweepConcurrency)
	t.AttemptsMax = cmp.Or(t.AttemptsMax, 10)
	t.AgeMax = cmp.Or(t.AgeMax, 24*time.Hour)
	t.AbandonAfter = cmp.Or(t.AbandonAfter, t.AgeMax)
	t.UnknownMax = cmp.Or(t.UnknownMax, 24*time.Hour)
	return t
}

func (t Topic) validate(cfg Config) error {
	broken := func(field string, value any, rule string) error {
		return &idem.ConfigError{Field: fmt.Sprintf("Topic(%q).%s", t.Name, field), Value: value, Rule: rule}
	}
	switch margin := t.margin(cfg); {
	case !topicName.MatchString(t.Name) || len(t.Name) > topicNameBytesMax:
		return broken("Name", t.Name, fmt.Sprintf("must match %s and have at most %d bytes", topicName, topicNameBytesMax))
	case t.Call == nil || t.Settle == nil:
		return broken("Call, Settle", nil, "must be given")
	case t.ResponseBytesMax < fallbackBytes || t.ResponseBytesMax > cfg.ResponseBytesMax:
		return broken("ResponseBytesMax", t.ResponseBytesMax, fmt.Sprintf("must be %d..Config.ResponseBytesMax = %d", fallbackBytes, cfg.ResponseBytesMax))
	case t.LongestRequest < cfg.CallTimeout:
		return broken("LongestRequest", t.LongestRequest, fmt.Sprintf("must be at least Config.CallTimeout = %v", cfg.CallTimeout))
	case t.ListingDelay < 0:
		return broken("ListingDelay", t.ListingDelay, "must not be negative")
	case t.ProbesMax < 1:
		return broken("ProbesMax", t.ProbesMax, "must be at least 1")
	case t.AttemptsMax < 1 || t.AttemptsMax > attemptsBound:
		return broken("AttemptsMax", t.AttemptsMax, fmt.Sprintf("must be 1..%d", attemptsBound))
	case t.AgeMax < cfg.ClaimLease:
		return broken("AgeMax", t.AgeMax, fmt.Sprintf("must be at least Config.ClaimLease = %v", cfg.ClaimLease))
	case t.AbandonAfter < cfg.ClaimLease || t.AbandonAfter > t.AgeMax:
		return broken("AbandonAfter", t.AbandonAfter, fmt.Sprintf("must be Config.ClaimLease..AgeMax = %v..%v", cfg.ClaimLease, t.AgeMax))
	case t.UnknownMax < cfg.ProbeBackoffMin:
		return broken("UnknownMax", t.UnknownMax, fmt.Sprintf("must be at least Config.ProbeBackoffMin = %v", cfg.ProbeBackoffMin))
	case !t.Keys.Honoured && t.Keys.Retention != 0:
		return broken("Keys.Retention", t.Keys.Retention, "must be 0 where Keys.Honoured is false")
	case t.Keys.Honoured && t.Keys.Retention <= margin+cfg.BackoffMax:
		return broken("Keys.Retention", t.Keys.Retention, fmt.Sprintf(
			"must be longer than Config.ClaimLease + Config.FreezeAllowance + LongestRequest + Config.ClockSkew + Config.BackoffMax = %v, or no call could ever be repeated", margin+cfg.BackoffMax))
	}
	return nil
}

// margin is how long before the end of the provider's key retention the last repetition may be claimed: its caller's
// lease, a freeze, its longest request and the clocks' difference all fit in.
func (t Topic) margin(cfg Config) time.Duration {
	return cfg.ClaimLease + cfg.FreezeAllowance + t.LongestRequest + cfg.ClockSkew
}

// absentAfter is how long after the last lease absence is proof.
func (t Topic) absentAfter(cfg Config) time.Duration {
	return cfg.FreezeAllowance + t.LongestRequest + t.ListingDelay + cfg.ClockSkew
}

func (t Topic) protocol(cfg Config) protocol.Config {
	return protocol.Config{ContentionMax: uint8(cfg.ContentionTries), Topic: protocol.Topic{
		KeysHonoured: t.Keys.Honoured, KeyRetention: translation.MillisOf(t.Keys.Retention), Margin: translation.MillisOf(t.margin(cfg)),
		AbsentAfter: translation.MillisOf(t.absentAfter(cfg)), Probed: t.Probe != nil,
		AttemptsMax: uint8(t.AttemptsMax), AgeMax: translation.MillisOf(t.AgeMax), AbandonAfter: translation.MillisOf(t.AbandonAfter), UnknownMax: translation.MillisOf(t.UnknownMax),
		ClaimLease: translation.MillisOf(cfg.ClaimLease), SettleMargin: translation.MillisOf(cfg.SettleMargin), CallFor: translation.MillisOf(cfg.CallTimeout),
		SettleFor: translation.MillisOf(cfg.SettleMax), KeepFor: translation.MillisOf(cfg.KeepMax), SweepGrace: translation.MillisOf(cfg.SweepGrace),
		RefuseBefore: translation.InstantOf(cfg.RefuseBefore),
	}}
}
