// Package audit judges a whole run of the end-to-end tests from outside: it counts how many requests found no store. The package
// belongs to this repository's tools and has no compatibility promise.
package audit
