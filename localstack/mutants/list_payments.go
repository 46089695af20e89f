package mutants

const (
	settlementsFile = "functions/internal/payments/settle.go"
	paymentRowsFile = "functions/internal/payments/rows.go"
	createFile      = "functions/internal/payments/create.go"
	readFile        = "functions/internal/payments/read.go"
)

// applications: what the payments application itself decides. Stories of the simulator should notice, however they are drawn.
var applications = []Mutant{
	{Name: "a payout that is not made gives its funds back twice", File: settlementsFile, Old: "Credit{Tenant: p.Tenant, Account: p.From, Amount: p.Amount, Currency: p.Currency}", New: "Credit{Tenant: p.Tenant, Account: p.From, Amount: 2 * p.Amount, Currency: p.Currency}"},
	{Name: "a payment is refunded beyond its amount", File: paymentRowsFile, Old: " && p.Refunded <= w.Paid-w.Amount", New: ""},
	{Name: "a decline is settled as a success", File: settlementsFile, Old: "		return StatusDeclined, o.Reference, nil", New: "		return StatusSucceeded, o.Reference, nil"},
	{Name: "an account is overdrawn", File: paymentRowsFile, Old: "a.Currency == currency && a.Balance >= max(0, -delta)", New: "a.Currency == currency"},
	{Name: "the hold of a payout that was declined stands", File: settlementsFile, Old: "		return following(outbox.Next{Topic: TopicReleases, Undoes: true}, release{payout: c, Because: becauseDeclined, Declined: o.Reference})", New: "		p := c.entity(m.Tenant)\n		p.Status, p.ProviderReference = StatusDeclined, o.Reference\n		return endOfPayout(p, payoutDeclined(\"Declined.\"))"},
	{Name: "a tenant reads another's payment", File: readFile, Old: "	p, err := r.ledger.Payment(ctx, tenant, id)\n", New: "	p, err := r.ledger.Payment(ctx, tenant, id)\n	if p == nil {\n		p, err = r.ledger.Payment(ctx, \"tenant-a\", id)\n	}\n"},
	{Name: "a refund that was declined stays reserved", File: settlementsFile, Old: "	if r.Status != StatusSucceeded {", New: "	if r.Status == StatusFailed {"},
	{Name: "a transfer to a collecting account is credited, and waits too", File: createFile, Old: "	} else {\n		tx.Write(Credit{", New: "	}\n	{\n		tx.Write(Credit{"},
	{Name: "a transfer debits nobody", File: createFile, Old: "	tx.Write(Debit{Tenant: t.Tenant, Account: t.From, Amount: t.Amount, Currency: t.Currency})\n", New: ""},
	{Name: "what was folded is folded again", File: paymentRowsFile, Old: "return row.Partition == t.Partition }", New: "return true }"},
}

// resources: whose request it is. It takes some hundred stories until two clients of one key ask for refunds of two payments.
var resources = []Mutant{
	{Name: "stories: another payment's refund is the same request", File: "idem/middleware/selection.go", Old: "		values = append(values, value)\n", New: "		values = append(values, value[:0])\n"},
}

// losses: what a restore has lost.
var losses = []Mutant{
	{Name: "what a loss has taken is old enough to have expired", File: "functions/internal/drift/untraced.go", Old: " && o.CreatedAt.Before(r.rules.lost) {", New: " && o.CreatedAt.Before(r.rules.lost) && false {"},
}

// balances: what an account is corrected by.
var balances = []Mutant{
	{Name: "an account is corrected by rows that lack a transfer", File: "functions/cmd/idemctl/account_compare.go", Old: "	case lack != nil:\n", New: "	case lack != nil && false:\n"},
	{Name: "one account is corrected whatever transfers lack their rows", File: "functions/cmd/idemctl/account_compare.go", Old: "	if c.Account != \"\" && !c.Correct {\n", New: "	if c.Account != \"\" {\n"},
}
