package stack

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/idem-go/idem-aws/infra/idemconstruct"
	"github.com/idem-go/idem-aws/infra/spec"
)

var provisionedForm = form{
	regexp.MustCompile(`^(off|[1-9][0-9]{0,6}-[1-9][0-9]{0,6})$`),
	"payments a second that there is always capacity for, and that capacity grows to: as 500-2000, each 1 to 1000000; off",
}

var accountUnitsForm = form{
	regexp.MustCompile(`^[1-9][0-9]{0,8}/[1-9][0-9]{0,8}$`),
	"the account's quotas of provisioned capacity, all tables/a table, as 80000/40000, and only with provisioned",
}

// readProvisioned reads for how many payments a second the tables of money have capacity that is paid by the hour.
func (r *reader) readProvisioned(config *Config) {
	const key, targetKey = "provisioned", "provisionedTarget"
	before := len(r.refused)
	target := r.within(targetKey, idemconstruct.TargetPercentDefault, 20, 90)
	account, table := r.accountUnits()
	value := r.matching(key, "off", provisionedForm)
	if value == "off" {
		if r.lookup(accountUnitsKey) != nil {
			r.refuse(accountUnitsKey, r.text(accountUnitsKey, ""), "nothing, unless provisioned has a range")
		}
		if r.lookup(targetKey) != nil {
			r.refuse(targetKey, strconv.Itoa(target), "nothing, unless provisioned has a range")
		}
		return
	}
	least, most, _ := strings.Cut(value, "-")
	// What is no number was refused.
	low, _ := strconv.Atoi(least)
	high, _ := strconv.Atoi(most)
	config.Provisioned = idemconstruct.Provisioned{
		Operations: spec.Range{Min: low, Max: high}, TargetPercent: target,
		// The units of a payment have the drift job's reads as an average; its pieces read as fast as they can.
		ReadBurst: config.DriftParts * spec.CompareRows,
	}
	if len(r.refused) > before {
		return // what follows would be about numbers that are refused
	}
	if low > high || high > spec.OperationsMax {
		r.refuse(key, value, "the smaller number first, and 1000000 at the most")
		return
	}
	r.provisionedAlone(*config, key, value)
	r.fitsUnits(config.Provisioned, value, account, table)
}

const accountUnitsKey = "accountUnits"

// accountUnits reads how many units of a kind the account may provision: in all, and for a table with its indexes.
func (r *reader) accountUnits() (account, table int) {
	all, one, _ := strings.Cut(r.matching(accountUnitsKey, fmt.Sprintf("%d/%d", spec.AccountUnitsDefault, spec.TableUnitsDefault), accountUnitsForm), "/")
	// What is no number was refused.
	account, _ = strconv.Atoi(all)
	table, _ = strconv.Atoi(one)
	return account, table
}

// fitsUnits refuses capacity that the tables could not grow to. Auto scaling does not look at the quotas when it is set up: a new
// table would deploy, and be throttled at the quota when it has to grow.
func (r *reader) fitsUnits(p idemconstruct.Provisioned, value string, account, table int) {
	all := spec.PaymentTables()
	writes, reads := p.All(all...)
	var tables []string
	fits := writes <= account && reads <= account
	for _, of := range all {
		w, rd := p.Whole(of.Units)
		fits = fits && w <= table && rd <= table
		tables = append(tables, fmt.Sprintf("%s %d/%d", of.Name, w, rd))
	}
	if !fits {
		r.refuse("provisioned", fmt.Sprintf("%s: write/read units at the most, with indexes: %s: %d/%d in all", value, strings.Join(tables, ", "), writes, reads), fmt.Sprintf(
			"at most %d of a table and %d in all, which is accountUnits: ask AWS for higher quotas, and say them there", table, account))
	}
}

// provisionedAlone refuses what says something else about the same capacity.
func (r *reader) provisionedAlone(config Config, key, value string) {
	if config.MaxThroughput != (idemconstruct.Throughput{}) {
		r.refuse("maxThroughput", r.text("maxThroughput", ""), "default, with provisioned: its second number is the bound on what a fault can cost")
	}
	if warm := config.WarmThroughput; warm != (idemconstruct.Throughput{}) {
		writes, reads := config.Provisioned.Most(spec.PaymentTables()...)
		if warm.Write < writes || warm.Read < reads {
			r.refuse("warmThroughput", r.text("warmThroughput", ""), fmt.Sprintf(
				"%d/%d or more of each, with provisioned=%s: a table is as warm as its capacity anyway", reads, writes, value))
		}
	}
	if config.Local {
		r.refuse(key, value, "off, with local=true: emulators scale nothing")
	}
	if config.Import.tables() != nil {
		r.refuse(key, value, "off, with import: the stack changes nothing of tables that are there")
	}
}
