package idem_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
)

// scenario interprets the commands of testdata/scenario/*.txt on one record:
//
//	reserve W1 atomic [safe] [gone=48h] [resource]   W1 inserts the record in progress, with a lease of 10 s
//	at 3s                                            the time, since the start
//	request W2 [payload=other] [version=2]           a request, which takes over where it may
//	W1 completes 201 | W1 accepts | W1 releases | W1 fences_off | W1 parks
//	extend 72h | end | bust W1
//	resolve 201 | free            a probe, or a person, by another way than the holder
type scenario struct {
	now time.Time
	r   idem.Record
}

const scenarioLease = 10 * time.Second

func (s *scenario) run(t *testing.T, words []string) string {
	t.Helper()
	options := map[string]string{}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		options[name] = value
	}
	switch words[0] {
	case "at":
		s.now = noon.Add(span(t, words[1]))
		return s.now.Format(time.DateTime)
	case "reserve":
		return s.reserve(t, words, options)
	case "request":
		return s.step(idem.Arrived{
			Owner: idem.Owner(words[1]), LeaseUntil: s.now.Add(scenarioLease), Kind: s.r.Kind, SafeToRunAgain: s.r.SafeToRunAgain, Operation: s.r.Operation,
			Fingerprint: fingerprintOf(options["payload"], options["version"]),
		})
	case "extend":
		return s.step(idem.Extended{Until: noon.Add(span(t, words[1]))})
	case "end":
		return s.step(idem.Ended{})
	case "resolve":
		return s.step(idem.Resolved{Response: idem.Response{Status: number(t, words[1]), Body: []byte("found")}})
	case "free":
		return s.step(idem.Freed{Reason: "proven absent"})
	case "bust":
		return s.step(idem.CacheBusted{Owner: idem.Owner(words[1]), Reason: "asked for"})
	}
	return s.holder(t, idem.Owner(words[0]), words[1:])
}

func (s *scenario) reserve(t *testing.T, words []string, options map[string]string) string {
	t.Helper()
	_, safe := options["safe"]
	_, resource := options["resource"]
	s.r = idem.Record{
		State: idem.StateInProgress, Kind: idem.Kind(words[2]), SafeToRunAgain: safe, Owner: idem.Owner(words[1]), Epoch: 1, Attempts: 1,
		LeaseUntil: s.now.Add(scenarioLease), Operation: "a.b", OperationID: "op_1", Fingerprint: fingerprintOf("", ""),
		CreatedAt: s.now, Retention: 24 * time.Hour, Expiry: idem.Expiry{ResourceBacked: resource}, SchemaVersion: idem.SchemaVersion,
	}
	if gone, ok := options["gone"]; ok {
		s.r.Expiry = idem.Expiry{Gone: true, KeepFor: span(t, gone)}
	}
	return s.show()
}

func (s *scenario) holder(t *testing.T, owner idem.Owner, words []string) string {
	t.Helper()
	switch words[0] {
	case "completes":
		return s.step(idem.Completed{Owner: owner, Response: idem.Response{Status: number(t, words[1]), Body: []byte("by " + string(owner))}, Alone: len(words) > 2})
	case "accepts":
		return s.step(idem.Accepted{Owner: owner, Response: idem.Response{Status: 202, Body: []byte("by " + string(owner))}})
	case "releases":
		return s.step(idem.Released{Owner: owner, Reason: "proven"})
	case "fences_off":
		return s.step(idem.FencedOff{Owner: owner})
	case "parks":
		return s.step(idem.Parked{Reason: "a 500"})
	}
	t.Fatalf("unknown command %s", strings.Join(words, " "))
	return ""
}

func fingerprintOf(payload, version string) canonical.Fingerprint {
	f := canonical.Fingerprint{Version: 1}
	if version != "" {
		f.Version, _ = strconv.Atoi(version)
	}
	copy(f.Sum[:], payload)
	return f
}

func (s *scenario) step(event idem.Event) string {
	next, effect, err := idem.Step(s.r, event, s.now)
	var refused *idem.TransitionError
	switch {
	case errors.As(err, &refused):
		return "refused"
	case err != nil:
		return "refused: " + err.Error()
	}
	s.r = next
	return effect.String() + ": " + s.show()
}

func (s *scenario) show() string {
	r := s.r
	parts := []string{string(r.State), fmt.Sprintf("epoch %d", r.Epoch), "owner " + string(r.Owner), fmt.Sprintf("attempts %d", r.Attempts)}
	if r.Response.Status != 0 {
		parts = append(parts, fmt.Sprintf("%d %q", r.Response.Status, r.Response.Body))
	}
	for _, at := range []struct {
		name string
		at   time.Time
	}{{"lease until", r.LeaseUntil}, {"expires", r.ExpiresAt}, {"key free", r.FreeAt}} {
		if !at.at.IsZero() {
			parts = append(parts, at.name+" "+at.at.Format(time.DateTime))
		}
	}
	if r.LastError != "" {
		parts = append(parts, r.LastError)
	}
	return strings.Join(parts, ", ")
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func span(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestStepScenarios runs testdata/scenario/*.txt: files that open with prose on what they prove, then commands, each
// followed by what came of it ("> …").
func TestStepScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/scenario/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(raw), "# ") {
				t.Error("it does not say what it proves")
			}
			s := &scenario{now: noon}
			var b strings.Builder
			for line := range strings.Lines(string(raw)) {
				line = strings.TrimRight(line, "\n")
				if strings.HasPrefix(line, ">") {
					continue
				}
				b.WriteString(line + "\n")
				if line != "" && !strings.HasPrefix(line, "#") {
					b.WriteString("> " + s.run(t, strings.Fields(line)) + "\n")
				}
			}
			golden(t, path, b.String())
		})
	}
}
