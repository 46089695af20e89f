// Package docsite builds the documentation site of docs/ with MkDocs, and judges what MkDocs does not: links and anchors,
// on GitHub and in the site; that the site loads nothing from elsewhere; and that every block of Go, shell and JSON in the
// documents is compiled, run, recorded or parsed. With the tag browser its tests read the built site in a Chromium.
// CONTRIBUTING.md says how to write pages. The package belongs to this repository's tools and has no compatibility promise.
package docsite
