// Package audit judges a whole run of the end-to-end tests from outside: what all clients were answered (I4, I5 of
// docs/design.md), what was written to the rows of records and messages (I7, I8), and how many requests found no store. Its
// checks are pure functions over what the tests have collected. The package belongs to this repository's tools and has no
// compatibility promise.
package audit
