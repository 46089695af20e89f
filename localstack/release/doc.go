// Package release makes releases: the Go modules at one version as adopters get them, and the operator's command as a
// binary for each platform. The package belongs to this repository's tools and has no compatibility promise.
//
// In development the modules of the checkout replace each other by folders. `go install` refuses a module that does so, and
// a version v0.0.0 can't be downloaded. So a release is a commit of its own on top of one of the main branch ([Tag]), in
// which only the go.mod files and go.work differ ([Prepare]). Its tags are the release: v0.1.0 of the root module,
// functions/v0.1.0 of the module in functions.
//
// What is released is tried first, by somebody who has no checkout ([Adopter]): the zips that a module proxy would make of
// the tags ([Publish]) are a proxy, and the go command gets and installs from it.
package release
