package quota

// rateWindow is how fast an instance gives out rights: what it gave out in the present span of time, and in
// the one before.
type rateWindow struct{ span, given, before int64 }

// turn begins the span, if it is another, and says whether it is.
func (r *rateWindow) turn(span int64) bool {
	if span == r.span {
		return false
	}
	before := r.given
	if span != r.span+1 {
		before = 0
	}
	*r = rateWindow{span: span, before: before}
	return true
}

// block is how many rights are asked for at once: an eighth of what was given out lately, but at most a twentieth of the
// limit, and at least what would use up the limit in 100,000 calls.
func (r *rateWindow) block(limit int64) int64 {
	return max(1, limit/100_000, min(max(r.given, r.before)/8, limit/20))
}
