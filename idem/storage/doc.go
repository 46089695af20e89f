// Package storage has what an author of a store needs: the [Store] interface, records and messages, the fences of
// conditional writes, transactions, and the errors of a store. Package storetest tests every implementation against it.
//
// An application does not need this package: package idem has the names that it uses, and packages dynamo and memstore
// have the stores.
package storage
