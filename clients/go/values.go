package detent

import (
	"encoding/json"
	"errors"
	"time"
)

// A TaskName names a task: a TaskID, or a TaskKey.
type TaskName interface{ taskPath() string }

// A TaskID is the id that the server has given to a task.
type TaskID string

// A TaskKey names a task by the key of its creator, instead of the server's id.
type TaskKey struct {
	Queue string
	Key   string
}

// Due is a due time: a delay from now (In), or an instant (At). The zero value means now.
type Due struct {
	delay time.Duration
	at    time.Time
}

// In returns the due time that is the delay after the server has received the call. The client
// rounds a delay up to whole milliseconds.
func In(delay time.Duration) Due { return Due{delay: delay} }

// At returns an instant as a due time. The client rounds it up to whole milliseconds.
func At(instant time.Time) Due { return Due{at: instant} }

// Ptr returns a pointer to a copy of the value, for fields that are optional.
func Ptr[T any](value T) *T { return &value }

// A Backoff is the wait after failed attempts: Initial * 2^(n - 1) after attempt n, at most Max.
type Backoff struct {
	Initial time.Duration
	Max     time.Duration
}

// An OnKey says what a request does if its key already stands for a task.
type OnKey string

const (
	OnKeyKeep     OnKey = "keep"     // nothing: the answer is that task
	OnKeyReplace  OnKey = "replace"  // the task gets the content and the due time of the request
	OnKeyPostpone OnKey = "postpone" // the task gets only the due time
)

// A NewTask is a task to schedule. With a Key you can repeat the call: the same request again
// returns the first task. Fields with their zero value are as the queue is set.
type NewTask struct {
	Queue             string
	Payload           json.RawMessage // one JSON value; nil: null
	Bytes             []byte          // if not nil, the payload is these bytes
	Due               Due
	Key               string
	OnKey             OnKey         // "" is OnKeyKeep
	MaxWait           time.Duration // for the others: the longest time from the first request; 0: none
	Priority          *int          // lower is more urgent; nil: 1024
	MaxAttempts       int
	VisibilityTimeout time.Duration
	Backoff           *Backoff
	Webhook           string // if set, the server delivers the task itself, and no worker gets it
	Headers           map[string]string
}

// A TaskState is the state of a task.
type TaskState string

const (
	StateScheduled TaskState = "scheduled"
	StateReady     TaskState = "ready"
	StateLeased    TaskState = "leased"
	StateDead      TaskState = "dead"
	StateCompleted TaskState = "completed" // only if the queue keeps ended tasks
	StateCancelled TaskState = "cancelled" // only if the queue keeps ended tasks
)

// A ScheduledTask is a task on the server's disk.
type ScheduledTask struct {
	ID       TaskID    `json:"id"`
	Queue    string    `json:"queue"`
	State    TaskState `json:"state"`
	DueAt    time.Time `json:"due_at"`
	WasThere bool      `json:"was_there"` // an earlier request with this key made the task
}

// A TaskResult is the result of one task in a call for many tasks: Task, or Err, which is an
// *Error.
type TaskResult struct {
	Task ScheduledTask
	Err  error
}

// A Task is the record of a task.
type Task struct {
	ID        TaskID          `json:"id"`
	Queue     string          `json:"queue"`
	State     TaskState       `json:"state"`
	DueAt     time.Time       `json:"due_at"`
	CreatedAt time.Time       `json:"created_at"`
	Payload   json.RawMessage `json:"payload"`
	Bytes     []byte          `json:"payload_base64"`
	Key       string          `json:"key"`
	Priority  int             `json:"priority"`
	Attempts  int             `json:"attempts"` // number of ended attempts
	LastError string          `json:"last_error"`
	// Body has every member in the server's form, including `history`.
	Body json.RawMessage `json:"-"`
}

// A TaskPage is a page of tasks, and the cursor of the next page; "" at the end.
type TaskPage struct {
	Tasks  []Task
	Cursor string
}

// A LeasedTask is a task with its lease, which is valid until LeaseUntil.
type LeasedTask struct {
	ID         TaskID            `json:"id"`
	Lease      string            `json:"lease"`
	Attempt    int               `json:"attempt"` // counted from 1
	Queue      string            `json:"queue"`
	Key        string            `json:"key"`
	Payload    json.RawMessage   `json:"payload"`
	Bytes      []byte            `json:"payload_base64"`
	Priority   int               `json:"priority"`
	DueAt      time.Time         `json:"due_at"`
	LeaseUntil time.Time         `json:"lease_until"`
	Lateness   time.Duration     `json:"-"` // from DueAt until the task was leased
	Headers    map[string]string `json:"headers"`
}

// A LeaseStatus is the result of one call for one lease.
type LeaseStatus string

const (
	LeaseDone     LeaseStatus = "done"     // the call was carried out
	LeaseConflict LeaseStatus = "conflict" // the lease is no longer held; nothing was changed
	LeaseDead     LeaseStatus = "dead"     // the failed attempt was the last one
	// LeaseUnavailable means that the result is not known. The lease may still be held, because its
	// shard of a cluster was away for all of RetryFor. Call again until the lease expires.
	LeaseUnavailable LeaseStatus = "unavailable"
	LeaseError       LeaseStatus = "error" // the server failed at this lease
)

// QueueSettings are the settings of a queue, which docs/reference/queues.md describes. A setting
// that is nil has its default.
type QueueSettings struct {
	Paused            bool
	MaxAttempts       *int
	VisibilityTimeout *time.Duration
	Backoff           *Backoff
	Retention         time.Duration
	KeyRetention      time.Duration
	MaxTasks          *int64
	MaxBytes          *int64
	Rate              *int
	Concurrency       *int
	Webhook           string // its URL; "": none
	Sink              string // "": none
	Partitions        int
}

// A Setting is a change of one setting: Set or Reset. The zero value leaves the setting as it is.
type Setting[T any] struct {
	value  T
	change change
}

type change int

const (
	changeNone change = iota
	changeSet
	changeReset
)

// Set returns the change of a setting to this value.
func Set[T any](value T) Setting[T] { return Setting[T]{value: value, change: changeSet} }

// Reset returns the change of a setting to its default.
func Reset[T any]() Setting[T] { return Setting[T]{change: changeReset} }

// A QueueWebhook is the webhook of a queue. The server signs with its own key if Keys is empty.
type QueueWebhook struct {
	URL  string   `json:"url"`
	Keys []string `json:"keys,omitempty"` // "whsec_…"
}

// A QueueChange changes the settings of a queue that are given.
type QueueChange struct {
	Paused            Setting[bool]
	MaxAttempts       Setting[int]
	VisibilityTimeout Setting[time.Duration]
	Backoff           Setting[Backoff]
	Retention         Setting[time.Duration]
	KeyRetention      Setting[time.Duration]
	MaxTasks          Setting[int64]
	MaxBytes          Setting[int64]
	Rate              Setting[int]
	Concurrency       Setting[int]
	Webhook           Setting[QueueWebhook]
	Sink              Setting[string]
	Partitions        Setting[int] // only while the queue does not exist yet
}

// A Queue has the counts of a queue by state, and its settings.
type Queue struct {
	Name           string         `json:"queue"`
	Scheduled      int64          `json:"scheduled"`
	Ready          int64          `json:"ready"`
	Leased         int64          `json:"leased"`
	Dead           int64          `json:"dead"`
	OldestReadyAge *time.Duration `json:"-"`     // nil if no task is ready
	Bytes          int64          `json:"bytes"` // size of the payloads
	Settings       QueueSettings  `json:"-"`
}

// A Calendar is a recurring rule that counts days, weeks, months or years.
type Calendar struct {
	Every    int    `json:"every"`
	Unit     string `json:"unit"`                // "day", "week", "month" or "year"
	MonthEnd string `json:"month_end,omitempty"` // "clamp" (default) or "skip"
}

// A NewSchedule is a recurring schedule to store: its rule, which is one of Cron, Every and
// Calendar, and the task that it makes at each occurrence. Fields with their zero value have the
// server's default. The page docs/guides/recurring.md describes every field.
type NewSchedule struct {
	Queue             string
	Payload           json.RawMessage
	Bytes             []byte
	Cron              string
	Every             time.Duration
	Calendar          *Calendar
	Anchor            time.Time
	TimeZone          string
	Gap               string // "skip" or "run_after"
	Repeat            string // "first", "second" or "both"
	Priority          *int
	MaxAttempts       int
	VisibilityTimeout time.Duration
	Backoff           *Backoff
	Count             int64
	Start             time.Time
	End               time.Time
	Jitter            time.Duration
	Misfire           string // "skip", "once" or "all"
	MisfireGrace      *time.Duration
	MisfireLimit      *int
	Overlap           string // "allow", "skip" or "queue_one"
}

// A Schedule is a stored recurring schedule.
type Schedule struct {
	Name   string    `json:"name"`
	State  string    `json:"state"` // "active", "paused", "over" or "broken"
	Words  string    `json:"words"` // the rule in plain English
	Queue  string    `json:"queue"`
	NextAt time.Time `json:"next_at"` // zero if there is no next occurrence
	Made   int64     `json:"made"`    // number of tasks made by occurrences
	// Body has every member in the server's form.
	Body json.RawMessage `json:"-"`
}

// ---- from JSON ----

func fromMilliseconds(count int64) time.Duration { return time.Duration(count) * time.Millisecond }

func optionalDuration(count *int64) *time.Duration {
	if count == nil {
		return nil
	}
	return Ptr(fromMilliseconds(*count))
}

// read decodes an answer. It returns an error if the answer lacks a field without which the value
// is useless.
func read[T any](text json.RawMessage, isComplete func(*T) bool) (T, error) {
	var value T
	if err := json.Unmarshal(text, &value); err != nil {
		return value, err
	}
	if !isComplete(&value) {
		return value, errors.New("it lacks a field")
	}
	return value, nil
}

func readScheduledTask(text json.RawMessage) (ScheduledTask, error) {
	return read(text, func(task *ScheduledTask) bool { return task.ID != "" })
}

func readTask(text json.RawMessage) (Task, error) {
	task, err := read(text, func(task *Task) bool { return task.ID != "" })
	task.Body = text
	return task, err
}

func readLeasedTask(text json.RawMessage) (LeasedTask, error) {
	task, err := read(text, func(task *LeasedTask) bool { return task.ID != "" && task.Lease != "" })
	if err != nil {
		return task, err
	}
	var durations struct {
		Lateness int64 `json:"lateness_ms"`
	}
	err = json.Unmarshal(text, &durations)
	task.Lateness = fromMilliseconds(durations.Lateness)
	return task, err
}

func readSchedule(text json.RawMessage) (Schedule, error) {
	schedule, err := read(text, func(schedule *Schedule) bool { return schedule.Name != "" })
	schedule.Body = text
	return schedule, err
}

func readQueue(text json.RawMessage) (Queue, error) {
	queue, err := read(text, func(queue *Queue) bool { return queue.Name != "" })
	if err != nil {
		return queue, err
	}
	var wire struct {
		OldestReadyAge *int64 `json:"oldest_ready_age_ms"`
		Settings       struct {
			Paused            bool   `json:"paused"`
			MaxAttempts       *int   `json:"max_attempts"`
			VisibilityTimeout *int64 `json:"visibility_timeout_ms"`
			Backoff           *struct {
				Initial int64 `json:"initial_ms"`
				Max     int64 `json:"max_ms"`
			} `json:"backoff"`
			Retention    int64         `json:"retention_ms"`
			KeyRetention int64         `json:"key_retention_ms"`
			MaxTasks     *int64        `json:"max_tasks"`
			MaxBytes     *int64        `json:"max_bytes"`
			Rate         *int          `json:"rate"`
			Concurrency  *int          `json:"concurrency"`
			Webhook      *QueueWebhook `json:"webhook"`
			Sink         string        `json:"sink"`
			Partitions   int           `json:"partitions"`
		} `json:"settings"`
	}
	err = json.Unmarshal(text, &wire)
	settings := &wire.Settings
	queue.OldestReadyAge = optionalDuration(wire.OldestReadyAge)
	queue.Settings = QueueSettings{
		Paused:            settings.Paused,
		MaxAttempts:       settings.MaxAttempts,
		VisibilityTimeout: optionalDuration(settings.VisibilityTimeout),
		Retention:         fromMilliseconds(settings.Retention),
		KeyRetention:      fromMilliseconds(settings.KeyRetention),
		MaxTasks:          settings.MaxTasks,
		MaxBytes:          settings.MaxBytes,
		Rate:              settings.Rate,
		Concurrency:       settings.Concurrency,
		Sink:              settings.Sink,
		Partitions:        settings.Partitions,
	}
	if backoff := settings.Backoff; backoff != nil {
		queue.Settings.Backoff = &Backoff{
			Initial: fromMilliseconds(backoff.Initial), Max: fromMilliseconds(backoff.Max)}
	}
	if settings.Webhook != nil {
		queue.Settings.Webhook = settings.Webhook.URL
	}
	return queue, err
}
