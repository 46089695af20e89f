package storage

import (
	"fmt"
	"math"
)

// PayloadBytesMax bounds the payload of a message: with the largest evidence that is kept beside it and all else that a message
// has, it fits into an item of DynamoDB, which has at most 400 KiB. A message with a larger one could be called for, and not keep
// what came of it. Larger data belongs elsewhere, and its name into the payload.
const PayloadBytesMax = 240 << 10

// ResponseHeaderBytesMax bounds the headers of a stored response, names and values together. They lie in the record's own item, which
// DynamoDB bounds to 400 KiB. Only a body has items of its own.
const ResponseHeaderBytesMax = 64 << 10

// CheckSize returns [ErrResponseTooLarge] for a response that has more than bytesMax bytes, headers included, or headers of more than
// headerBytesMax, names and values together. More than [ResponseHeaderBytesMax] are never stored.
func (r Response) CheckSize(bytesMax, headerBytesMax int) error {
	n := r.Bytes()
	if n > bytesMax {
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrResponseTooLarge, n, bytesMax)
	}
	headerBytesMax = min(headerBytesMax, ResponseHeaderBytesMax)
	if header := n - len(r.Body); header > headerBytesMax {
		return fmt.Errorf("%w: its headers have %d bytes, at most %d are allowed", ErrResponseTooLarge, header, headerBytesMax)
	}
	return nil
}

// ResponseBound is a store that says how large a response it takes. idem.New compares the engine's bound with it:
// otherwise the store would refuse a response only after the work is done.
type ResponseBound interface {
	// ResponseBytesMax is the size of the largest response that is stored, headers included, in bytes.
	ResponseBytesMax() int
}

// ResponseBytesMaxOf is the bound of a [ResponseBound], math.MaxInt for any other store. Decorators pass it on.
func ResponseBytesMaxOf(store any) int {
	if bound, ok := store.(ResponseBound); ok {
		return bound.ResponseBytesMax()
	}
	return math.MaxInt
}

// Decrypter is a store that decrypts what it reads.
type Decrypter interface {
	// Decrypts says whether it does. What such a store returns as Sealed nobody can open any more: its key was erased, or it is not what was
	// encrypted.
	Decrypts() bool
}

// Decrypts says whether a store is a [Decrypter] that decrypts: of any other one nobody knows who could open what it returns as Sealed.
// Decorators pass it on.
func Decrypts(store any) bool {
	decrypter, ok := store.(Decrypter)
	return ok && decrypter.Decrypts()
}
