package idemctl

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
)

// refusedError is something that can't be done as it was asked for. Nothing was changed.
type refusedError struct {
	// wrong says what is wrong, and do what to do about it.
	wrong, do string
}

func (e *refusedError) Error() string { return e.wrong }

// namesMessage says whether an id is a message's: <operation>.<n>, where the operation's may be the beginning of one.
func namesMessage(id string) bool { return strings.Contains(id, ".") }

// isWhole says whether nothing is missing of an id.
func isWhole(id string) bool {
	if _, _, err := idem.MessageID(id).Operation(); err == nil {
		return true
	}
	_, err := idem.OperationID(id).RecordKey()
	return err == nil
}

// operationIn is the operation that a whole id names, or whose message it names; empty where nothing of it is whole.
func operationIn(id string) idem.OperationID {
	if operation, _, err := idem.MessageID(id).Operation(); err == nil {
		return operation
	}
	if isWhole(id) {
		return idem.OperationID(id)
	}
	return ""
}

// beginningForm is what an id consists of, or its beginning. Other text is not searched for, and not repeated on a terminal.
var beginningForm = regexp.MustCompile(`^[0-9A-Za-z_-]{1,200}(\.[0-9]{1,9})?$`)

// whole completes the id of an operation, or of a message, from its beginning. For a change it must be certain that no other begins
// so: every queue must have been looked through. A change is told which id was meant, before it is made.
func (s *session) whole(id string, change bool) (string, error) {
	desk, err := s.desk()
	if err != nil || isWhole(id) {
		return id, err
	}
	if !beginningForm.MatchString(id) {
		return "", &usageError{"That is no id of an operation or a message.", "Give op_… or op_….n, as list and inspect show it. The id of a payment needs --tenant."}
	}
	begins, number, isMessage := strings.Cut(id, ".")
	found, err := desk.Beginning(s.ctx, begins)
	switch {
	case err != nil:
		return "", err
	case len(found.Operations) == 0:
		return "", &refusedError{
			fmt.Sprintf("No operation whose id begins with %s stands in a queue, or was changed in the last 30 days.", begins),
			"Give the whole id: the log and the client's answer have it. The id of a payment needs --tenant.",
		}
	case len(found.Operations) > 1:
		return "", &operator.AmbiguousError{What: "operations", Begins: begins, IDs: texts(found.Operations), More: found.More}
	case change && found.More:
		return "", &refusedError{
			fmt.Sprintf("%s begins with %s, and others may: there is more in the queues than is searched.", found.Operations[0], begins),
			"Nothing was changed. Give the whole id.",
		}
	}
	whole := string(found.Operations[0])
	if isMessage {
		whole += "." + number
	}
	if !isWhole(whole) {
		return "", &usageError{"That is no id of a message.", "Give <operation>.<n>, as idemctl inspect shows it."}
	}
	if change {
		s.note(id + " is " + whole)
	}
	return whole, nil
}

func texts(ids []idem.OperationID) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = string(id)
	}
	return all
}

// shortMin is how many characters a short id has at least: op_ and nine more, 54 bits.
const shortMin = 12

// shortener returns what shortens ids: to the fewest characters, at least shortMin, that no other of them begins with.
func shortener(ids []string) func(id string) string {
	operations := map[string]bool{}
	for _, id := range ids {
		operation, _, _ := strings.Cut(id, ".")
		operations[operation] = true
	}
	unique := func(begins string) bool {
		n := 0
		for id := range operations {
			if strings.HasPrefix(id, begins) {
				n++
			}
		}
		return n <= 1
	}
	return func(id string) string {
		if !isWhole(id) {
			return id
		}
		operation, number, isMessage := strings.Cut(id, ".")
		length := shortMin
		for length < len(operation) && !unique(operation[:length]) {
			length++
		}
		if isMessage {
			return operation[:length] + "." + number
		}
		return operation[:length]
	}
}
