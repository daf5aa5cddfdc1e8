package detent

// The bodies of requests. They are not made by encoding/json from structs, because it would change
// the white space of a JSON payload and bytes of a text that are not UTF-8.

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"time"
	"unicode/utf8"
)

// An object is a JSON object that is being written. It keeps the first error.
type object struct {
	text bytes.Buffer
	err  error
}

// bytes ends the object.
func (o *object) bytes() ([]byte, error) {
	if o.err != nil {
		return nil, o.err
	}
	if o.text.Len() == 0 {
		return []byte("{}"), nil
	}
	return append(append([]byte(nil), o.text.Bytes()...), '}'), nil
}

// raw adds a member whose value is JSON.
func (o *object) raw(name string, value []byte) {
	separator := byte(',')
	if o.text.Len() == 0 {
		separator = '{'
	}
	o.text.WriteByte(separator)
	o.text.WriteByte('"')
	o.text.WriteString(name)
	o.text.WriteString(`":`)
	o.text.Write(value)
}

// put adds a member. The texts of the value must be UTF-8.
func (o *object) put(name string, value any) {
	if !isUTF8(value) {
		o.fail(name, "must be UTF-8")
		return
	}
	text, err := json.Marshal(value)
	if err != nil {
		o.fail(name, err.Error())
		return
	}
	o.raw(name, text)
}

// putAll adds the members of another object to an object that has members.
func (o *object) putAll(other *object) {
	if o.err == nil {
		o.err = other.err
	}
	if other.text.Len() > 0 {
		o.text.WriteByte(',')
		o.text.Write(other.text.Bytes()[1:])
	}
}

func (o *object) fail(name, detail string) {
	if o.err == nil {
		o.err = &Error{Code: InvalidArgument, Detail: detail, Field: name}
	}
}

func isUTF8(value any) bool {
	switch value := value.(type) {
	case string:
		return utf8.ValidString(value)
	case []string:
		for _, text := range value {
			if !utf8.ValidString(text) {
				return false
			}
		}
	case map[string]string:
		for name, text := range value {
			if !utf8.ValidString(name) || !utf8.ValidString(text) {
				return false
			}
		}
	}
	return true
}

// put adds a member, except if it has its zero value, which stands for the server's default.
func put[T comparable](o *object, name string, value T) {
	var zero T
	if value != zero {
		o.put(name, value)
	}
}

// putOptional adds a member if it is not nil.
func putOptional[T any](o *object, name string, value *T) {
	if value != nil {
		o.put(name, *value)
	}
}

// toMilliseconds rounds up, so that a task is never earlier than requested.
func toMilliseconds(duration time.Duration) int64 {
	count := duration.Milliseconds()
	if fromMilliseconds(count) < duration {
		count++
	}
	return count
}

// duration adds a duration, also if it is 0.
func (o *object) duration(name string, duration time.Duration) {
	o.put(name+"_ms", toMilliseconds(duration))
}

// putDuration adds a duration that is not 0.
func (o *object) putDuration(name string, duration time.Duration) {
	if duration != 0 {
		o.duration(name, duration)
	}
}

// putInstant adds an instant that is not zero, in milliseconds since 1970, rounded up.
func (o *object) putInstant(name string, instant time.Time) {
	if !instant.IsZero() {
		o.put(name, instantOf(instant))
	}
}

func instantOf(instant time.Time) int64 {
	count := instant.UnixMilli()
	if time.UnixMilli(count).Before(instant) {
		count++
	}
	return count
}

func (o *object) putDue(due Due) {
	if due.at.IsZero() {
		o.duration("delay", due.delay)
	} else {
		o.putInstant("due_at", due.at)
	}
}

func (o *object) putBackoff(backoff *Backoff) {
	if backoff == nil {
		return
	}
	text, err := backoff.body()
	if err != nil {
		o.fail("backoff", err.Error())
		return
	}
	o.raw("backoff", text)
}

func (backoff *Backoff) body() ([]byte, error) {
	var body object
	body.duration("initial", backoff.Initial)
	body.duration("max", backoff.Max)
	return body.bytes()
}

func (o *object) putPayload(payload json.RawMessage, content []byte) {
	switch {
	case content != nil:
		o.put("payload_base64", base64.StdEncoding.EncodeToString(content))
	case payload == nil:
		o.raw("payload", []byte("null"))
	case !json.Valid(payload):
		o.fail("payload", "must be one JSON value")
	default:
		o.raw("payload", payload)
	}
}

func (task *NewTask) body() ([]byte, error) {
	var body object
	body.put("queue", task.Queue)
	body.putPayload(task.Payload, task.Bytes)
	body.putDue(task.Due)
	put(&body, "key", task.Key)
	put(&body, "on_key", task.OnKey)
	body.putDuration("max_wait", task.MaxWait)
	putOptional(&body, "priority", task.Priority)
	put(&body, "max_attempts", task.MaxAttempts)
	body.putDuration("visibility_timeout", task.VisibilityTimeout)
	body.putBackoff(task.Backoff)
	put(&body, "webhook", task.Webhook)
	if len(task.Headers) > 0 {
		body.put("headers", task.Headers)
	}
	return body.bytes()
}

func bodyOfTasks(tasks []NewTask) ([]byte, error) {
	all := []byte{'['}
	for i := range tasks {
		body, err := tasks[i].body()
		if err != nil {
			return nil, err
		}
		if i > 0 {
			all = append(all, ',')
		}
		all = append(all, body...)
	}
	return append(all, ']'), nil
}

func (schedule *NewSchedule) body() ([]byte, error) {
	var body object
	body.put("queue", schedule.Queue)
	body.putPayload(schedule.Payload, schedule.Bytes)
	put(&body, "cron", schedule.Cron)
	body.putDuration("every", schedule.Every)
	putOptional(&body, "calendar", schedule.Calendar)
	body.putInstant("anchor", schedule.Anchor)
	put(&body, "time_zone", schedule.TimeZone)
	put(&body, "gap", schedule.Gap)
	put(&body, "repeat", schedule.Repeat)
	putOptional(&body, "priority", schedule.Priority)
	put(&body, "max_attempts", schedule.MaxAttempts)
	body.putDuration("visibility_timeout", schedule.VisibilityTimeout)
	body.putBackoff(schedule.Backoff)
	put(&body, "count", schedule.Count)
	body.putInstant("start", schedule.Start)
	body.putInstant("end", schedule.End)
	body.putDuration("jitter", schedule.Jitter)
	put(&body, "misfire", schedule.Misfire)
	if schedule.MisfireGrace != nil {
		body.duration("misfire_grace", *schedule.MisfireGrace)
	}
	putOptional(&body, "misfire_limit", schedule.MisfireLimit)
	put(&body, "overlap", schedule.Overlap)
	return body.bytes()
}

// putSetting adds the change of a setting; `form` is its form in JSON.
func putSetting[T, F any](o *object, name string, setting Setting[T], form func(T) F) {
	switch setting.change {
	case changeSet:
		o.put(name, form(setting.value))
	case changeReset:
		o.raw(name, []byte("null"))
	}
}

func asItIs[T any](value T) T { return value }

func (change *QueueChange) body() ([]byte, error) {
	var body object
	putSetting(&body, "paused", change.Paused, asItIs[bool])
	putSetting(&body, "max_attempts", change.MaxAttempts, asItIs[int])
	putSetting(&body, "visibility_timeout_ms", change.VisibilityTimeout, toMilliseconds)
	if change.Backoff.change == changeSet {
		body.putBackoff(&change.Backoff.value)
	} else {
		putSetting(&body, "backoff", change.Backoff, asItIs[Backoff])
	}
	putSetting(&body, "retention_ms", change.Retention, toMilliseconds)
	putSetting(&body, "key_retention_ms", change.KeyRetention, toMilliseconds)
	putSetting(&body, "max_tasks", change.MaxTasks, asItIs[int64])
	putSetting(&body, "max_bytes", change.MaxBytes, asItIs[int64])
	putSetting(&body, "rate", change.Rate, asItIs[int])
	putSetting(&body, "concurrency", change.Concurrency, asItIs[int])
	putSetting(&body, "webhook", change.Webhook, asItIs[QueueWebhook])
	putSetting(&body, "sink", change.Sink, asItIs[string])
	putSetting(&body, "partitions", change.Partitions, asItIs[int])
	return body.bytes()
}
