// Package own draws plans of the repository. It belongs to this
// repository's tools and has no compatibility promise.
//
// The rest of its comment may say anything.
package own
