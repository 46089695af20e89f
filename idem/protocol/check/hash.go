//go:build prove

package check

import (
	"math/bits"
	"reflect"
	"unsafe"
)

const stateWords = int(unsafe.Sizeof(state{}) / 8)

// headWords is how many words say which words of a state are not zero.
const headWords = (stateWords + 63) / 64

// encoder packs states: a state is mostly zeros, and its zero words are left out.
type encoder struct {
	// keep has a bit set for each bit of a state that is no padding.
	keep [stateWords]uint64
	buf  []uint64
}

func newEncoder() *encoder {
	e := &encoder{}
	e.mark(reflect.TypeFor[state](), 0)
	return e
}

func (e *encoder) mark(t reflect.Type, at uintptr) {
	switch t.Kind() {
	case reflect.Struct:
		for f := range t.NumField() {
			e.mark(t.Field(f).Type, at+t.Field(f).Offset)
		}
	case reflect.Array:
		for k := range t.Len() {
			e.mark(t.Elem(), at+uintptr(k)*t.Elem().Size())
		}
	default:
		for b := at; b < at+t.Size(); b++ {
			e.keep[b/8] |= 0xff << (8 * (b % 8))
		}
	}
}

// pack leaves the words in the encoder's buffer, until the next call.
func (e *encoder) pack(s *state) []uint64 {
	words := (*[stateWords]uint64)(unsafe.Pointer(s))
	var head [headWords]uint64
	buf := append(e.buf[:0], head[:]...)
	for from := 0; from < stateWords; from += block {
		to := from + block
		if to > stateWords {
			to = stateWords
		} else if *(*[block]uint64)(words[from:to]) == ([block]uint64{}) {
			continue
		}
		for i := from; i < to; i++ {
			if w := words[i] & e.keep[i]; w != 0 {
				buf[i/64] |= 1 << (i % 64)
				buf = append(buf, w)
			}
		}
	}
	e.buf = buf
	return buf
}

// block is how many words are compared with zero at once: packing is what an exploration does most.
const block = 32

type hash [2]uint64

func (e *encoder) hash(s *state) hash { return mix(e.pack(s)) }

func mix(words []uint64) hash {
	a, b := uint64(0x9e3779b97f4a7c15), uint64(0xc2b2ae3d27d4eb4f)
	for _, w := range words {
		hi, lo := bits.Mul64(a^w, 0xd6e8feb86659fd93)
		a = hi ^ lo ^ bits.RotateLeft64(a, 23)
		hi, lo = bits.Mul64(b^w^a, 0xa0761d6478bd642f)
		b = hi ^ lo ^ bits.RotateLeft64(b, 41)
	}
	return hash{a, b | 1} // never zero
}

// set is an open-addressing set of hashes.
type set struct {
	slots []hash
	n     int
}

func (t *set) add(h hash) bool {
	if 4*(t.n+1) > 3*len(t.slots) {
		old := t.slots
		t.slots, t.n = make([]hash, max(1<<12, 2*len(old))), 0
		for _, o := range old {
			if o != (hash{}) {
				t.add(o)
			}
		}
	}
	for i := h[0] & uint64(len(t.slots)-1); ; i = (i + 1) & uint64(len(t.slots)-1) {
		switch t.slots[i] {
		case h:
			return false
		case hash{}:
			t.slots[i] = h
			t.n++
			return true
		}
	}
}

// queue is a queue of packed states.
type queue struct {
	words []uint64
	at, n int
}

// reset empties the queue, and keeps its memory.
func (q *queue) reset() { q.words, q.at, q.n = q.words[:0], 0, 0 }

func (q *queue) push(packed []uint64) {
	q.words = append(q.words, packed...)
	q.n++
}

func (q *queue) pop(s *state) {
	*s = state{}
	words := (*[stateWords]uint64)(unsafe.Pointer(s))
	head := q.words[q.at : q.at+headWords]
	q.at += headWords
	for k, m := range head {
		for ; m != 0; m &= m - 1 {
			words[k*64+bits.TrailingZeros64(m)] = q.words[q.at]
			q.at++
		}
	}
}
