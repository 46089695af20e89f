package stack

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/idem-go/idem-aws/infra/idemconstruct"
)

const throughputDefault = "default"

var throughputForm = form{regexp.MustCompile(`^(default|[1-9][0-9]{0,8}/[1-9][0-9]{0,8})$`), "read units/write units per second, as 20000/10000; default"}

// The least that a new table serves at once, which is the least that it can be asked for.
const (
	warmReadsMin  = 12_000
	warmWritesMin = 4_000
)

// throughput is the value of a key that has one.
func (r *reader) throughput(key string) idemconstruct.Throughput {
	reads, writes, _ := strings.Cut(r.matching(key, throughputDefault, throughputForm), "/")
	// What is no number was refused, or is the default.
	read, _ := strconv.Atoi(reads)
	write, _ := strconv.Atoi(writes)
	return idemconstruct.Throughput{Read: read, Write: write}
}

// throughputs reads what the tables of money serve at once, and at the most.
func (r *reader) throughputs(config *Config) {
	config.WarmThroughput, config.MaxThroughput = r.throughput("warmThroughput"), r.throughput("maxThroughput")
	warm, most, none := config.WarmThroughput, config.MaxThroughput, idemconstruct.Throughput{}
	if warm != none && (warm.Read < warmReadsMin || warm.Write < warmWritesMin) {
		r.refuse("warmThroughput", r.text("warmThroughput", ""), "12000/4000 or more of each: a table has that anyway")
	}
	if warm != none && most != none && (most.Read < warm.Read || most.Write < warm.Write) {
		r.refuse("maxThroughput", r.text("maxThroughput", ""), "at least warmThroughput")
	}
	if config.Local && (warm != none || most != none) {
		r.refuse("warmThroughput", r.text("warmThroughput", throughputDefault), "default, and so maxThroughput, with local=true: emulators have none")
	}
}
