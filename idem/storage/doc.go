// Package storage has what an author of a store needs: the [Store] interface, records and messages, the fences of
// conditional writes, transactions, and the errors of a store. Use it to put idem on another database. Packages
// storetest and storetest/sequences test every implementation against it, and memstore is the one to read first.
//
// An application does not need this package. Package idem has the names that it uses, and packages dynamo and
// memstore have the stores.
package storage
