// Package route has the paths of the application, and nothing else: the CDK app gives each a route of the gateway, and a
// test of the application holds them to what it serves. The package belongs to this repository's application and has no
// compatibility promise.
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
