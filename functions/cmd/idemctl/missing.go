package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/idem/storage"
)

// missing are the commands about what the provider has and the tables lack, after a loss.
type missing struct {
	Restore restoreMissing `cmd:"" help:"Make operations again that only the provider knows of: record, message and row, which the worker then settles by what the provider has."`
}

type restoreMissing struct {
	From      time.Time          `required:"" help:"Compare from this instant on, RFC 3339: that of the restore."`
	To        time.Time          `required:"" help:"Until this instant, RFC 3339."`
	Operation []idem.OperationID `help:"Only this operation; may be repeated. It may also be one whose record waits for a message that is not there. Default: everything that is missing."`
	Told      string             `type:"existingfile" help:"File with one JSON object a line: operation_id, tenant, and of payouts account. The log lines idempotency.reserve.created are such lines; others are passed over."`
	Tenant    string             `help:"Whose the operations are that the file does not name."`
	Account   string             `help:"Which account payouts were taken from that the file does not name."`
	Finish    bool               `help:"Also what moves money that has not moved yet: payouts of which only the screening was made, and records of which the provider has nothing."`
	idemctl.Reasoned
}

// Validate judges the command line.
func (r *restoreMissing) Validate() error {
	for _, id := range r.Operation {
		if _, err := id.RecordKey(); err != nil {
			return fmt.Errorf("--operation: %q is no operation id", id)
		}
	}
	if r.Tenant != "" && !tenantForm.MatchString(r.Tenant) {
		return errors.New("--tenant must have 1..64 letters, digits, dots, dashes and underscores")
	}
	return nil
}

// restored is what came of one operation.
type restored struct {
	// Operation is empty where the object's key is none of ours.
	Operation idem.OperationID `json:"operation_id,omitempty"`
	Objects   []string         `json:"objects"`
	Kind      string           `json:"kind,omitempty"`
	ID        string           `json:"id,omitempty"`
	Amount    int64            `json:"amount"`
	Currency  string           `json:"currency"`
	Tenant    string           `json:"tenant,omitempty"`
	// Did is what was done, or would be; empty where it is left to a person, who is told by Code and Rule.
	Did  string `json:"did,omitempty"`
	Code string `json:"code,omitempty"`
	Rule string `json:"rule,omitempty"`
}

// codeTrouble is the code of an operation about which a store or the provider could not be asked. Repeating the command finds out.
const codeTrouble = "trouble"

// Run implements the command: it compares, tries each operation by itself, and shows what came of all of them.
func (r *restoreMissing) Run(d *idemctl.Desk) error {
	known, err := r.known()
	if err != nil {
		return err
	}
	restorer, provider, err := restoring(d.Context())
	if err != nil {
		return err
	}
	all, more, err := lost(d.Context(), drift.Window{From: r.From, To: r.To}, provider)
	if err != nil {
		return err
	}
	answer := []restored{}
	left, trouble := more > 0, error(nil)
	asked := slices.Clone(r.Operation)
	try := func(operation idem.OperationID, objects []payments.Shown) {
		asked = slices.DeleteFunc(asked, func(id idem.OperationID) bool { return id == operation })
		did, err := r.one(d, restorer, known, operation, objects)
		left, trouble = left || did.Code != "", errors.Join(trouble, err)
		answer = append(answer, did)
	}
	for _, objects := range all {
		if operation, _, _ := objects[0].Key.Operation(); len(r.Operation) == 0 || slices.Contains(r.Operation, operation) {
			try(operation, objects)
		}
	}
	for _, operation := range slices.Clone(asked) { // a record may wait for its message without any object of the provider
		objects, err := anythingOf(d.Context(), provider, operation)
		if err != nil {
			return err
		}
		try(operation, objects)
	}
	if more > 0 {
		answer = append(answer, restored{Code: "more", Rule: fmt.Sprintf("%d more objects are missing than one report lists: repeat the command, with a shorter window where none of these goes away", more)})
	}
	if err := d.Rows(answer, []string{"OPERATION", "ROW", "AMOUNT", "OBJECTS", "DONE, OR LEFT TO YOU"}, rowsOf(answer, r.Write)); err != nil {
		return err
	}
	if left && trouble == nil {
		return idemctl.ErrDiffers
	}
	return trouble
}

func rowsOf(all []restored, write bool) (rows [][]string) {
	for _, m := range all {
		did := m.Did
		switch {
		case m.Code != "":
			did = m.Code + ": " + m.Rule
		case !write:
			did = "dry run: would " + did
		}
		rows = append(rows, []string{string(m.Operation), strings.TrimSpace(m.Kind + " " + m.ID), strconv.FormatInt(m.Amount, 10) + " " + m.Currency, strings.Join(m.Objects, ","), did})
	}
	return rows
}

// anythingOf is what the provider shows of an operation, whatever kind it is of.
func anythingOf(ctx context.Context, provider *payments.Provider, operation idem.OperationID) (all []payments.Shown, err error) {
	for _, kind := range []string{"charge", "refund", "payout"} {
		objects, err := provider.MadeBy(ctx, operation, kind)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// known reads what a person says of operations.
func (r *restoreMissing) known() (map[idem.OperationID]payments.Told, error) {
	known := map[idem.OperationID]payments.Told{}
	if r.Told == "" {
		return known, nil
	}
	file, err := os.Open(r.Told)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var line struct {
			Operation idem.OperationID `json:"operation_id"`
			Tenant    string           `json:"tenant"`
			Account   string           `json:"account"`
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Operation == "" || line.Tenant == "" {
			continue
		}
		was, ok := known[line.Operation]
		if ok && was.Tenant != line.Tenant {
			return nil, &operator.InvalidError{Field: "--told", Rule: fmt.Sprintf("line %d gives %s another tenant than a line before it", n, line.Operation)}
		}
		if line.Account != "" {
			was.Account = line.Account
		}
		was.Tenant = line.Tenant
		known[line.Operation] = was
	}
	return known, lines.Err()
}

// one makes one operation again. Its error is one that repeating the command may not meet again; what is left to a person is none.
func (r *restoreMissing) one(d *idemctl.Desk, restorer payments.Restorer, known map[idem.OperationID]payments.Told, operation idem.OperationID, objects []payments.Shown) (restored, error) {
	did := restored{Operation: operation, Objects: []string{}}
	for _, o := range objects {
		did.Objects, did.Amount, did.Currency = append(did.Objects, o.ID), o.Amount, o.Currency
	}
	made, err := payments.Made(objects)
	did.Kind, did.ID = string(made.Kind), made.ID
	if err != nil && operation == "" {
		return did.left(err)
	}
	told := known[operation]
	if told.Tenant == "" {
		told.Tenant = r.Tenant
	}
	if told.Account == "" {
		told.Account = r.Account
	}
	told.Finish, did.Tenant = r.Finish, told.Tenant
	result, err := d.Do(operator.Task{
		Name: "missing restore", Subject: string(operation), Tenant: told.Tenant,
		Would: strings.Join(strings.Fields(fmt.Sprintf("make %s %s again", made.Kind, made.ID)), " "),
		Judge: func(ctx context.Context) error { return refused(restorer.Judge(ctx, operation, objects, told)) },
		Act: func(ctx context.Context) (string, error) {
			outcome, err := restorer.Restore(ctx, operation, objects, told)
			return outcome, refused(err)
		},
	}, r.Change())
	if idemctl.Unfinished(err) {
		return did.left(err)
	}
	did.Did = result.Outcome
	return did, err
}

// refused says to the audit log that nothing was changed, where a person has to do it.
func refused(err error) error {
	if errors.As(err, new(*payments.ByHandError)) {
		return fmt.Errorf("%w: %w", operator.ErrRefused, err)
	}
	return err
}

// left is an operation that was not made again, or of which nobody knows.
func (m restored) left(err error) (restored, error) {
	var byHand *payments.ByHandError
	if errors.As(err, &byHand) {
		m.Code, m.Rule = byHand.Code, byHand.Rule
		return m, nil
	}
	m.Code, m.Rule = codeTrouble, err.Error()
	return m, err
}

// restoring opens what operations are made again with.
func restoring(ctx context.Context) (payments.Restorer, *payments.Provider, error) {
	cfg, parts, err := wired(ctx)
	if err != nil {
		return payments.Restorer{}, nil, err
	}
	lives, err := config.Read[config.Drift]() // for how long a record answers
	if err != nil {
		return payments.Restorer{}, nil, err
	}
	return payments.Restorer{
		Store: parts.Store, Messages: parts.Store, Ledger: payments.Table{Client: parts.Client, Name: cfg.PaymentsTable}, Charge: parts.Provider.Charge,
		Mint: storage.IDGenerator{Random: rand.Reader}, Retention: lives.Retention, Now: time.Now, Pause: idem.Pause,
	}, parts.Provider, nil
}

// lost are the operations of which the drift job says that no row accounts for their objects, each with all that the provider shows under
// its keys, oldest first: a payment comes before its refunds. more is how many objects are missing and not listed.
func lost(ctx context.Context, w drift.Window, provider *payments.Provider) (all [][]payments.Shown, more int, err error) {
	cfg, err := config.Read[config.Drift]()
	if err != nil {
		return nil, 0, err
	}
	job, err := drift.Open(ctx, cfg, nil)
	if err != nil {
		return nil, 0, err
	}
	report, err := job.Check(ctx, w)
	if err != nil {
		return nil, 0, err
	}
	more = report.DriftCount() - len(report.Drifts)
	seen := map[idem.OperationID]bool{}
	for _, d := range report.Drifts {
		if d.Kind != drift.MissingHere || d.Entry != "" {
			continue
		}
		side := d.Sides[len(d.Sides)-1]
		object, err := provider.Shown(ctx, strings.TrimPrefix(side.What, "provider "), side.ID)
		if err != nil {
			return nil, 0, err
		}
		operation, _, err := object.Key.Operation()
		if err != nil {
			all = append(all, []payments.Shown{object})
			continue
		}
		if seen[operation] {
			continue
		}
		seen[operation] = true
		objects, err := provider.MadeBy(ctx, operation, object.Kind)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, objects)
	}
	slices.SortStableFunc(all, func(a, b []payments.Shown) int { return a[0].CreatedAt.Compare(b[0].CreatedAt) })
	return all, more, nil
}
