package quota

// pace is how fast an instance gives out rights: what it gave out in the present span of time, and in the one before.
type pace struct{ span, given, before int64 }

// turn begins the span, if it is another, and says whether it is.
func (p *pace) turn(span int64) bool {
	if span == p.span {
		return false
	}
	before := p.given
	if span != p.span+1 {
		before = 0
	}
	*p = pace{span: span, before: before}
	return true
}

// block is how many rights are asked for at once: an eighth of what was given out lately, but at most a twentieth of the
// limit, and at least what would use up the limit in 100,000 calls.
func (p *pace) block(limit int64) int64 {
	return max(1, limit/100_000, min(max(p.given, p.before)/8, limit/20))
}
