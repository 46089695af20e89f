package seal

import (
	"encoding/binary"
	"errors"

	"github.com/idem-go/idem-aws/idem/storage"
)

// pack puts headers and body together: the number of headers, each name and value with its length, then the body.
func pack(r storage.Response) []byte {
	b := make([]byte, 0, r.Bytes()+OverheadBytes/64)
	b = binary.AppendUvarint(b, uint64(len(r.Header)))
	for _, field := range r.Header {
		for _, part := range []string{field.Name, field.Value} {
			b = binary.AppendUvarint(b, uint64(len(part)))
			b = append(b, part...)
		}
	}
	return append(b, r.Body...)
}

var errPacked = errors.New("seal: the encrypted response is malformed")

// unpack undoes pack. What it reads is authentic, so an error is another release's doing.
func unpack(status int, b []byte) (storage.Response, error) {
	r := storage.Response{Status: status}
	count, b, ok := number(b)
	if !ok || count > uint64(len(b)) {
		return r, errPacked
	}
	for range count {
		var field storage.Field
		for _, part := range []*string{&field.Name, &field.Value} {
			var size uint64
			if size, b, ok = number(b); !ok || size > uint64(len(b)) {
				return r, errPacked
			}
			*part, b = string(b[:size]), b[size:]
		}
		r.Header = append(r.Header, field)
	}
	r.Body = b
	return r, nil
}

func number(b []byte) (n uint64, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 {
		return 0, nil, false
	}
	return n, b[size:], true
}

// empty says that there is no response: nothing to seal.
func empty(r storage.Response) bool { return r.Status == 0 && r.Bytes() == 0 }
