package operator

import "context"

// Task is a change of something that is the application's own, made at a desk, or by a clerk, as the library's are: with a reason, a dry
// run and an entry in the audit log.
type Task struct {
	// Name and Subject are the entry's Action and Subject; both are required.
	Name, Subject, Tenant string
	// Would is what a dry run says.
	Would string
	// Judge refuses what can't be done, in a dry run too: by [ErrNotFound] where nothing is there, by
	// [ErrRefused] where a rule forbids it. Default: nothing is refused.
	Judge func(context.Context) error
	// Act makes the change, and says in a word or two what came of it. It is required.
	Act func(context.Context) (outcome string, err error)
}

// Do carries out a change of the application's own.
func (d *Desk) Do(ctx context.Context, t Task, ch Change) (Result, error) {
	return d.clerk.Do(ctx, t, ch)
}

// carry makes a change of an operation, of a message, or of all that is due. It is refused before it is known up to when data was lost.
func (d *Desk) carry(ctx context.Context, ch Change, a action) (Result, error) {
	judge := a.judge
	a.judge = func(ctx context.Context) error {
		if err := d.lossDated(ctx); err != nil || judge == nil {
			return err
		}
		return judge(ctx)
	}
	return d.clerk.carry(ctx, ch, a)
}
