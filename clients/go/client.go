package detent

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	defaultURL      = "http://127.0.0.1:7070"
	defaultTimeout  = 30 * time.Second
	defaultRetryFor = 15 * time.Second
	// A purge or a redrive of a large queue takes longer than other calls.
	countPatience = 60 * time.Second
)

// ClientOptions are the options of a Client. The zero value has the defaults.
type ClientOptions struct {
	// Token is an access token, if the server requires one.
	Token string
	// CAFile is a PEM file with the trusted certificates for https; "": those of the system.
	CAFile string
	// Timeout is the time limit of one try; 0: 30 s; at most a day. Lease adds its Wait.
	Timeout time.Duration
	// RetryFor is the time for which a failed call is repeated; 0: 15 s; negative: never.
	RetryFor time.Duration
}

// A Client calls one server. It is safe for concurrent use, and needs no end: connections that no
// call uses are closed after a minute. The error of each call is an *Error. A call ends when its
// context ends; the server may then have carried the call out.
type Client struct {
	http *transport
}

// NewClient returns a client of the server with this URL; "" means "http://127.0.0.1:7070". It does
// not connect yet. It fails with InvalidArgument.
func NewClient(url string, options ClientOptions) (*Client, error) {
	if url == "" {
		url = defaultURL
	}
	if options.Timeout == 0 {
		options.Timeout = defaultTimeout
	}
	if options.RetryFor == 0 {
		options.RetryFor = defaultRetryFor
	}
	transport, err := newTransport(url, options)
	if err != nil {
		return nil, err
	}
	return &Client{http: transport}, nil
}

// CloseIdle closes the connections that no call uses. Later calls open new connections.
func (c *Client) CloseIdle() { c.http.http.CloseIdleConnections() }

// ---- paths ----

// segment returns a name as one segment of a path.
func segment(name string) string {
	return strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
}

func queuePath(name, rest string) string { return "/v1/queues/" + segment(name) + rest }

func schedulePath(name, rest string) string { return "/v1/schedules/" + segment(name) + rest }

func (id TaskID) taskPath() string { return "/v1/tasks/" + segment(string(id)) }

func (key TaskKey) taskPath() string { return queuePath(key.Queue, "/keys/"+segment(key.Key)) }

// namesOf returns a body with ids, or with keys of one queue.
func namesOf(tasks []TaskName) (*object, error) {
	ids, keys, queue := []string{}, []string{}, ""
	for _, task := range tasks {
		switch task := task.(type) {
		case TaskID:
			ids = append(ids, string(task))
		case TaskKey:
			if len(keys) > 0 && task.Queue != queue {
				return nil, invalid("tasks must all be ids, or all keys of one queue")
			}
			keys, queue = append(keys, task.Key), task.Queue
		}
	}
	var body object
	switch {
	case len(ids)+len(keys) != len(tasks) || len(ids) > 0 && len(keys) > 0:
		return nil, invalid("tasks must all be ids, or all keys of one queue")
	case len(keys) > 0:
		body.put("queue", queue)
		body.put("keys", keys)
	default:
		body.put("ids", ids)
	}
	return &body, nil
}

// ask makes a call that may be repeated, and reads its answer.
func ask[T any](
	ctx context.Context, c *Client, method, path string, body []byte,
	read func(json.RawMessage) (T, error),
) (T, error) {
	return askBy(ctx, c, call{method: method, path: path, body: body, repeat: always}, read)
}

func askBy[T any](
	ctx context.Context, c *Client, call call, read func(json.RawMessage) (T, error),
) (T, error) {
	var none T
	answer, err := c.http.call(ctx, call)
	if err != nil {
		return none, err
	}
	value, err := read(answer)
	if err != nil {
		return none, unreadable(http.StatusOK, err)
	}
	return value, nil
}

// readAll returns a function that reads the list in this member of an answer.
func readAll[T any](
	member string, read func(json.RawMessage) (T, error),
) func(json.RawMessage) ([]T, error) {
	return func(text json.RawMessage) ([]T, error) {
		var answer map[string]json.RawMessage
		if err := json.Unmarshal(text, &answer); err != nil {
			return nil, err
		}
		var elements []json.RawMessage
		if err := json.Unmarshal(answer[member], &elements); err != nil { // also if it is missing
			return nil, err
		}
		all := make([]T, len(elements))
		for i, element := range elements {
			one, err := read(element)
			if err != nil {
				return nil, err
			}
			all[i] = one
		}
		return all, nil
	}
}

func readAny(text json.RawMessage) (json.RawMessage, error) { return text, nil }

func readCursor(text json.RawMessage) (string, error) {
	var answer struct {
		Cursor string `json:"cursor"`
	}
	err := json.Unmarshal(text, &answer)
	return answer.Cursor, err
}

// ---- tasks ----

func repeatOf(tasks ...NewTask) repeat {
	for i := range tasks {
		if tasks[i].Key == "" {
			return never
		}
	}
	return always
}

// Schedule schedules a task. When it returns without an error, the task is on the server's disk. It
// fails with Conflict if the key stands for a request with other fields.
func (c *Client) Schedule(ctx context.Context, task NewTask) (ScheduledTask, error) {
	body, err := task.body()
	if err != nil {
		return ScheduledTask{}, err
	}
	call := call{method: "POST", path: "/v1/tasks", body: body, repeat: repeatOf(task)}
	return askBy(ctx, c, call, readScheduledTask)
}

// ScheduleMany schedules up to 10 000 tasks in one commit. It returns a result for each, in order; a
// wrong task fails alone.
func (c *Client) ScheduleMany(ctx context.Context, tasks []NewTask) ([]TaskResult, error) {
	call := call{method: "POST", path: "/v1/tasks/batch", repeat: repeatOf(tasks...)}
	return taskResults(callForEach(ctx, c.http, call, tasks, bodyOfTasks, readScheduledTask))
}

func taskResults(results []result[ScheduledTask], err error) ([]TaskResult, error) {
	if err != nil {
		return nil, err
	}
	all := make([]TaskResult, len(results))
	for i, one := range results {
		all[i].Task = one.value
		if one.err != nil {
			all[i].Err = one.err
		}
	}
	return all, nil
}

// Get returns the record of a task. It fails with NotFound.
func (c *Client) Get(ctx context.Context, task TaskName) (Task, error) {
	return ask(ctx, c, "GET", task.taskPath(), nil, readTask)
}

// ListOptions are the filter and the page of Client.List. A task must match every field that is not
// zero.
type ListOptions struct {
	Queue     string
	State     TaskState
	Key       string
	DueAfter  time.Time // the instant or later
	DueBefore time.Time
	Limit     int    // tasks in a page, 1 to 1000; 0: 100
	Cursor    string // of the page before
}

// List returns a page of the tasks that match all options, in due order. A page can be short, or
// even empty, before the end: continue from its cursor until the cursor is "".
func (c *Client) List(ctx context.Context, options ListOptions) (TaskPage, error) {
	query := url.Values{}
	for name, value := range map[string]string{
		"queue": options.Queue, "state": string(options.State), "key": options.Key,
		"cursor": options.Cursor,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for name, instant := range map[string]time.Time{
		"due_after": options.DueAfter, "due_before": options.DueBefore,
	} {
		if !instant.IsZero() {
			query.Set(name, strconv.FormatInt(instantOf(instant), 10))
		}
	}
	if options.Limit != 0 {
		query.Set("limit", strconv.Itoa(options.Limit))
	}
	answer, err := ask(ctx, c, "GET", withQuery("/v1/tasks", query), nil, readAny)
	if err != nil {
		return TaskPage{}, err
	}
	tasks, err := readAll("tasks", readTask)(answer)
	if err != nil {
		return TaskPage{}, unreadable(http.StatusOK, err)
	}
	cursor, err := readCursor(answer)
	if err != nil {
		return TaskPage{}, unreadable(http.StatusOK, err)
	}
	return TaskPage{Tasks: tasks, Cursor: cursor}, nil
}

func withQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + strings.ReplaceAll(query.Encode(), "+", "%20")
}

// Cancel cancels a task. It fails with NotFound, and with Conflict while the task is leased.
func (c *Client) Cancel(ctx context.Context, task TaskName) error {
	_, err := ask(ctx, c, "DELETE", task.taskPath(), nil, readAny)
	return err
}

// CancelMany cancels up to 10 000 tasks in one commit: ids, or keys of one queue. It returns an
// error for each, in order; nil for each cancelled task.
func (c *Client) CancelMany(ctx context.Context, tasks []TaskName) ([]error, error) {
	call := call{method: "POST", path: "/v1/tasks/cancel", repeat: always}
	bodyOf := func(some []TaskName) ([]byte, error) {
		body, err := namesOf(some)
		if err != nil {
			return nil, err
		}
		return body.bytes()
	}
	results, err := callForEach(ctx, c.http, call, tasks, bodyOf, readAny)
	if err != nil {
		return nil, err
	}
	all := make([]error, len(results))
	for i, one := range results {
		if one.err != nil {
			all[i] = one.err
		}
	}
	return all, nil
}

// Move gives a task another due time. A dead task becomes live again. It fails as Cancel does.
func (c *Client) Move(ctx context.Context, task TaskName, due Due) (ScheduledTask, error) {
	var body object
	body.putDue(due)
	text, err := body.bytes()
	if err != nil {
		return ScheduledTask{}, err
	}
	return ask(ctx, c, "PATCH", task.taskPath(), text, readScheduledTask)
}

// MoveMany gives up to 10 000 tasks the same due time. The limits and the results are as those of
// CancelMany and ScheduleMany.
func (c *Client) MoveMany(ctx context.Context, tasks []TaskName, due Due) ([]TaskResult, error) {
	call := call{method: "POST", path: "/v1/tasks/move", repeat: always}
	bodyOf := func(some []TaskName) ([]byte, error) {
		body, err := namesOf(some)
		if err != nil {
			return nil, err
		}
		body.putDue(due)
		return body.bytes()
	}
	return taskResults(callForEach(ctx, c.http, call, tasks, bodyOf, readScheduledTask))
}

// RunNow makes a task due now. It fails as Cancel does.
func (c *Client) RunNow(ctx context.Context, id TaskID) (ScheduledTask, error) {
	return ask(ctx, c, "POST", id.taskPath()+"/run", nil, readScheduledTask)
}

// Stats returns the server's counts, in the form of GET /v1/stats (docs/reference/http.md).
func (c *Client) Stats(ctx context.Context) (json.RawMessage, error) {
	return ask(ctx, c, "GET", "/v1/stats", nil, readAny)
}
