package spec

import "time"

const (
	// wakeUpDelayMax is the longest delay that SQS has.
	wakeUpDelayMax = 15 * time.Minute
	// wakeUpAgeLeft is how long before SQS drops a wake-up somebody is told at the latest that it waits.
	wakeUpAgeLeft = 10 * time.Minute
	// deadLetterAgeMax is half of the time after which SQS drops a dead letter.
	deadLetterAgeMax = 7 * 24 * time.Hour
)

// QueueAlarms are on the queues themselves, whose metrics are SQS's, where a wake-up is hidden for so long when its consumer has received
// it. Each rings in two of three minutes: a single one may be a restart's.
func QueueAlarms(hidden time.Duration) []Alarm {
	// Older than any wake-up gets that is only waiting: and one visibility time-out after a worker that died. None gets older than SQS keeps
	// it, though it may be hidden for longer. A wake-up that a worker takes
	// and fails to deliver is not seen here: SQS leaves those out that were received three times. DueOld is for them.
	wakeUpAgeMax := min(wakeUpDelayMax+hidden, WakeUpRetention-wakeUpAgeLeft)
	alarms := []Alarm{
		{
			ID: "DeadLetters", Metrics: []Metric{ofQueue(DeadLetter, "ApproximateNumberOfMessagesVisible")}, Threshold: 1,
			Description: "There are dead letters: copies of messages that were given up, wake-ups that failed too often, batches that a stream gave up. Redrive them; what is still there then needs an operator.",
		},
		{
			ID: "DeadLettersOld", Metrics: []Metric{ofQueue(DeadLetter, "ApproximateAgeOfOldestMessage")}, Threshold: deadLetterAgeMax.Seconds(),
			Description: "A dead letter is a week old, and nobody has processed it. SQS drops it after two weeks; the outbox table keeps the message.",
		},
		{
			ID: "WakeUpsLate", Metrics: []Metric{ofQueue(WakeUps, "ApproximateAgeOfOldestMessage")}, Threshold: wakeUpAgeMax.Seconds(),
			Description: "Wake-ups are older than any delay, and nobody takes them: the worker is throttled, can't keep up, or the mapping is off. Nothing is lost; operations stay pending.",
		},
	}
	for i := range alarms {
		alarms[i].Periods, alarms[i].OfLast = 2, 3
	}
	return alarms
}

func ofQueue(queue Resource, name string) Metric {
	return Metric{ID: "queue", Namespace: "AWS/SQS", Name: name, Statistic: "Maximum", Period: time.Minute, Dimensions: []Dimension{{Name: "QueueName", Of: queue}}}
}
