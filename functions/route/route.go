// Package route has what the gateway and the application must agree about: the paths and the form of a bearer token. The CDK app gives
// each path a route of the gateway, and a test of the application holds the paths to what it serves. The package belongs to this
// repository's application and has no compatibility promise.
package route

// Paths are those that an authenticated caller uses, in the notation that http.ServeMux and API Gateway share.
var Paths = []string{
	"/v1/payments",
	"/v1/payments/{id}",
	"/v1/payments/{id}/refunds",
	"/v1/payouts",
	"/v1/payouts/{id}",
	"/v1/transfers",
	"/v1/accounts/{id}",
	"/v1/operations/{id}",
}

// Paying are those of them whose POST moves money.
var Paying = []string{
	"/v1/payments",
	"/v1/payments/{id}/refunds",
	"/v1/payouts",
	"/v1/transfers",
}

// BearerForm is an Authorization header with a bearer token, as the authorizer reads it. A REST API answers 401 to any other by itself:
// the authorizer's only way to a 401 is an error, which Lambda counts as a failed invocation. Who sent three of those would ring
// FunctionErrors and end a deployment. It matches all of a header, because API Gateway does not say whether a part would do. A token
// begins with a character of ASCII that is no space: the authorizer takes spaces of Unicode away, too.
const BearerForm = `^\s*[Bb][Ee][Aa][Rr][Ee][Rr] \s*[!-~].*$`
