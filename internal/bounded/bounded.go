// Package bounded reads what may be longer than its reader wants to hold.
package bounded

import (
	"io"
	"math"
)

// Read reads up to bytesMax bytes, and one more where there is one: longer says that there was. With a bound of [math.MaxInt64] it reads
// all, since one byte more than that is no number, and io.LimitReader would read nothing for it. Beside an error there is what came
// before it.
func Read(from io.Reader, bytesMax int64) (body []byte, longer bool, err error) {
	body, err = io.ReadAll(io.LimitReader(from, min(bytesMax, math.MaxInt64-1)+1))
	return body, int64(len(body)) > bytesMax, err
}
