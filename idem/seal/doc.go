// Package seal encrypts what a store keeps of its tenants: responses with their headers, the 202s among them, the payloads
// of messages, and kept evidence. It is off unless it is wired around a store:
//
//	keys, err := tablekeys.New(dynamoClient, tablekeys.Config{Table: "keys", Wrapper: wrapper})
//	store, err := seal.New(dynamoStore, seal.Config{Keys: keys})
//	engine, err := idem.New(store, idem.Config{})
//
// Each tenant has a data key of its own ([Keys]), which is stored wrapped by a KMS. What is sealed is compressed first,
// for it can't be afterwards, and then encrypted with AES-256-GCM under a key that is derived for its place alone: tenant,
// record key, operation or message id, and what it is; a response beside its record's state and its HTTP status, a payload
// beside its topic and whether it is detached. So it opens nowhere else, and none of these can be changed under it. Status,
// states, times, fingerprints and references stay readable: the state machines judge records and messages without any key.
//
// # Opening
//
// A record is opened when its response is wanted (LoadResponse) and not before: mismatches, requests in flight and unknown
// outcomes are answered as ever, whatever became of the key. A message is opened as it is read. An image of a stream is
// not: [Store.OpenMessage] opens it, or outbox.Worker reads the message again.
//
// # Erasure
//
// Once a tenant's key is erased, nothing that it sealed can be read, within Config.KeyAgeMax: that long a process may use a
// key that it holds. Replays and status then return [storage.ErrErased]. New operations of the tenant are refused with it
// before anything is committed, an atomic or wrapped one before its handler runs. What has happened already is still
// recorded: it is stored without the response or evidence, which read as erased. A message whose payload can't be opened
// is never delivered; it ends dead, with an alarm.
//
// # Trouble with the keys
//
// While a key can't be fetched nothing is guessed and nothing lost: calls that need it return a [*KeysError], which is an
// [idem.ErrThrottled]. A request gets 503, a reserve before its handler runs; a message waits for its next wake-up.
//
// # Switching it on
//
// What was stored before is read as it is. A release that does not know this package can't read what is sealed, so first
// deploy one with Config.OpenOnly, then one without. Once all that lies in the open has expired, set Config.SealedOnly: from
// then on an answer in the open is a [*NotSealedError], the request gets 503 and nothing is executed; a message in the open
// is not delivered and ends dead. Both raise the alarm seal.not_authentic. A worker that is given images of a stream must
// then open them by [Store.OpenMessage] first.
//
// # What it does not do
//
// The size of what is sealed, after compression, can be seen. A writer to the tables may remove what is sealed, put an
// older state of the same record in its place, or, without SealedOnly, a row in the open: encryption is no access control.
//
// # What it costs
//
// A seal adds 38 bytes, and to a record or message a flag of 3. 300 B are sealed in 8 µs and opened in 5 µs, 10 KB in 23 µs
// and 19 µs (go test ./idem/seal -bench Seal, best of 3 on 2 busy cores).
//
// A key that a process holds costs no call. Fetching one, with package tablekeys, is a GetItem of 1 read unit and one KMS
// Decrypt, for each tenant and process once in KeyAgeMax/2 while the tenant is active; a tenant's very first is a GetItem, a
// KMS Encrypt and a PutItem of 1 write unit. A worker that is given a stream's image without OpenMessage reads the message,
// 1 read unit more.
package seal
