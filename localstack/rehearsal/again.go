package rehearsal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// madeAgain is what idemctl missing restore tells of one operation, as far as it is looked at.
type madeAgain struct {
	Operation string `json:"operation_id"`
	Objects   []string
	Did, Code string
}

// codeNotOurs is the code of an object whose key is none of the application's: here the charges of wrapped operations.
const codeNotOurs = "key_not_ours"

// again is the runbook "What is missing": every operation that only the provider knows of is made again, first as a dry run, while its
// client sends its old key; then nothing is missing any more, and the clients have their answers.
func (r *run) again(ctx context.Context) error {
	if !r.loses {
		return nil
	}
	told := []string{
		"--output", "json", "--within", "5m", "missing", "restore", "--from", stamp(r.began), "--to", stamp(time.Now()),
		"--tenant", "tenant-a", "--account", "acct_1", "--finish", "--reason", reason,
	}
	would, err := r.missing(ctx, told...)
	if err != nil {
		return err
	}
	clients := make(chan struct{})
	go func() {
		defer close(clients)
		r.retry(ctx, r.stories)
	}()
	did, err := r.missing(ctx, append(told, "--write")...)
	<-clients
	if err != nil {
		return err
	}
	if r.money.Again = len(did); r.money.Again == 0 || len(would) != len(did) {
		return fmt.Errorf("%d operations were made again, and %d would be", len(did), len(would))
	}
	if err := r.answers(ctx); err != nil {
		return err
	}
	return r.nothingIsMissing(ctx)
}

// missing runs the command, and returns what was made again, or would be. It is an error that anything is left to a person but the charges
// of wrapped operations.
func (r *run) missing(ctx context.Context, arguments ...string) (made []madeAgain, err error) {
	out, errs, code := r.idemctl(ctx, nil, arguments...)
	var all []madeAgain
	if err := json.Unmarshal([]byte(out), &all); err != nil || code > 1 {
		return nil, fmt.Errorf("idemctl missing restore exits with %d: %s%s", code, out, errs)
	}
	left := 0
	for _, m := range all {
		switch {
		case m.Code == codeNotOurs && m.Operation == "":
			left++
		case m.Code != "":
			err = errors.Join(err, fmt.Errorf("%+v is left to a person", m))
		default:
			made = append(made, m)
		}
	}
	if left != len(r.others) {
		err = errors.Join(err, fmt.Errorf("%d objects are not the application's, want the %d of wrapped operations: %s", left, len(r.others), out))
	}
	return made, err
}

// nothingIsMissing counts the money once more: every object has its row, and no money moved twice.
func (r *run) nothingIsMissing(ctx context.Context) error {
	listed, drifted := r.drift(ctx)
	if drifted != nil {
		return drifted
	}
	e := evidence{asked: r.asked(), listed: listed}
	var err error
	if e.objects, _, err = r.objects(ctx); err != nil {
		return err
	}
	if e.rows, err = r.payments(ctx); err != nil {
		return err
	}
	if err := r.countUnreadable(ctx); err != nil {
		return err
	}
	after := Money{}
	wrong := after.count(e)
	if r.money.MissingAfter, r.money.BookedAfter = after.Missing, after.Booked; after.Missing > 0 {
		wrong = append(wrong, fmt.Sprintf("%d objects are missing still", after.Missing))
	}
	if len(listed) != len(r.others) {
		wrong = append(wrong, fmt.Sprintf("the drift job lists %d objects, want the %d of wrapped operations", len(listed), len(r.others)))
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}
