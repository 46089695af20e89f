// Package mutants changes the code on purpose, one place at a time, and demands that a test fails. A change that no test
// notices is a fault that could come without anybody noticing. The package belongs to this repository's tools and has no
// compatibility promise.
//
// There are two kinds. [Listed] are written by hand: each takes away what a promise of docs/semantics.md rests on.
// [Generate] makes the others by rules: a condition is turned around, a comparison moved by one, a statement left out.
// No file of the checkout changes: the go command is given the changed file as an overlay.
//
//	make mutants                                  every listed one
//	make mutants ARGS='--only webhook'            those whose names match
//	make mutants ARGS='--sample 4 --seed 31'      four listed ones; the next seed takes the next four
//	make mutants ARGS='--generate 500 --seed 7'   500 generated ones besides; another seed makes others
package mutants
