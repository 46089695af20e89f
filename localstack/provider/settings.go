package provider

import (
	"fmt"
	"net/url"
	"slices"
	"time"
)

// Mode is when webhooks are sent.
type Mode string

// The modes. All but Off wait for the delay first, counted from the making of the object.
const (
	Off    Mode = "off"
	Normal Mode = "normal"
	Late   Mode = "late"  // a delay of 0 means 5,000 ms
	Twice  Mode = "twice" // the same event two times in a row
)

const lateDefault = 5 * time.Second

// Settings is how the simulator behaves when nothing goes wrong.
type Settings struct {
	// Seed of the probabilities. Default: Config.Seed.
	Seed int64 `json:"seed"`
	// KeyTTLMillis is how long the answer to a key is kept, from its making. Default 86,400,000; 0 = not at all.
	KeyTTLMillis int64 `json:"key_ttl_ms"`
	// ListDelayMillis hides younger objects from the GET look-ups, not from the control listing. Default 0.
	ListDelayMillis int64    `json:"list_delay_ms"`
	Webhooks        Webhooks `json:"webhooks"`
}

// Webhooks says where events go, and when.
type Webhooks struct {
	// URL that events are posted to, as it is. Default: Config.WebhookURL.
	URL string `json:"url"`
	// Mode defaults to Off.
	Mode        Mode  `json:"mode"`
	DelayMillis int64 `json:"delay_ms"`
}

// SettingsPatch changes the settings that are not nil. A seed, also the present one, starts the draws again.
type SettingsPatch struct {
	Seed            *int64         `json:"seed,omitempty"`
	KeyTTLMillis    *int64         `json:"key_ttl_ms,omitempty"`
	ListDelayMillis *int64         `json:"list_delay_ms,omitempty"`
	Webhooks        *WebhooksPatch `json:"webhooks,omitempty"`
}

// WebhooksPatch changes the members that are not nil.
type WebhooksPatch struct {
	URL         *string `json:"url,omitempty"`
	Mode        *Mode   `json:"mode,omitempty"`
	DelayMillis *int64  `json:"delay_ms,omitempty"`
}

func (s Settings) with(p SettingsPatch) Settings {
	set(&s.Seed, p.Seed)
	set(&s.KeyTTLMillis, p.KeyTTLMillis)
	set(&s.ListDelayMillis, p.ListDelayMillis)
	if p.Webhooks != nil {
		set(&s.Webhooks.URL, p.Webhooks.URL)
		set(&s.Webhooks.Mode, p.Webhooks.Mode)
		set(&s.Webhooks.DelayMillis, p.Webhooks.DelayMillis)
	}
	return s
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// check returns what is wrong with the settings of a simulator that does or does not have a webhook secret.
func (s Settings) check(secret bool) error {
	for name, millis := range map[string]int64{
		"key_ttl_ms": s.KeyTTLMillis, "list_delay_ms": s.ListDelayMillis, "webhooks.delay_ms": s.Webhooks.DelayMillis,
	} {
		if millis < 0 || millis > millisMax {
			return fmt.Errorf("%s is %d, want 0 to %d", name, millis, int64(millisMax))
		}
	}
	modes := []Mode{Off, Normal, Late, Twice}
	if !slices.Contains(modes, s.Webhooks.Mode) {
		return fmt.Errorf("webhooks.mode is %q, want one of %q", s.Webhooks.Mode, modes)
	}
	if s.Webhooks.Mode == Off {
		return nil
	}
	if u, err := url.Parse(s.Webhooks.URL); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("webhooks.mode is %q, but webhooks.url is %q, want an http or https address", s.Webhooks.Mode, s.Webhooks.URL)
	}
	if !secret {
		return fmt.Errorf("webhooks.mode is %q, but the simulator was started without a webhook secret", s.Webhooks.Mode)
	}
	return nil
}

func (w Webhooks) delay() time.Duration {
	if w.Mode == Late && w.DelayMillis == 0 {
		return lateDefault
	}
	return time.Duration(w.DelayMillis) * time.Millisecond
}
