package config

// Relay is the configuration of the relay function.
type Relay struct {
	Log
	WakeUpQueueURL string `env:"WAKE_UP_QUEUE_URL,notEmpty"`
}
