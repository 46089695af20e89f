package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
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
	Restore restoreMissing `cmd:"" help:"Restore the record, message and row of operations that only the provider still has. The worker then settles them by the provider's objects."`
}

type restoreMissing struct {
	From        time.Time          `required:"" help:"Start of the comparison, RFC 3339: the instant that the tables were restored to."`
	To          time.Time          `required:"" help:"End of the comparison, RFC 3339."`
	Operation   []idem.OperationID `help:"Only this operation, by its whole id; may be repeated. It may also be one whose record waits for a message that is not there, whose message waits for a record, or whose row is not there. Default: everything that is missing."`
	LostBefore  time.Time          `placeholder:"INSTANT" help:"The cut-over of the loss that has torn the operations of --operation, RFC 3339, where its refusal has ended and its refuse-before was deleted."`
	Told        string             `type:"existingfile" help:"File with one JSON object a line: operation_id, tenant, and of payouts account. The log lines idempotency.reserve.created are such lines; others are passed over, and counted where they name an operation."`
	Tenant      string             `help:"Tenant of the operations that the file does not name."`
	Account     string             `help:"Account of the payouts that the file does not name."`
	Finish      bool               `help:"Also finish what has not moved money yet: payouts that have only a screening, with or without a record, and records of which the provider has nothing. A payout whose hold was released is never paid out."`
	EndReleased bool               `help:"Also end payouts that were not made and whose hold was released (hold_released): their client is told so, as it would have been. They are never paid out."`
	idemctl.Reasoned
}

// Validate judges the command line.
func (r *restoreMissing) Validate() error {
	for _, id := range r.Operation {
		if _, err := id.RecordKey(); err != nil {
			return fmt.Errorf("--operation: %q is not an operation id", id)
		}
	}
	switch {
	case r.LostBefore.IsZero():
	case len(r.Operation) == 0:
		return errors.New("--lost-before needs --operation")
	case time.Since(r.LostBefore) < lostBeforeMin:
		return fmt.Errorf("--lost-before must be at least %v ago: it is the cut-over of a loss whose refusal has ended", lostBeforeMin)
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
	// Did is what was done, or would be; empty where nothing was. Code and Rule tell a person what is left; beside Did it is what comes after.
	Did  string `json:"did,omitempty"`
	Code string `json:"code,omitempty"`
	Rule string `json:"rule,omitempty"`
}

// The codes of what is left to a person, beside those of a [payments.ByHandError].
const (
	// codeTrouble: a store or the provider could not be asked. Repeating the command finds out.
	codeTrouble = "trouble"
	// codeMore: more is missing than one report lists.
	codeMore = "more"
	// codeTooYoung: not all of the window was compared, because its end need not be listed yet.
	codeTooYoung = "too_young"
	// codeUnreadable: there are rows that can't be compared.
	codeUnreadable = "unreadable"
	// codeChainTorn: a row is put back, and nobody goes on with its operation before that is named. Without its name it is listed no more.
	codeChainTorn = "chain_torn"
)

// Run implements the command: it compares, tries each operation by itself, and shows what came of all of them.
func (r *restoreMissing) Run(d *idemctl.Desk) error {
	known, unread, err := r.known()
	if err != nil {
		return err
	}
	if unread > 0 {
		d.Note(fmt.Sprintf("--told: lines that name an operation and were passed over, because they are no JSON object with operation_id and tenant: %d", unread))
	}
	restorer, provider, err := restoring(d.Context())
	if err != nil {
		return err
	}
	cut, err := r.cutOver(d.Context(), restorer.Store)
	if err != nil {
		return err
	}
	restorer.LostBefore = r.LostBefore
	all, unseen, err := lost(d.Context(), drift.Window{From: r.From, To: r.To}, cut, provider)
	if err != nil {
		return err
	}
	answer, trouble := []restored{}, error(nil)
	for _, one := range r.wanted(d.Context(), provider, all) {
		did, err := r.one(d, restorer, known, one)
		answer, trouble = append(answer, did), errors.Join(trouble, err)
	}
	if len(r.Operation) == 0 { // what is named is looked up by itself
		answer = append(answer, unseen...)
	}
	if err := d.Rows(answer, []string{"OPERATION", "ROW", "AMOUNT", "OBJECTS", "DONE, OR LEFT TO YOU"}, rowsOf(answer, r.Write)); err != nil {
		return err
	}
	if trouble == nil && slices.ContainsFunc(answer, func(m restored) bool { return m.Code != "" }) {
		return idemctl.ErrDiffers
	}
	return trouble
}

// lostBeforeMin is how long ago a loss must be whose refusal has ended. An operation that is under way is not taken for one that it has torn.
const lostBeforeMin = 5 * time.Minute

// cutOver is up to when data may have been lost. Where nobody has said it nothing counts as lost, and an old object may have outlived its
// row, its record and its message. Where the refusal has ended a person says it again, of the operations that they name.
func (r *restoreMissing) cutOver(ctx context.Context, store storage.Loss) (time.Time, error) {
	cut, err := store.RefuseBefore(ctx)
	refuse := func(rule string, values ...any) (time.Time, error) {
		return time.Time{}, fmt.Errorf("%w: "+rule, append([]any{operator.ErrRefused}, values...)...)
	}
	switch said := !r.LostBefore.IsZero(); {
	case errors.Is(err, storage.ErrLossNotDated):
		return refuse("nobody has said up to when data was lost: run idemctl refuse-before set first. Where that refusal has ended, load the stage's variables again instead")
	case err != nil:
		return time.Time{}, err
	case said && !cut.IsZero():
		return refuse("refuse-before is set to %s, which counts: leave --lost-before out", cut.Format(time.RFC3339Nano))
	case said:
		return r.LostBefore, nil
	case cut.IsZero():
		return refuse("no loss of data is known: if data was lost just now, run idemctl refuse-before set first. Where the refusal after a loss has ended, don't set it again, which would refuse every client: name the operation with --operation, and say the cut-over of that loss with --lost-before")
	}
	return cut, nil
}

// wanted are the operations that the command line asks for: all that are lost, or those that it names. A record may wait for its message
// without any object of the provider, so what is named is looked up where it is not among the lost ones.
func (r *restoreMissing) wanted(ctx context.Context, provider *payments.Provider, all []gone) []gone {
	if len(r.Operation) == 0 {
		return all
	}
	wanted := slices.DeleteFunc(slices.Clone(all), func(g gone) bool { return !slices.Contains(r.Operation, g.operation) })
	for _, operation := range r.Operation {
		if !slices.ContainsFunc(wanted, func(g gone) bool { return g.operation == operation }) {
			objects, err := anythingOf(ctx, provider, operation)
			wanted = append(wanted, gone{operation, objects, err})
		}
	}
	return wanted
}

// rowsOf begins with what is left to a person: a table cuts the end of a long text.
func rowsOf(all []restored, write bool) (rows [][]string) {
	for _, m := range all {
		var did []string
		if m.Code != "" {
			did = append(did, m.Code+": "+m.Rule)
		}
		switch {
		case m.Did != "" && write:
			did = append(did, m.Did)
		case m.Did != "":
			did = append(did, "dry run: would "+m.Did)
		}
		rows = append(rows, []string{string(m.Operation), strings.TrimSpace(m.Kind + " " + m.ID), strconv.FormatInt(m.Amount, 10) + " " + m.Currency, strings.Join(m.Objects, ","), strings.Join(did, "; ")})
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

// known reads what a person says of operations. unread is how many lines name an operation and say nothing that could be read.
func (r *restoreMissing) known() (known map[idem.OperationID]payments.Told, unread int, err error) {
	known = map[idem.OperationID]payments.Told{}
	if r.Told == "" {
		return known, 0, nil
	}
	file, err := os.Open(r.Told)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	n := 0
	for lines.Scan() {
		n++
		operation, says, ok := toldBy(lines.Bytes())
		if !ok {
			if namesOperation(lines.Bytes()) {
				unread++
			}
			continue
		}
		was, member := known[operation], ""
		switch {
		case was.Tenant != "" && was.Tenant != says.Tenant:
			member = "tenant"
		case was.Account != "" && says.Account != "" && was.Account != says.Account:
			member = "account"
		}
		if member != "" {
			return nil, 0, &operator.InvalidError{Field: "--told", Rule: fmt.Sprintf("line %d gives %s another %s than a line before it", n, operation, member)}
		}
		says.Account = cmp.Or(says.Account, was.Account)
		known[operation] = says
	}
	if err := lines.Err(); err != nil || n > 0 {
		return known, unread, err
	}
	return nil, 0, &operator.InvalidError{Field: "--told", Rule: "has no line: was it written to its end?"}
}

// toldBy is what a line says of an operation; ok is false where it says nothing that counts.
func toldBy(raw []byte) (operation idem.OperationID, says payments.Told, ok bool) {
	var line struct {
		Operation idem.OperationID `json:"operation_id"`
		Tenant    string           `json:"tenant"`
		Account   string           `json:"account"`
	}
	if json.Unmarshal(raw, &line) != nil || line.Tenant == "" {
		return "", payments.Told{}, false
	}
	_, err := line.Operation.RecordKey()
	return line.Operation, payments.Told{Tenant: line.Tenant, Account: line.Account}, err == nil
}

// operationForm finds what looks like an operation id in a line.
var operationForm = regexp.MustCompile(`op_[0-9A-Za-z_-]+`)

func namesOperation(line []byte) bool {
	return slices.ContainsFunc(operationForm.FindAll(line, -1), func(id []byte) bool {
		_, err := idem.OperationID(id).RecordKey()
		return err == nil
	})
}

// one makes one operation again. Its error is one that repeating the command may not meet again; what is left to a person is none.
func (r *restoreMissing) one(d *idemctl.Desk, restorer payments.Restorer, known map[idem.OperationID]payments.Told, lost gone) (restored, error) {
	operation, objects := lost.operation, lost.objects
	did := restored{Operation: operation, Objects: []string{}}
	for _, o := range objects {
		did.Objects, did.Amount, did.Currency = append(did.Objects, o.ID), o.Amount, o.Currency
	}
	if lost.trouble != nil {
		return did.left(lost.trouble)
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
	told.Finish, told.EndReleased, did.Tenant = r.Finish, r.EndReleased, told.Tenant
	outcome := ""
	result, err := d.Do(operator.Task{
		Name: "missing restore", Subject: string(operation), Tenant: told.Tenant,
		Would: would(made, payments.Restored),
		Judge: func(ctx context.Context) (err error) {
			outcome, err = restorer.Judge(ctx, operation, objects, told)
			return refused(err)
		},
		Act: func(ctx context.Context) (_ string, err error) {
			outcome, err = restorer.Restore(ctx, operation, objects, told)
			return outcome + r.lostSaid(), refused(err)
		},
	}, r.Change())
	if idemctl.Unfinished(err) {
		did, err = did.left(err)
		if did.Code == codeTrouble && operation != "" && r.Write {
			did.Rule += fmt.Sprintf("; repeat this with --operation %s: without its id it is not listed once its row is there", operation)
			did.note(d)
		}
		return did, err
	}
	if did.Did = result.Outcome; result.DryRun {
		did.Did = would(made, outcome) + r.lostSaid()
	}
	if outcome == payments.RowOfTornPutBack {
		first := ""
		if result.DryRun {
			first = "put the row back (--write), "
		}
		did.Code, did.Rule = codeChainTorn, fmt.Sprintf("what follows its last message is not there: %scompare the balances, and then repeat this with --operation %s", first, operation)
		did.note(d)
	}
	return did, err
}

// lostSaid has the audit log say by which cut-over an operation counted as lost, where a person has said it.
func (r *restoreMissing) lostSaid() string {
	if r.LostBefore.IsZero() {
		return ""
	}
	return ", as lost before " + r.LostBefore.UTC().Format(time.RFC3339Nano)
}

// would says what is done to an operation, for the dry run, by the outcome that it would have.
func would(made payments.Lost, outcome string) string {
	switch {
	case outcome == payments.ThereAlready:
		return "leave it as it is: nothing of it is missing"
	case outcome != payments.Restored:
		return "put its row back"
	case made.Released:
		return fmt.Sprintf("end %s %s as not made: its hold is released", made.Kind, made.ID)
	}
	return strings.Join(strings.Fields(fmt.Sprintf("make %s %s again", made.Kind, made.ID)), " ")
}

// refused says to the audit log that nothing was changed, where a person has to do it.
func refused(err error) error {
	if errors.As(err, new(*payments.ByHandError)) {
		return fmt.Errorf("%w: %w", operator.ErrRefused, err)
	}
	return err
}

// note tells a person in whole lines what is left of an operation: only its id leads back to it, and a table may cut it off.
func (m restored) note(d *idemctl.Desk) {
	d.Note(fmt.Sprintf("%s: %s: %s", m.Operation, m.Code, m.Rule))
}

// left is an operation that was not made again, or of which nobody knows.
func (m restored) left(err error) (restored, error) {
	var byHand *payments.ByHandError
	if errors.As(err, &byHand) {
		m.Code, m.Rule = byHand.Code, byHand.Rule
		return m, unlogged(err)
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
	lives, err := read[config.Drift]() // for how long a record answers
	if err != nil {
		return payments.Restorer{}, nil, err
	}
	if err := (payments.LedgerShards{Client: parts.Client, Table: cfg.PaymentsTable, Number: cfg.LedgerShards}).Same(ctx); err != nil {
		if errors.As(err, new(*idem.ConfigError)) {
			err = idemctl.Environment(err)
		}
		return payments.Restorer{}, nil, err
	}
	return payments.Restorer{
		Store: parts.Store, Messages: parts.Store, Ledger: payments.Table{Client: parts.Client, Name: cfg.PaymentsTable}, Charge: parts.Provider.Charge,
		Mint: storage.IDGenerator{Random: rand.Reader}, Retention: lives.Retention, Now: time.Now, Pause: idem.Pause,
	}, parts.Provider, nil
}

// gone is an operation of which something is missing, with all that the provider shows under its keys. operation is empty where the key is
// none of ours, or not known. trouble is why it can't be tried now.
type gone struct {
	operation idem.OperationID
	objects   []payments.Shown
	trouble   error
}

// lost are the operations of which the drift job says that no row accounts for their objects, oldest first: a payment comes before its
// refunds. unseen says what of the window is not among them.
func lost(ctx context.Context, w drift.Window, cut time.Time, provider *payments.Provider) (all []gone, unseen []restored, err error) {
	cfg, err := read[config.Drift]()
	if err != nil {
		return nil, nil, err
	}
	job, err := drift.Open(ctx, cfg, nil)
	if err != nil {
		return nil, nil, err
	}
	report, err := job.Check(ctx, w)
	if err != nil && !errors.As(err, new(*drift.UnreadableError)) { // rows that are there, and account for their own objects
		return nil, nil, err
	}
	for _, d := range report.Drifts {
		if d.Kind != drift.MissingHere || d.Entry != "" {
			continue
		}
		side := d.Sides[len(d.Sides)-1]
		kind := strings.TrimPrefix(side.What, "provider ")
		object, err := provider.Shown(ctx, kind, side.ID)
		if err != nil {
			all = append(all, gone{objects: []payments.Shown{{ID: side.ID, Kind: kind, Amount: side.Amount, Currency: side.Currency}}, trouble: err})
			continue
		}
		all = join(ctx, provider, all, object)
	}
	slices.SortStableFunc(all, func(a, b gone) int { return a.objects[0].CreatedAt.Compare(b.objects[0].CreatedAt) })
	return all, unseenOf(report, w, cut, cfg.Grace), nil
}

// unseenOf says what of the window nobody has looked at. What was made after the cut-over is not lost, however young it is.
func unseenOf(report drift.Report, w drift.Window, cut time.Time, grace time.Duration) (unseen []restored) {
	add := func(code, rule string, values ...any) {
		unseen = append(unseen, restored{Objects: []string{}, Code: code, Rule: fmt.Sprintf(rule, values...)})
	}
	if more := report.DriftCount() - len(report.Drifts); more > 0 {
		add(codeMore, "%d more objects are missing than one report lists: repeat the command, with a shorter window where none of these goes away", more)
	}
	end := w.To
	if cut.Before(end) {
		end = cut
	}
	if compared := report.Window.To; compared.Before(end.Truncate(time.Millisecond)) {
		add(codeTooYoung, "only what was made before %s was compared: what is younger than DRIFT_GRACE, %v, need not be listed yet. Repeat the command after %s",
			compared.Format(time.RFC3339), grace, end.Add(grace).UTC().Truncate(time.Second).Add(time.Second).Format(time.RFC3339))
	}
	if report.Unreadable > 0 {
		add(codeUnreadable, "%d rows, with their messages and records, can't be read, and were not compared: run idemctl drift with the release that wrote them, or correct them by hand", report.Unreadable)
	}
	return unseen
}

// join adds an object with all of its operation, unless that is there. The object is there itself: where the provider's listing does not
// show it, the listing is behind, and may lack others that decide what is made again.
func join(ctx context.Context, provider *payments.Provider, all []gone, object payments.Shown) []gone {
	operation, _, err := object.Key.Operation()
	if err != nil {
		return append(all, gone{objects: []payments.Shown{object}})
	}
	i := slices.IndexFunc(all, func(g gone) bool { return g.operation == operation })
	if i < 0 {
		objects, err := provider.MadeBy(ctx, operation, object.Kind)
		i, all = len(all), append(all, gone{operation, objects, err})
	}
	g := &all[i]
	if !slices.ContainsFunc(g.objects, func(o payments.Shown) bool { return o.ID == object.ID }) {
		g.objects = append(g.objects, object)
		g.trouble = cmp.Or(g.trouble, fmt.Errorf("the provider does not list %s %s under its key yet", object.Kind, object.ID))
	}
	return all
}
