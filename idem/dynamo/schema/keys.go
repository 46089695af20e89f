package schema

// Attributes of the table of data keys, which package seal/tablekeys has; its key is Tenant. A table that holds no wrapped
// keys for a tenant, and yet has its item, says that they were erased.
const (
	CurrentKey    = "ck" // the id of the key to seal under; ids count from 1 and never come back
	WrappedKeys   = "wk" // key id → wrapped key
	ErasedThrough = "et" // ids up to this one were erased
	ErasedAt      = "er" // epoch ms
)

// Keys is the table of the tenants' wrapped data keys. What a point-in-time recovery restores brings erased keys back, so
// an erasure is complete when the last backup of it is gone.
func Keys() Table { return Table{Key: Tenant} }
