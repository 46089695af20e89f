package outbox_test

import "github.com/idem-go/idem-aws/idem"

// kept says which definite answers the message keeps.
func (w *world) kept(id idem.MessageID) (delivered, declined bool) {
	w.Helper()
	m := w.message(id)
	return m.KeptDelivered != nil, m.KeptDeclined != nil
}
