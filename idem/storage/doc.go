// Package storage is what somebody needs who writes a store, or works with rows: the [Store] interface, records and
// messages with everything they hold, the fences of conditional writes, transactions, and what a store answers. Package
// storetest holds every implementation to it.
//
// An application needs none of it: package idem has its names, and packages dynamo and memstore have the stores.
package storage
