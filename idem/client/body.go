package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/idem-go/idem-aws/internal/bounded"
)

// payload is a request's body, as often as it is needed.
type payload struct {
	// open is nil for no body.
	open   func() (io.ReadCloser, error)
	length int64
}

// heldBack is a body that looks at the age of its key whenever it is read. net/http reads it once it has a connection, and the
// machine may have been suspended while that was made. Without all of its body a request is none.
type heldBack struct {
	io.ReadCloser
	tooOld func() error
}

// Read implements io.Reader.
func (b heldBack) Read(p []byte) (int, error) {
	if err := b.tooOld(); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(p)
}

// replayable makes a payload of the request's body, which it closes: by GetBody where there is one, else buffered.
func replayable(req *http.Request, bytesMax int64) (payload, error) {
	kept, err := buffered(req, bytesMax)
	if err != nil {
		err.Earlier = earlier(req)
		return payload{}, err
	}
	return kept, nil
}

func buffered(req *http.Request, bytesMax int64) (payload, *BodyError) {
	if req.Body == nil || req.Body == http.NoBody {
		return payload{}, nil
	}
	defer req.Body.Close()
	if req.GetBody != nil {
		return payload{open: req.GetBody, length: req.ContentLength}, nil
	}
	if req.ContentLength > bytesMax {
		return payload{}, &BodyError{BytesMax: bytesMax}
	}
	// As net/http does: the end of the context ends the reading of a body, too.
	stop := context.AfterFunc(req.Context(), func() { req.Body.Close() })
	raw, longer, err := bounded.Read(req.Body, bytesMax)
	stop()
	switch {
	case req.Context().Err() != nil:
		return payload{}, &BodyError{Cause: req.Context().Err()}
	case err != nil:
		return payload{}, &BodyError{Cause: err}
	case longer:
		return payload{}, &BodyError{BytesMax: bytesMax}
	case req.ContentLength > 0 && int64(len(raw)) != req.ContentLength:
		return payload{}, &BodyError{Cause: fmt.Errorf("it has %d bytes, but the request's ContentLength is %d", len(raw), req.ContentLength)}
	case len(raw) == 0:
		return payload{}, nil
	}
	return payload{open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }, length: int64(len(raw))}, nil
}
