package outbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

func minimal() outbox.Topic {
	return outbox.Topic{
		Name:   topicName,
		Call:   func(context.Context, storage.Message) outbox.Outcome { return outbox.Delivered{} },
		Settle: settle,
	}
}

func TestNewTopicsRejectsContradictions(t *testing.T) {
	keys := func(topic *outbox.Topic) { topic.Keys = outbox.Keys{Honoured: true, Retention: time.Hour} }
	for name, c := range map[string]struct {
		topic  func(*outbox.Topic)
		config outbox.Config
		field  string
	}{
		"no name":                         {func(topic *outbox.Topic) { topic.Name = "" }, outbox.Config{}, "Name"},
		"name without a dot":              {func(topic *outbox.Topic) { topic.Name = "charge" }, outbox.Config{}, "Name"},
		"name too long":                   {func(topic *outbox.Topic) { topic.Name = "a." + strings.Repeat("b", 63) }, outbox.Config{}, "Name"},
		"no call":                         {func(topic *outbox.Topic) { topic.Call = nil }, outbox.Config{}, "Call"},
		"no settle":                       {func(topic *outbox.Topic) { topic.Settle = nil }, outbox.Config{}, "Settle"},
		"response bound too small":        {func(topic *outbox.Topic) { topic.ResponseBytesMax = 100 }, outbox.Config{}, "ResponseBytesMax"},
		"response bound too large":        {func(topic *outbox.Topic) { topic.ResponseBytesMax = 4 << 20 }, outbox.Config{}, "ResponseBytesMax"},
		"requests shorter than calls":     {func(topic *outbox.Topic) { topic.LongestRequest = time.Second }, outbox.Config{}, "LongestRequest"},
		"negative listing delay":          {func(topic *outbox.Topic) { topic.ListingDelay = -1 }, outbox.Config{}, "ListingDelay"},
		"no attempts":                     {func(topic *outbox.Topic) { topic.AttemptsMax = -1 }, outbox.Config{}, "AttemptsMax"},
		"abandoned before its lease ends": {func(topic *outbox.Topic) { topic.AbandonAfter = time.Second }, outbox.Config{}, "AbandonAfter"},
		"abandoned after its age":         {func(topic *outbox.Topic) { topic.AbandonAfter = 25 * time.Hour }, outbox.Config{}, "AbandonAfter"},
		"dead before its lease ends":      {func(topic *outbox.Topic) { topic.AgeMax = time.Second }, outbox.Config{}, "AgeMax"},
		"retention without keys":          {func(topic *outbox.Topic) { keys(topic); topic.Keys.Honoured = false }, outbox.Config{}, "Keys.Retention"},
		"keys without retention":          {func(topic *outbox.Topic) { topic.Keys.Honoured = true }, outbox.Config{}, "Keys.Retention"},
		"retention within the margin":     {func(topic *outbox.Topic) { keys(topic); topic.Keys.Retention = 102 * time.Second }, outbox.Config{}, "Keys.Retention"},
		"lease shorter than a call":       {keys, outbox.Config{CallTimeout: 9 * time.Second}, "ClaimLease"},
		"an invocation below a claim":     {keys, outbox.Config{FunctionTimeout: 10 * time.Second}, "Config.FunctionTimeout"},
		"unknown for no time":             {func(topic *outbox.Topic) { topic.UnknownMax = time.Second }, outbox.Config{}, "UnknownMax"},
		"probes upside down":              {keys, outbox.Config{ProbeBackoffMin: 2 * time.Hour}, "ProbeBackoffMax"},
		"probes without a pause":          {keys, outbox.Config{ProbeBackoffMin: time.Microsecond}, "ProbeBackoffMin"},
		"back-off upside down":            {keys, outbox.Config{BackoffMin: time.Minute}, "BackoffMax"},
		"negative skew":                   {keys, outbox.Config{ClockSkew: -1}, "ClockSkew"},
		"below the resolution":            {keys, outbox.Config{BackoffMin: time.Microsecond}, "BackoffMin"},
		"no page":                         {keys, outbox.Config{SweepPage: -1}, "SweepPage"},
		"no looks":                        {keys, outbox.Config{SweepConcurrency: -1}, "SweepConcurrency"},
		"no tries":                        {keys, outbox.Config{ContentionTries: -1}, "ContentionTries"},
		"responses beyond the store":      {keys, outbox.Config{ResponseBytesMax: 4 << 20}, "ResponseBytesMax"},
	} {
		t.Run(name, func(t *testing.T) {
			topic := minimal()
			c.topic(&topic)
			_, err := outbox.NewTopics(c.config, topic)
			var rejected *idem.ConfigError
			if !errors.As(err, &rejected) || !strings.Contains(rejected.Field, c.field) {
				t.Errorf("got %v, want a ConfigError for %s", err, c.field)
			}
		})
	}
	if _, err := outbox.NewTopics(outbox.Config{}, minimal(), minimal()); err == nil {
		t.Error("one name was registered twice")
	}
}

func TestNewTopicsDefaults(t *testing.T) {
	topic := minimal()
	topic.Keys = outbox.Keys{Honoured: true, Retention: 24 * time.Hour}
	topic.ListingDelay = time.Minute
	topics, err := outbox.NewTopics(outbox.Config{}, topic)
	if err != nil {
		t.Fatal(err)
	}
	const second = protocol.Millis(1000)
	rules, ok := topics.Protocol(topicName)
	want := protocol.Topic{
		KeysHonoured: true, KeyRetention: 24 * 3600 * second, Margin: 132 * second, AbsentAfter: 182 * second,
		AttemptsMax: 10, AgeMax: 24 * 3600 * second, AbandonAfter: 24 * 3600 * second, UnknownMax: 24 * 3600 * second, SweepGrace: 15 * second,
		ClaimLease: 10 * second, SettleMargin: 2 * second, CallFor: 5 * second, SettleFor: 10 * second, KeepFor: 600 * second,
	}
	if !ok || rules != want {
		t.Errorf("rules %+v, want %+v", rules, want)
	}
	if _, ok := topics.Protocol("other.topic"); ok {
		t.Error("a topic that is not registered has rules")
	}
	if names := topics.Names(); len(names) != 1 || names[0] != topicName {
		t.Errorf("names %q", names)
	}
}

func TestNewNeedsItsParts(t *testing.T) {
	topics, err := outbox.NewTopics(outbox.Config{}, minimal())
	if err != nil {
		t.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var rejected *idem.ConfigError
	if _, err := outbox.NewWorker(store, topics, nil, nil); !errors.As(err, &rejected) {
		t.Errorf("worker: %v", err)
	}
	if _, err := outbox.NewRunner(nil, nil, nil); !errors.As(err, &rejected) {
		t.Errorf("runner: %v", err)
	}
}
