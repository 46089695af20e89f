package config

// Relay is the configuration of the relay function.
type Relay struct {
	Log
	Function
	WakeUpQueueURL string `env:"WAKE_UP_QUEUE_URL,notEmpty"`
}
