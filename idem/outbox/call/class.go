package call

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/idem-go/idem-aws/idem"
)

// Class is what a status of the provider's proves. When in doubt it is [Ambiguous]: then nothing is taken back that may
// have happened.
type Class string

// The classes of a status.
const (
	// Refused: nothing happened, now or under the same key before, and the same request can't succeed. The message is dead
	// at once, and the operation fails. If an earlier call is open, the message is as with Unproven. A 400 for a body that
	// the provider never takes.
	Refused Class = "refused"
	// Unproven: this request can't succeed, but the status says nothing about an earlier one under the same key. The
	// message is unknown where its topic has a Probe, which then decides. Without one it is dead at once, and an operator
	// decides. A 409 for a key that was used with another body.
	Unproven Class = "unproven"
	// Declined: the provider judged the request, and its answer is a no: a result like any other. A 402.
	Declined Class = "declined"
	// NotExecuted: nothing happened, and the same request may succeed later. It is made again after a back-off. A 429
	// where the provider counts requests before it reads them.
	NotExecuted Class = "not_executed"
	// Unauthorized: as NotExecuted, because the provider refused the caller. Nothing is wrong with the request, so it counts as no
	// attempt, and `outbox.unauthorized` tells. A 401, or a 403, while a credential is wrong.
	Unauthorized Class = "unauthorized"
	// Ambiguous: it may have happened, or may happen yet. The request is made again only under the rules for open calls. A
	// 409 for a key whose first request is still running, or a 404 that a gateway in between may answer.
	Ambiguous Class = "ambiguous"
)

func (c Class) known() bool {
	switch c {
	case Refused, Unproven, Declined, NotExecuted, Unauthorized, Ambiguous:
		return true
	}
	return false
}

// mustBeListed are the statuses that providers use for both: nothing happened, and something did.
var mustBeListed = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict,
	http.StatusUnprocessableEntity, http.StatusTooManyRequests,
}

// classes checks what is listed.
func classes(listed map[int]Class) (map[int]Class, error) {
	broken := func(status int, value any, rule string) error {
		return &idem.ConfigError{Field: fmt.Sprintf("Config.Statuses[%d]", status), Value: value, Rule: rule}
	}
	for _, status := range mustBeListed {
		if _, ok := listed[status]; !ok {
			return nil, broken(status, nil, fmt.Sprintf("must be listed, as each of %v: only the provider's documentation says what it proves", mustBeListed))
		}
	}
	all := make(map[int]Class, len(listed))
	for _, status := range slices.Sorted(maps.Keys(listed)) {
		switch class := listed[status]; {
		case status < 400 || status > 499:
			return nil, broken(status, class, "can't be listed: only a 4xx can be anything but success or ambiguous")
		case !class.known():
			return nil, broken(status, class, "must be refused, unproven, declined, not_executed, unauthorized or ambiguous")
		default:
			all[status] = class
		}
	}
	return all, nil
}
