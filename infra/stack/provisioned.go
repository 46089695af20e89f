package stack

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/idem-go/idem-aws/infra/idemconstruct"
	"github.com/idem-go/idem-aws/infra/spec"
)

// paymentUnits are what one payment consumes of the payments table: its row is made and settled, each in a transaction, and its place
// in the ledger never changes. It is read when somebody asks for it, and by three passes of the drift job.
var paymentUnits = spec.Units{Writes: 4, Reads: 4, IndexWrites: 1, IndexReads: 1}

// paymentsMax keeps every capacity below what DynamoDB's API takes.
const paymentsMax = 1_000_000

var provisionedForm = form{
	regexp.MustCompile(`^(off|[1-9][0-9]{0,6}-[1-9][0-9]{0,6})$`),
	"payments a second that there is always capacity for, and that capacity grows to: as 500-5000, each 1 to 1000000; off",
}

// readProvisioned reads for how many payments a second the tables of money have capacity that is paid by the hour.
func (r *reader) readProvisioned(config *Config) {
	const key, targetKey = "provisioned", "provisionedTarget"
	before := len(r.refused)
	target := r.within(targetKey, idemconstruct.TargetPercentDefault, 20, 90)
	value := r.matching(key, "off", provisionedForm)
	if value == "off" {
		if r.lookup(targetKey) != nil {
			r.refuse(targetKey, strconv.Itoa(target), "nothing, unless provisioned has a range")
		}
		return
	}
	least, most, _ := strings.Cut(value, "-")
	// What is no number was refused.
	low, _ := strconv.Atoi(least)
	high, _ := strconv.Atoi(most)
	config.Provisioned = idemconstruct.Provisioned{Operations: spec.Range{Min: low, Max: high}, TargetPercent: target}
	if len(r.refused) > before {
		return // what follows would be about numbers that are refused
	}
	if low > high || high > paymentsMax {
		r.refuse(key, value, "the smaller number first, and 1000000 at the most")
		return
	}
	r.provisionedAlone(*config, key, value)
}

// provisionedAlone refuses what says something else about the same capacity.
func (r *reader) provisionedAlone(config Config, key, value string) {
	if config.MaxThroughput != (idemconstruct.Throughput{}) {
		r.refuse("maxThroughput", r.text("maxThroughput", ""), "default, with provisioned: its second number is the bound on what a fault can cost")
	}
	if warm := config.WarmThroughput; warm != (idemconstruct.Throughput{}) {
		writes, reads := config.Provisioned.Most(spec.RecordUnits, spec.MessageUnits, paymentUnits)
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
