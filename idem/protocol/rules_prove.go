//go:build prove

package protocol

// Rules is a set of rules that are removed.
type Rules [2]uint64

// Without removes these rules.
func Without(rules ...Rule) (r Rules) {
	for _, rule := range rules {
		r[rule/64] |= 1 << (rule % 64)
	}
	return r
}

// Has says whether the rule is removed.
func (r *Rules) Has(rule Rule) bool { return r[rule/64]&(1<<(rule%64)) != 0 }

// Planted are rules that are removed from every machine of this process, whatever its [Config] says: package sim plants
// them in the real engine and workers. It is set while nothing runs.
var Planted Rules

// switches is what [Config] has in the checker's build.
type switches struct{ Off Rules }

func (s *switches) off(r Rule) bool { return s.Off.Has(r) || Planted.Has(r) }
