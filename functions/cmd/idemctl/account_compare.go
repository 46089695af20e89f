package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/idem/storage"
)

// compareAccounts compares balances with the transfers and payouts that they are made of, and what payments say was refunded with their
// refunds: a restored table may hold a part of a transaction. It also lets collecting accounts be folded again after a loss of data.
type compareAccounts struct {
	Account string    `arg:"" optional:"" help:"Id of the account, or the first six characters of it, or more, where no other account of the tenant begins so. Default: all accounts and payments of all tenants, and the transfers that were answered and are not there."`
	Tenant  string    `help:"The tenant that owns the account. Required with one."`
	From    time.Time `help:"Without an account: look only at transfers, payouts and refunds that were asked for since, RFC 3339. Default: all that have a record."`
	Correct bool      `help:"Put back the transfers that are not there, and correct the balances, and what was refunded, where they differ."`
	idemctl.Reasoned
}

// Validate judges the command line.
func (c *compareAccounts) Validate() error {
	switch {
	case c.Account == "" && c.Tenant != "":
		return errors.New("--tenant goes with the id of an account")
	case c.Account == "":
		return nil
	case !c.From.IsZero():
		return errors.New("--from goes without the id of an account")
	}
	return checkTenant(c.Tenant)
}

// comparison is the command's answer.
type comparison struct {
	// Compared is how many accounts were compared.
	Compared int `json:"compared"`
	// Transfers are those that were answered with 201 and whose row is not there.
	Transfers []answeredTransfer `json:"transfers"`
	// Accounts are those whose totals differ from their rows, those whose rows lack one, and those that nothing is folded into.
	Accounts []comparedAccount `json:"accounts"`
	// Payments are those that differ from their refunds, and those whose refunds lack one.
	Payments []refundedPayment `json:"payments"`
}

// answeredTransfer is a transfer that a record tells of and no row.
type answeredTransfer struct {
	Operation idem.OperationID `json:"operation_id"`
	ID        string           `json:"id,omitempty"`
	Tenant    string           `json:"tenant,omitempty"`
	From      string           `json:"from,omitempty"`
	To        string           `json:"to,omitempty"`
	Amount    int64            `json:"amount,omitempty"`
	Currency  string           `json:"currency,omitempty"`
	decided
	// made is its row as it will be.
	made *payments.Transfer
}

// comparedAccount is an account beside its rows.
type comparedAccount struct {
	Account string `json:"account"`
	Tenant  string `json:"tenant"`
	Balance int64  `json:"balance"`
	// Held says that nothing is folded into the account before it was compared.
	Held bool `json:"held"`
	// Totals is what the account says was moved and folded, Rows what its transfers and payouts say.
	Totals payments.Totals `json:"totals"`
	Rows   payments.Totals `json:"rows"`
	// Lacks is what is added to the balance to correct it.
	Lacks int64 `json:"lacks"`
	decided
	agrees bool
}

// decided is what was done, or would be; Did is empty where it is left to a person, who is told by Code and Rule.
type decided struct {
	Did  string `json:"did,omitempty"`
	Code string `json:"code,omitempty"`
	Rule string `json:"rule,omitempty"`
}

// The codes of what is left to a person, beside codeTrouble.
const (
	codeDiffers        = "differs"
	codeSpent          = "spent"
	codeMoves          = "moves"
	codeNotDated       = "not_dated"
	codeAccountMissing = "account_missing"
	codeTransferLost   = "transfer_missing"
	codePayoutLost     = "payout_missing"
	codeRefundLost     = "refund_missing"
)

// Run implements the command.
func (c *compareAccounts) Run(d *idemctl.Desk) error {
	books, err := openBooks(d.Context())
	if err != nil {
		return err
	}
	answer := comparison{Accounts: []comparedAccount{}}
	transfers, lacks, trouble, err := c.transfers(d, books) // first, because balances are compared with what is put back
	if err != nil {
		return err
	}
	unread, err := c.rowless(d, books, lacks)
	if err != nil {
		return err
	}
	trouble = errors.Join(trouble, unread)
	if answer.Payments, err = c.refunds(d.Context(), books.table); err != nil { // later than that, as a row may be put back in between
		return err
	}
	if answer.Payments, err = c.lackingRefunds(d.Context(), books.table, answer.Payments, lacks); err != nil {
		return err
	}
	answer.Transfers = transfers
	accounts, none := c.accounts(d, books.table)
	if none != nil && !operator.Refused(none) {
		return none
	}
	rows, err := c.rows(d, books.table, transfers)
	if err != nil {
		return err
	}
	if answer.Accounts = append(answer.Accounts, c.gone(accounts, rows, lacks)...); len(answer.Accounts) > 0 {
		accounts = nil
	} else if none != nil {
		return none
	}
	c.named(d, accounts)
	again := rows
	if slices.ContainsFunc(accounts, func(a payments.Account) bool { return a.Totals() != rows[a.Name()] }) {
		if again, err = c.rows(d, books.table, transfers); err != nil {
			return err
		}
	}
	answer.Compared = len(accounts)
	for _, a := range accounts {
		held, lack := a.Collects() && books.lost.After(a.ComparedTo), lacks.of(a.Name())
		if c.Account == "" && !held && lack == nil && a.Totals() == rows[a.Name()] {
			continue
		}
		if lack == nil && again[a.Name()] != rows[a.Name()] {
			lack = &moving
		}
		did, err := c.one(d, books, a, rows[a.Name()], held, lack)
		answer.Accounts, trouble = append(answer.Accounts, did), errors.Join(trouble, err)
	}
	if c.Account == "" {
		answer.Accounts = append(answer.Accounts, nameless(accounts, rows, lacks)...)
	}
	trouble = errors.Join(trouble, c.correctRefunds(d, books.table, answer.Payments, lacks))
	if err := d.Show(answer, answer.lines(c.Write)...); err != nil || trouble != nil {
		return errors.Join(trouble, err)
	}
	if answer.left() > 0 {
		return idemctl.ErrDiffers
	}
	return nil
}

// rows add up what the accounts' rows say, with those that are put back. They are added up twice where an account differs: a transaction
// that is being committed may show in an account before it shows in its row.
func (c *compareAccounts) rows(d *idemctl.Desk, table payments.Table, transfers []answeredTransfer) (payments.RowTotals, error) {
	rows, err := table.Rows(d.Context())
	for _, t := range transfers {
		if err == nil && t.made != nil && !(c.Correct && c.Write) { // what is compared is how it will be
			rows.Transfer(*t.made)
		}
	}
	return rows, err
}

// books is what the command compares.
type books struct {
	table    payments.Table
	answered payments.Answered
	rowless  payments.Rowless
	// lost is up to when data may have been lost.
	lost time.Time
}

func openBooks(ctx context.Context) (books, error) {
	cfg, parts, err := wired(ctx)
	if err != nil {
		return books{}, err
	}
	lost, err := parts.Store.RefuseBefore(ctx)
	if errors.Is(err, storage.ErrLossNotDated) { // balances are corrected by rows, and only folding waits for the instant
		err = nil
	}
	table := payments.Table{Client: parts.Client, Name: cfg.PaymentsTable}
	return books{
		table, payments.Answered{Table: table, Records: cfg.IdempotencyTable, Store: parts.Store},
		payments.Rowless{Table: table, Records: cfg.IdempotencyTable, Store: parts.Store, Messages: parts.Store}, lost,
	}, err
}

// accounts are those that the command line asks for. They are read before the rows.
func (c *compareAccounts) accounts(d *idemctl.Desk, table payments.Table) ([]payments.Account, error) {
	if c.Account == "" {
		return table.Accounts(d.Context())
	}
	if !storable(c.Tenant, c.Account) {
		return nil, operator.ErrNotFound
	}
	found, err := table.Account(d.Context(), c.Tenant, c.Account)
	switch {
	case err != nil:
		return nil, err
	case found != nil:
		return []payments.Account{*found}, nil
	}
	return c.beginning(d, table)
}

// accountsMax is how many accounts are listed that begin alike.
const accountsMax = 20

// beginning is the account whose id begins as the command line says. The table is read whole for it, as it is to compare.
func (c *compareAccounts) beginning(d *idemctl.Desk, table payments.Table) ([]payments.Account, error) {
	if operator.CheckBeginning(c.Account) != nil { // it is a whole id, or none
		return nil, operator.ErrNotFound
	}
	all, err := table.Accounts(d.Context())
	if err != nil {
		return nil, err
	}
	var found []payments.Account
	var ids []string
	for _, a := range all {
		if a.Tenant == c.Tenant && strings.HasPrefix(a.ID, c.Account) {
			found, ids = append(found, a), append(ids, a.ID)
		}
	}
	switch {
	case len(found) == 0:
		return nil, operator.ErrNotFound
	case len(found) > 1:
		slices.Sort(ids)
		most := min(len(ids), accountsMax)
		return nil, &operator.AmbiguousError{What: "accounts", Begins: c.Account, IDs: ids[:most], More: most < len(ids)}
	}
	return found, nil
}

// gone is the account of the very id that the command line says, where it is not there and rows, or what lacks a row, name it: one whose id
// begins so is another one.
func (c *compareAccounts) gone(accounts []payments.Account, rows payments.RowTotals, lacks lacking) []comparedAccount {
	name := payments.AccountName{Tenant: c.Tenant, ID: c.Account}
	totals, named := rows[name]
	if c.Account == "" || !named && lacks.accounts[name] == nil {
		return nil
	}
	return nameless(accounts, map[payments.AccountName]payments.Totals{name: totals}, lacks)
}

// named says which account the beginning of an id has led to.
func (c *compareAccounts) named(d *idemctl.Desk, accounts []payments.Account) {
	if c.Account != "" && len(accounts) > 0 && accounts[0].ID != c.Account {
		d.Note(c.Account + " is " + accounts[0].ID)
	}
}

// transfers puts back those that are not there, where all accounts are compared. For one account it only looks for them, before a correction.
// trouble is what repeating the command may not meet again.
func (c *compareAccounts) transfers(d *idemctl.Desk, b books) (all []answeredTransfer, lacks lacking, trouble, err error) {
	all, lacks = []answeredTransfer{}, newLacking()
	if c.Account != "" && !c.Correct {
		return all, lacks, nil, nil
	}
	found, err := b.answered.Transfers(d.Context(), c.From)
	for _, lost := range found {
		if c.Account != "" {
			lacks.add(lost, lack{codeTransferLost, fmt.Sprintf("transfer %s of it was answered with 201, and its row is not there: compare all accounts, which puts it back", lost.Transfer.ID)})
			if lost.Trouble != nil && lost.Tenant == c.Tenant {
				trouble = errors.Join(trouble, troubleOf(lost.Operation, "transfer", lost.Transfer.ID, lost.Trouble))
			}
			continue
		}
		did, err := c.putBack(d, b, lost)
		if err != nil {
			lacks.add(lost, lack{codeTrouble, fmt.Sprintf("transfer %s of it may not be among its rows yet: nothing is corrected before it is", lost.Transfer.ID)})
		}
		all, trouble = append(all, did), errors.Join(trouble, err)
	}
	return all, lacks, trouble, err
}

// putBack makes the row of one transfer again, where that is asked for.
func (c *compareAccounts) putBack(d *idemctl.Desk, b books, lost payments.AnsweredTransfer) (answeredTransfer, error) {
	t := lost.Transfer
	did := answeredTransfer{Operation: lost.Operation, ID: t.ID, Tenant: lost.Tenant, From: t.From, To: t.To, Amount: t.Amount, Currency: t.Currency, made: &t}
	if lost.Trouble != nil {
		did.made = nil
		return did, did.trouble(troubleOf(lost.Operation, "transfer", t.ID, lost.Trouble))
	}
	if !c.Correct {
		did.leave(codeTransferLost, "its client was told 201, and its row is not there: --correct puts the row back, and then corrects the balances by it")
		return did, nil
	}
	result, err := d.Do(operator.Task{
		Name: "account compare", Subject: string(lost.Operation), Tenant: t.Tenant, Would: "put back transfer " + t.ID,
		Act: func(ctx context.Context) (string, error) {
			return "put back transfer " + t.ID, b.table.PutBack(ctx, t)
		},
	}, c.Change())
	return did, did.done(result, err)
}

// one compares one account, whose rows lack something unless lack is nil. Its error is one that repeating the command may not meet again.
func (c *compareAccounts) one(d *idemctl.Desk, b books, a payments.Account, rows payments.Totals, held bool, lack *lack) (comparedAccount, error) {
	did := comparedAccount{
		Account: a.ID, Tenant: a.Tenant, Balance: a.Balance, Held: held, Totals: a.Totals(), Rows: rows, Lacks: a.Totals().Lacks(rows),
	}
	agree, would := did.Totals == rows, did.would()
	switch {
	case agree && !held && lack == nil: // one that agrees and lacks a row was not debited either: the payout's, and the debit's, are both gone
		did.agrees = true
		return did, nil
	case lack != nil:
		did.leave(lack.code, lack.rule)
		return did, nil
	case !agree && moves(d.Context(), b.table, a):
		did.leave(moving.code, moving.rule)
		return did, nil
	case held && a.ComparedTo.IsZero():
		did.leave(codeNotDated, "the account does not say since when it adds up what is folded: inspect its item")
		return did, nil
	case !agree && !c.Correct:
		did.leave(codeDiffers, "--correct is needed to "+would)
		return did, nil
	case a.Balance+did.Lacks < 0:
		did.leave(codeSpent, fmt.Sprintf("to %s. The balance is %d: the rest is spent already. Raise it first", would, a.Balance))
		return did, nil
	}
	name := rand.Text()
	result, err := d.Do(operator.Task{
		Name: "account compare", Subject: a.ID, Tenant: a.Tenant, Would: would,
		Act: func(ctx context.Context) (string, error) {
			return would, refusedAccount(b.table.Compared(ctx, a, rows, b.lost, name))
		},
	}, c.Change())
	if errors.Is(err, payments.ErrNotCompared) {
		did.leave(moving.code, moving.rule)
		return did, unlogged(err)
	}
	return did, did.done(result, err)
}

// unlogged is what is left of an error where the answer says the rest: that the audit log could not be told.
func unlogged(err error) error {
	if missing := (*operator.UnloggedError)(nil); errors.As(err, &missing) {
		return missing
	}
	return nil
}

// moves says whether an account is not any more as it was read, so that its rows may be younger than it. Where it can't be read, its
// correction finds out.
func moves(ctx context.Context, table payments.Table, seen payments.Account) bool {
	now, err := table.Account(ctx, seen.Tenant, seen.ID)
	return err == nil && (now == nil || now.Totals() != seen.Totals())
}

// would says what is done, for the dry run and for the audit log.
func (a comparedAccount) would() string {
	if a.Totals == a.Rows {
		return "fold again: " + a.agreement()
	}
	again := ""
	if a.Held {
		again = ", and fold again"
	}
	return fmt.Sprintf("change the balance by %+d%s: the account has %s, and its rows have %s", a.Lacks, again, said(a.Totals), said(a.Rows))
}

func (a comparedAccount) agreement() string {
	return "the account and its rows agree on " + said(a.Rows)
}

func said(t payments.Totals) string {
	return fmt.Sprintf("%d movements (%+d in all) and %d folded transfers (%d in all)", t.Moved.Movements, t.Moved.Amount, t.Folded.Transfers, t.Folded.Amount)
}

// nameless are the accounts that rows name and that are not there.
func nameless(accounts []payments.Account, rows map[payments.AccountName]payments.Totals, lacks lacking) (missing []comparedAccount) {
	there := map[payments.AccountName]bool{}
	for _, a := range accounts {
		there[a.Name()] = true
	}
	for name, totals := range rows {
		if !there[name] {
			one := comparedAccount{Account: name.ID, Tenant: name.Tenant, Rows: totals, Lacks: payments.Totals{}.Lacks(totals)}
			if lack := lacks.of(name); lack != nil { // what it would be made again with is not known
				one.leave(lack.code, lack.rule)
			} else {
				one.leave(codeAccountMissing, fmt.Sprintf("its rows are there, and the account is not: make it again with the balance that your books prove less %d, which --correct adds then", one.Lacks))
			}
			missing = append(missing, one)
		}
	}
	slices.SortFunc(missing, func(a, b comparedAccount) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Account, b.Account))
	})
	return missing
}

func (d *decided) leave(code, rule string) { d.Code, d.Rule = code, rule }

func (d *decided) trouble(err error) error {
	d.leave(codeTrouble, err.Error())
	return err
}

// done notes how a task ended.
func (d *decided) done(result operator.Result, err error) error {
	if idemctl.Unfinished(err) {
		return d.trouble(err)
	}
	d.Did = result.Outcome
	return err
}

// left is how much is left to a person.
func (c comparison) left() (n int) {
	for _, t := range c.Transfers {
		n += t.left()
	}
	for _, a := range c.Accounts {
		n += a.left()
	}
	for _, p := range c.Payments {
		n += p.left()
	}
	return n
}

func (d decided) left() int {
	if d.Code == "" {
		return 0
	}
	return 1
}

func (d decided) line(written bool) string {
	switch {
	case d.Code != "":
		return d.Code + ": " + d.Rule
	case written:
		return d.Did
	}
	return "dry run: would " + d.Did
}

func (c comparison) lines(written bool) []string {
	var lines []string
	for _, t := range c.Transfers {
		lines = append(lines, fmt.Sprintf("%s, transfer %s of %s, %d %s from %s to %s: %s", t.Operation, t.ID, t.Tenant, t.Amount, t.Currency, t.From, t.To, t.line(written)))
	}
	for _, a := range c.Accounts {
		line := a.line(written)
		if a.agrees {
			line = a.agreement()
		}
		lines = append(lines, fmt.Sprintf("%s of %s: %s", a.Account, a.Tenant, line))
	}
	for _, p := range c.Payments {
		lines = append(lines, fmt.Sprintf("payment %s of %s: %s", p.Payment, p.Tenant, p.line(written)))
	}
	return append(lines, fmt.Sprintf("accounts compared: %d; left to you: %d", c.Compared, c.left()))
}
