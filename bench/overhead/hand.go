package main

import (
	"io"
	"net/http"

	"github.com/idem-go/idem-aws/bench/hand"
)

// byHand is a service that makes the calls itself.
type byHand struct{ hand.Hand }

// ServeHTTP answers a request whose key is in the header X-Key.
func (h byHand) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.ReadAll(r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := h.Send(r.Context(), r.Header.Get(keyHeader)); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	respond(w, r)
}
