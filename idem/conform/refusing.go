package conform

import (
	"net/http"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
)

func missingKey(s *session) (finding, error) {
	if s.Policy.MissingKey == idem.MissingKeyUnprotected {
		return s.unprotected(request{})
	}
	got, err := s.refused(request{})
	return s.refusal(got, http.StatusBadRequest, header.CodeKeyMissing), err
}

func emptyKey(s *session) (finding, error) {
	empty := request{keys: []string{""}}
	if s.Policy.EmptyKeyIsMissing {
		if s.Policy.MissingKey == idem.MissingKeyUnprotected {
			return s.unprotected(empty)
		}
		got, err := s.refused(empty)
		return s.refusal(got, http.StatusBadRequest, header.CodeKeyMissing), err
	}
	got, err := s.refused(empty)
	return s.refusal(got, http.StatusBadRequest, header.CodeKeyInvalid), err
}

// unprotected demands that a request executes each time, and says that nothing protects it.
func (s *session) unprotected(r request) (finding, error) {
	s.executes(2)
	one, err := s.send(r)
	if err != nil {
		return finding{}, err
	}
	other, err := s.send(r)
	if err != nil {
		return finding{}, err
	}
	said := holds()
	if !s.Foreign && other.says() != "unprotected" {
		said = differs("%s %q, want unprotected", header.NameStatus, other.says())
	}
	return all(s.distinct(one, other), said), nil
}

func invalidKey(s *session) (finding, error) {
	values := []string{strings.Repeat("k", 256)}
	if s.Policy.Syntax != idem.SyntaxOpaque {
		values = []string{
			`"` + strings.Repeat("k", 256) + `"`, `"unclosed`, `"a" "b"`, `"a";b=1`, "a,b", "a b", "\"\u00e4\"", `("a")`,
		}
	}
	if s.Policy.KeyBytesMin > 1 {
		values = append(values, strings.Repeat("k", s.Policy.KeyBytesMin-1))
	}
	for _, value := range values {
		got, err := s.refused(request{keys: []string{value}})
		if err != nil {
			return finding{}, err
		}
		if found := s.refusal(got, http.StatusBadRequest, header.CodeKeyInvalid); found.verdict != Holds {
			found.saw = "key " + value + ": " + found.saw
			return found, nil
		}
	}
	return holds(), nil
}

func twoKeys(s *session) (finding, error) {
	one, err := s.key()
	if err != nil {
		return finding{}, err
	}
	two, err := s.key()
	if err != nil {
		return finding{}, err
	}
	got, err := s.refused(request{keys: []string{s.quoted(one), s.quoted(two)}})
	if err != nil {
		return finding{}, err
	}
	if s.Policy.Syntax == idem.SyntaxOpaque && got.success() {
		return notTold("it executes: a gateway may join both lines into one key"), nil
	}
	return s.refusal(got, http.StatusBadRequest, header.CodeKeyInvalid), nil
}

// freeAfter demands that a refused request has left its key free.
func (s *session) freeAfter(key string, refused finding) (finding, error) {
	s.executes(1)
	began, final, err := s.settled(s.with(key))
	switch {
	case err != nil:
		return finding{}, err
	case !final.success():
		return differs("its key is not free: %v", final), nil
	case began.replayed() && !began.lost:
		return differs("its key replays: %v", began), nil
	}
	return refused, nil
}

func invalidBody(s *session) (finding, error) {
	if s.ContentType != "application/json" {
		return skipped("the body is no JSON"), nil
	}
	return s.refusedBody([]byte(`{"unclosed":`))
}

func duplicateNames(s *session) (finding, error) {
	if s.ContentType != "application/json" {
		return skipped("the body is no JSON"), nil
	}
	found, err := s.refusedBody([]byte(`{"amount":1,"amount":2}`))
	if s.Foreign && found.verdict == Differs {
		return notTold("%s", found.saw), err
	}
	return found, err
}

func (s *session) refusedBody(body []byte) (finding, error) {
	key, err := s.key()
	if err != nil {
		return finding{}, err
	}
	r := s.with(key)
	r.body = body
	got, err := s.refused(r)
	if err != nil {
		return finding{}, err
	}
	if got.status != http.StatusBadRequest {
		return differs("%v, want 400", got), nil
	}
	return s.freeAfter(key, holds())
}

// sentFirst is a request that says when it was sent first.
func (s *session) sentFirst(key, at string) request {
	r := s.with(key)
	r.header = http.Header{header.NameFirstSent: {at}}
	return r
}

func firstSentInvalid(s *session) (finding, error) {
	for _, at := range []string{"yesterday", s.Now().Add(time.Hour).UTC().Format(time.RFC3339)} {
		key, err := s.key()
		if err != nil {
			return finding{}, err
		}
		got, err := s.refused(s.sentFirst(key, at))
		if err != nil {
			return finding{}, err
		}
		if s.Foreign && got.success() {
			return notTold("%s is not looked at", header.NameFirstSent), nil
		}
		if found := s.refusal(got, http.StatusBadRequest, header.CodeKeyInvalid); found.verdict != Holds {
			found.saw = header.NameFirstSent + " " + at + ": " + found.saw
			return found, nil
		}
	}
	return holds(), nil
}

// longAgo is before every retention that a policy may have.
const longAgo = idem.RetentionMax + 30*24*time.Hour

func firstSentOld(s *session) (finding, error) {
	key, err := s.key()
	if err != nil {
		return finding{}, err
	}
	got, err := s.refused(s.sentFirst(key, s.Now().Add(-longAgo).UTC().Format(time.RFC3339)))
	if err != nil {
		return finding{}, err
	}
	if s.Foreign && got.success() {
		return notTold("%s is not looked at", header.NameFirstSent), nil
	}
	return s.refusal(got, http.StatusPreconditionFailed, header.CodeKeyExpired), nil
}

func firstSentLive(s *session) (finding, error) {
	key, _, was, err := s.executedOnce()
	if err != nil {
		return finding{}, err
	}
	again, err := s.again(s.sentFirst(key, s.Now().Add(-longAgo).UTC().Format(time.RFC3339)), was)
	return s.replays(again, was), err
}

func noCredentials(s *session) (finding, error) {
	if s.Header.Get("Authorization") == "" {
		return skipped("no Authorization is given"), nil
	}
	nobody := s.Header.Clone()
	nobody.Del("Authorization")
	used, _, _, err := s.executedOnce()
	if err != nil {
		return finding{}, err
	}
	fresh, err := s.key()
	if err != nil {
		return finding{}, err
	}
	for _, key := range []string{used, fresh} {
		r := s.with(key)
		r.caller = nobody
		got, err := s.refused(r)
		if err != nil {
			return finding{}, err
		}
		if got.status != http.StatusUnauthorized && got.status != http.StatusForbidden {
			return differs("%v without credentials, want 401 or 403", got), nil
		}
	}
	return s.freeAfter(fresh, holds())
}
