// Package seal encrypts what a store keeps of its tenants: responses with their headers, including those of
// operations that are pending, the payloads of messages, and evidence that is kept on messages. Use it where stored
// answers must be unreadable to anybody who can only read the tables, or where a tenant's data must be erasable by erasing a
// key. DynamoDB's own encryption at rest does neither. A seal wraps a store:
//
//	keys, err := tablekeys.New(dynamoClient, tablekeys.Config{Table: "keys", Wrapper: wrapper})
//	store, err := seal.New(dynamoStore, seal.Config{Keys: keys})
//	engine, err := idem.New(store, idem.Config{})
//
// Each tenant has a data key of its own ([Keys]), which is stored wrapped by a KMS. Package tablekeys keeps the keys
// in a DynamoDB table, and package awskms wraps them with AWS KMS.
//
// Bodies are compressed first, because encrypted bytes cannot be compressed. They are then encrypted with AES-256-GCM
// under a key that is derived for one place: the tenant, the record key, the operation or message id, and what is
// encrypted there. A response is also bound to its record's state and HTTP status, and a payload to its topic and to
// whether it is detached. Ciphertext that is moved to another place, or whose place is changed, cannot be opened.
// Status, states, times, fingerprints and references stay readable, so records and messages are judged without any
// key.
//
// # Opening
//
// A record is opened only when its response is wanted (LoadResponse). Mismatches, requests in flight and unknown
// outcomes are answered without the key. A message is opened when it is read. The image of a message in a stream is
// not opened: [Store.OpenMessage] opens it, or outbox.Worker reads the message again.
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
// While a key cannot be fetched, calls that need it return a [*KeysError], which is an [idem.ErrThrottled]. A request then
// gets 503, a new one before its handler runs, and a message waits for its next wake-up.
//
// # Switching it on
//
// What was stored before is read as it is. A release that does not know this package can't read what is sealed, so first
// deploy one with Config.OpenOnly, then one without. Once everything that is stored unencrypted has expired, set Config.SealedOnly: from
// then on an answer that is not encrypted is a [*NotSealedError]: the request gets 503, and nothing is executed. A message
// that is not encrypted is not delivered and ends dead. Both raise the alarm seal.not_authentic. A worker that is given images of a stream must
// then open them by [Store.OpenMessage] first.
//
// # What it does not do
//
// The size of what is sealed, after compression, can be seen. Anybody who may write to the tables can remove a sealed row, put
// an older state of the same record in its place, or, without SealedOnly, put an unencrypted row there. Encryption does not
// replace access control.
//
// # What it costs
//
// A seal adds 38 bytes to each body, and a flag of 3 bytes to each record or message. 300 B are sealed in 8 µs and opened in
// 5 µs, and 10 KB in 23 µs and 19 µs (go test ./idem/seal -bench Seal, best of 3 on 2 busy cores).
//
// A key that a process holds costs no call. With package tablekeys, fetching a key costs a GetItem of 1 read unit and one
// KMS Decrypt. Each process does that once in KeyAgeMax/2 for each active tenant. The first key of a tenant costs a GetItem,
// a KMS Encrypt and a PutItem of 1 write unit. A worker that is given a stream's image without OpenMessage reads the
// message, for 1 read unit more.
package seal
