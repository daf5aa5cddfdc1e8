package detent

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// LeaseOptions are the options of Client.Lease. The zero value leases one task and does not wait.
type LeaseOptions struct {
	Max               int           // the largest number of tasks, 1 to 1000; 0: 1
	Wait              time.Duration // how long to wait if no task is ready; at most 60 s
	VisibilityTimeout time.Duration // 0: that of the task, or of the queue
	Worker            string        // the name of the worker, for people
}

// Lease leases due tasks, most urgent first. It waits if no task is ready. A Worker makes this call
// and the following calls for you. A repeated Lease takes other tasks: those of the lost answer come
// back after their visibility timeout, which counts as a failed attempt.
func (c *Client) Lease(
	ctx context.Context, queue string, options LeaseOptions,
) ([]LeasedTask, error) {
	return c.lease(ctx, queue, options, nil)
}

func (c *Client) lease(
	ctx context.Context, queue string, options LeaseOptions, retryFor *time.Duration,
) ([]LeasedTask, error) {
	var body object
	put(&body, "max", options.Max)
	body.duration("wait", options.Wait)
	body.putDuration("visibility_timeout", options.VisibilityTimeout)
	put(&body, "worker", options.Worker)
	text, err := body.bytes()
	if err != nil {
		return nil, err
	}
	call := call{method: "POST", path: queuePath(queue, "/lease"), body: text, repeat: always,
		patience: options.Wait, retryFor: retryFor}
	return askBy(ctx, c, call, readAll("tasks", readLeasedTask))
}

// Complete reports that the work is done. It returns the status of each lease, in order. A repeated
// call may return LeaseConflict if the first call was carried out.
func (c *Client) Complete(ctx context.Context, leases []string) ([]LeaseStatus, error) {
	return c.statuses(ctx, "complete", leases, &object{})
}

// FailOptions are the options of Client.Fail.
type FailOptions struct {
	Error string         // the reason, for people
	Delay *time.Duration // when the task comes again; nil: after its backoff
	Final bool           // further attempts are useless: the task is dead now; without a Delay
}

func (options *FailOptions) body() *object {
	var body object
	put(&body, "error", options.Error)
	if options.Delay != nil {
		body.duration("delay", *options.Delay)
	}
	put(&body, "final", options.Final)
	return &body
}

// Fail reports failed attempts. It returns the status of each lease, in order. LeaseDead means that
// the attempt was the last or a final one.
func (c *Client) Fail(
	ctx context.Context, leases []string, options FailOptions,
) ([]LeaseStatus, error) {
	return c.statuses(ctx, "fail", leases, options.body())
}

// Extend lets leases end this time from now, or at their old end if that is later. It returns the
// status of each lease, in order.
func (c *Client) Extend(
	ctx context.Context, leases []string, by time.Duration,
) ([]LeaseStatus, error) {
	return c.statuses(ctx, "extend", leases, extension(by))
}

func extension(by time.Duration) *object {
	var body object
	body.duration("by", by)
	return &body
}

// ReleaseOptions are the options of Client.Release.
type ReleaseOptions struct {
	Delay    time.Duration // 0: the tasks are ready immediately
	Priority *int          // nil: unchanged
}

// Release gives tasks back. The attempt does not count. It returns the status of each lease, in
// order.
func (c *Client) Release(
	ctx context.Context, leases []string, options ReleaseOptions,
) ([]LeaseStatus, error) {
	var body object
	body.putDuration("delay", options.Delay)
	putOptional(&body, "priority", options.Priority)
	return c.statuses(ctx, "release", leases, &body)
}

func (c *Client) statuses(
	ctx context.Context, verb string, leases []string, body *object,
) ([]LeaseStatus, error) {
	results, err := c.report(ctx, verb, leases, body, nil)
	if err != nil {
		return nil, err
	}
	all := make([]LeaseStatus, len(results))
	for i, one := range results {
		switch {
		case one.err == nil:
			all[i] = one.value
		case one.err.Code == Unavailable:
			all[i] = LeaseUnavailable
		default:
			all[i] = LeaseError
		}
	}
	return all, nil
}

// report returns a status or an error for each lease. The body has the other members of the request.
// The time retryFor is for all tries together; nil means that of the client.
func (c *Client) report(
	ctx context.Context, verb string, leases []string, body *object, retryFor *time.Duration,
) ([]result[LeaseStatus], error) {
	call := call{method: "POST", path: "/v1/leases/" + verb, repeat: always, retryFor: retryFor}
	bodyOf := func(some []string) ([]byte, error) {
		var all object
		all.put("leases", append([]string{}, some...))
		all.putAll(body)
		return all.bytes()
	}
	return callForEach(ctx, c.http, call, leases, bodyOf, readStatus)
}

func readStatus(text json.RawMessage) (LeaseStatus, error) {
	var answer struct {
		Status LeaseStatus `json:"status"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return "", err
	}
	if answer.Status == "" {
		return "", errors.New("it lacks a status")
	}
	return answer.Status, nil
}
