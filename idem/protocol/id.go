package protocol

// ID is a random identity of 128 bits: an execution, an incarnation of a key, a revision of a row. Zero is none.
type ID [2]uint64

// None says that there is no identity.
func (id ID) None() bool { return id == ID{} }

// Plus derives the n-th identity from a random one. Two executions never derive the same: their seeds are random.
func (id ID) Plus(n uint64) ID {
	low := id[1] + n
	if low < n {
		id[0]++
	}
	id[1] = low
	return id
}

// Instant is a time in milliseconds since the Unix epoch. Zero is none.
type Instant int64

// Millis is a span of time in milliseconds.
type Millis = Instant

// Purpose is what a transaction is for. Two purposes never share a token.
type Purpose uint8

// The purposes of transactions.
const (
	ForCommit Purpose = iota + 1
	ForSettle
	ForKeep
	ForFail
)

// Token names the frozen bytes of one transaction: a store that has executed them answers a second sending with success.
// Zero is none: the write is not a transaction.
type Token struct {
	// Seed is random, For what the transaction is for, and N its number among those of one execution or delivery.
	Seed ID
	For  Purpose
	N    uint8
}
