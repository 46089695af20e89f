package middleware

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
)

// Request is what a handler is given. Each run of a handler gets its own copy, body included.
type Request struct {
	// HTTP is the request as it arrived. Its body can be read again.
	HTTP *http.Request
	// Identity is the caller, as Config.Identify returned it.
	Identity Identity
	// Body is the whole body.
	Body []byte
	// defaultType is the Content-Type that somebody in front of the protection has set for handlers that set none.
	defaultType []string
	// consumed says that somebody there has read the body, or a part of it, and has not put it back.
	consumed bool
}

// PathValue returns the value of the path parameter, as http.Request.PathValue does.
func (r *Request) PathValue(name string) string { return r.HTTP.PathValue(name) }

// copy returns a request that shares no memory a handler may change with r.
func (r *Request) copy(ctx context.Context) *Request {
	c := &Request{HTTP: r.HTTP.Clone(ctx), Identity: r.Identity, Body: bytes.Clone(r.Body)}
	c.HTTP.Body = io.NopCloser(bytes.NewReader(c.Body))
	c.HTTP.ContentLength, c.HTTP.TransferEncoding = int64(len(c.Body)), nil
	return c
}

// read checks media type and size and reads the body.
func (e *endpoint) read(w http.ResponseWriter, r *http.Request, identity Identity) (*Request, *refusal) {
	if refused := e.checkMediaType(r); refused != nil {
		return nil, refused
	}
	bytesMax := int64(e.m.cfg.BodyBytesMax)
	if r.ContentLength > bytesMax {
		return nil, tooLarge()
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bytesMax))
	var exceeded *http.MaxBytesError
	switch {
	case errors.As(err, &exceeded):
		return nil, tooLarge()
	case err != nil && !errors.Is(err, http.ErrBodyReadAfterClose):
		return nil, invalid("The request body could not be read.")
	}
	return &Request{HTTP: r, Identity: identity, Body: body, defaultType: slices.Clone(w.Header()["Content-Type"]), consumed: consumed(r, body, err)}, nil
}

// consumed says that somebody in front of the protection has read the body, or its beginning, and has not put it back: by
// http.Request.FormValue, for one, after which a handler has its form all the same. All such requests would have the fingerprint of what is
// left, and each would be answered as another. It can't be seen where the request names no length and nobody has parsed a form.
func consumed(r *http.Request, body []byte, err error) bool {
	form := r.MultipartForm != nil && len(r.MultipartForm.Value)+len(r.MultipartForm.File) > 0 || len(r.PostForm) > 0
	return errors.Is(err, http.ErrBodyReadAfterClose) || int64(len(body)) < r.ContentLength || len(body) == 0 && form
}

func (e *endpoint) checkMediaType(r *http.Request) *refusal {
	// A coded body would be hashed, bounded and parsed as something that it is not (RFC 9110 section 15.5.16).
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return refuse(http.StatusUnsupportedMediaType, codeMediaType, "Unsupported Media Type", "The request body must not have a content coding.")
	}
	if slices.Contains(e.route.MediaTypes, anyMediaType) {
		return nil
	}
	lines := r.Header.Values("Content-Type")
	if len(lines) == 1 {
		if mediaType, _, err := mime.ParseMediaType(lines[0]); err == nil && slices.Contains(e.route.MediaTypes, mediaType) {
			return nil
		}
	}
	return refuse(http.StatusUnsupportedMediaType, codeMediaType, "Unsupported Media Type",
		fmt.Sprintf("The request body must be %s.", strings.Join(e.route.MediaTypes, " or ")))
}

func tooLarge() *refusal {
	return refuse(http.StatusRequestEntityTooLarge, codeTooLarge, "Content Too Large", "The request body is too large.")
}

func invalid(detail string) *refusal {
	return refuse(http.StatusBadRequest, codeInvalid, "Invalid request", detail)
}

// invalidBody lists what canonicalisation found, as a validation problem does.
func invalidBody(err *canonical.SyntaxError) idem.Response {
	p := idem.NewProblem(http.StatusBadRequest, codeInvalid, "Invalid request", "The request body is not valid.")
	p.Errors = []idem.ProblemError{{Detail: fmt.Sprintf("byte %d: %s", err.Offset, err.Reason)}}
	return p.Response()
}
