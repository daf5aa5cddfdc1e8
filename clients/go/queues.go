package detent

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"
)

// Queues returns all queues, sorted by name.
func (c *Client) Queues(ctx context.Context) ([]Queue, error) {
	return ask(ctx, c, "GET", "/v1/queues", nil, readAll("queues", readQueue))
}

// Queue returns one queue. It fails with NotFound.
func (c *Client) Queue(ctx context.Context, name string) (Queue, error) {
	return ask(ctx, c, "GET", queuePath(name, ""), nil, readQueue)
}

// ChangeQueue changes the given settings. It creates the queue if it does not exist.
func (c *Client) ChangeQueue(ctx context.Context, name string, change QueueChange) (Queue, error) {
	body, err := change.body()
	if err != nil {
		return Queue{}, err
	}
	return ask(ctx, c, "PATCH", queuePath(name, ""), body, readQueue)
}

// RemoveQueue removes a queue. It fails with Conflict while the queue has tasks.
func (c *Client) RemoveQueue(ctx context.Context, name string) error {
	_, err := ask(ctx, c, "DELETE", queuePath(name, ""), nil, readAny)
	return err
}

// Pause stops the hand-out of a queue's tasks. Leased tasks can still be completed.
func (c *Client) Pause(ctx context.Context, name string) (Queue, error) {
	return ask(ctx, c, "POST", queuePath(name, "/pause"), nil, readQueue)
}

// Resume allows the hand-out of a queue's tasks again.
func (c *Client) Resume(ctx context.Context, name string) (Queue, error) {
	return ask(ctx, c, "POST", queuePath(name, "/resume"), nil, readQueue)
}

// Purge removes all tasks of a queue that are not leased. It returns their number.
func (c *Client) Purge(ctx context.Context, name string) (int64, error) {
	return c.count(ctx, queuePath(name, "/purge"))
}

// Redrive makes all dead tasks of a queue due now. It returns their number.
func (c *Client) Redrive(ctx context.Context, name string) (int64, error) {
	return c.count(ctx, queuePath(name, "/redrive"))
}

func (c *Client) count(ctx context.Context, path string) (int64, error) {
	call := call{method: "POST", path: path, repeat: never, patience: countPatience}
	return askBy(ctx, c, call, func(text json.RawMessage) (int64, error) {
		var answer struct {
			Count int64 `json:"count"`
		}
		err := json.Unmarshal(text, &answer)
		return answer.Count, err
	})
}

// ---- recurring schedules ----

// PutSchedule creates or replaces a recurring schedule.
func (c *Client) PutSchedule(
	ctx context.Context, name string, schedule NewSchedule,
) (Schedule, error) {
	body, err := schedule.body()
	if err != nil {
		return Schedule{}, err
	}
	return ask(ctx, c, "PUT", schedulePath(name, ""), body, readSchedule)
}

// GetSchedule returns one recurring schedule. It fails with NotFound.
func (c *Client) GetSchedule(ctx context.Context, name string) (Schedule, error) {
	return ask(ctx, c, "GET", schedulePath(name, ""), nil, readSchedule)
}

// Schedules returns all recurring schedules, sorted by name. It reads them by pages of 1000.
func (c *Client) Schedules(ctx context.Context) ([]Schedule, error) {
	var found []Schedule
	query := url.Values{"limit": {"1000"}}
	for {
		answer, err := ask(ctx, c, "GET", withQuery("/v1/schedules", query), nil, readAny)
		if err != nil {
			return nil, err
		}
		page, err := readAll("schedules", readSchedule)(answer)
		if err != nil {
			return nil, unreadable(0, err)
		}
		cursor, err := readCursor(answer)
		if err != nil {
			return nil, unreadable(0, err)
		}
		found = append(found, page...)
		if cursor == "" {
			return found, nil
		}
		query.Set("cursor", cursor)
	}
}

// NextOccurrences returns the next occurrences of a schedule; count is 1 to 1000.
func (c *Client) NextOccurrences(
	ctx context.Context, name string, count int,
) ([]time.Time, error) {
	path := schedulePath(name, "/next?count="+strconv.Itoa(count))
	readInstant := func(text json.RawMessage) (instant time.Time, err error) {
		err = json.Unmarshal(text, &instant)
		return instant, err
	}
	return ask(ctx, c, "GET", path, nil, readAll("next", readInstant))
}

// PauseSchedule stops making tasks for occurrences.
func (c *Client) PauseSchedule(ctx context.Context, name string) (Schedule, error) {
	return ask(ctx, c, "POST", schedulePath(name, "/pause"), nil, readSchedule)
}

// ResumeSchedule makes tasks for occurrences again.
func (c *Client) ResumeSchedule(ctx context.Context, name string) (Schedule, error) {
	return ask(ctx, c, "POST", schedulePath(name, "/resume"), nil, readSchedule)
}

// TriggerSchedule makes one task now, in addition to the occurrences.
func (c *Client) TriggerSchedule(ctx context.Context, name string) (ScheduledTask, error) {
	call := call{method: "POST", path: schedulePath(name, "/trigger"), repeat: never}
	return askBy(ctx, c, call, readScheduledTask)
}

// RemoveSchedule removes a recurring schedule. Tasks that it has made stay.
func (c *Client) RemoveSchedule(ctx context.Context, name string) error {
	_, err := ask(ctx, c, "DELETE", schedulePath(name, ""), nil, readAny)
	return err
}
