package spec

const (
	// StreamShards are those of a new table's stream: one for each of its partitions.
	StreamShards = 4
	// WorkerMargin is what the wake-ups leave of the worker's executions to an operator's call, and to a batch that ends while
	// the next one begins. A wake-up that finds no execution waits for a visibility time-out.
	WorkerMargin = 10
	// WorkerElse are the worker's executions that wake-ups leave where the worker reads a new table's stream.
	WorkerElse = WorkerMargin + ShardBatches*StreamShards
	// RunsMargin is for an operator's own call, and for a run that begins before the last one's execution is free.
	RunsMargin = 2
	// MappingMin and MappingMax are Lambda's bounds on what one mapping from SQS has at once.
	MappingMin, MappingMax = 2, 1000
)
