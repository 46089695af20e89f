package awslambda

import (
	"net/http"
	"strings"
)

// pathIsAmbiguous says that the path of an HTTP API's event may be another one than the client sent, and than the gateway's rules
// were applied to. An HTTP API unescapes the path ("/v1%2fpayments" arrives as "/v1/payments"), so only what its route says is
// known of where a segment ended: nothing, of a catch-all. The other gateways hand the path on as it was sent.
func (e *httpEvent) pathIsAmbiguous() bool {
	if e.Version == "" || strings.Contains(e.RequestContext.DomainName, ".lambda-url.") {
		return false
	}
	route := e.RouteKey
	if e.shape() == shapeV1 {
		route = e.Resource
	}
	if route == "" || route == "$default" || strings.HasSuffix(route, "+}") {
		return true
	}
	for _, value := range e.PathParameters {
		if strings.Contains(value, "/") {
			return true
		}
	}
	return false
}

// notFound is the answer to such a request.
func (c Config) notFound() *responseWriter {
	return c.problem(http.StatusNotFound, "not_found", "Not Found", "There is nothing at this path.")
}
