// Command all_calls makes each call of the client once, with all arguments, for openapi_test.py.
//
//	all_calls URL
//
// It prints each result as a line of JSON: {"call": NAME, "value": RESULT}.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"reflect"
	"time"

	"detent"
)

var (
	ctx  = context.Background()
	now  = time.Now()
	key  = detent.TaskKey{Queue: "q", Key: "k"}
	wait = &detent.Backoff{Initial: time.Second, Max: time.Minute}
)

// plain returns a struct as a map that has all its fields, by their names in Go.
func plain(value any) any {
	switch v := reflect.ValueOf(value); {
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		all := make([]any, v.Len())
		for i := range all {
			all[i] = plain(v.Index(i).Interface())
		}
		return all
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeOf(now):
		fields := map[string]any{}
		for i := 0; i < v.NumField(); i++ {
			fields[v.Type().Field(i).Name] = plain(v.Field(i).Interface())
		}
		return fields
	default:
		return value
	}
}

// say prints the result of a call.
func say[T any](call string) func(value T, err error) {
	return func(value T, err error) {
		check(err)
		line, err := json.Marshal(map[string]any{"call": call, "value": plain(value)})
		check(err)
		fmt.Println(string(line))
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func quiet[T any](_ T, err error) { check(err) }

func newTask() detent.NewTask {
	return detent.NewTask{Queue: "q", Payload: json.RawMessage("1"), Due: detent.In(time.Second),
		Key: "k", Priority: detent.Ptr(7), MaxAttempts: 2, VisibilityTimeout: time.Minute,
		Backoff: wait, Webhook: "http://a/", Headers: map[string]string{"X-A": "b"},
		OnKey: detent.OnKeyReplace, MaxWait: time.Minute}
}

func tasks(client *detent.Client) {
	say[detent.ScheduledTask]("Schedule")(client.Schedule(ctx, newTask()))
	other := detent.NewTask{Queue: "q", Bytes: []byte("b"), Due: detent.At(now)}
	quiet(client.Schedule(ctx, other))
	say[[]detent.TaskResult]("ScheduleMany")(
		client.ScheduleMany(ctx, []detent.NewTask{newTask(), other}))
	say[detent.Task]("Get")(client.Get(ctx, detent.TaskID("256")))
	quiet(client.Get(ctx, key))
	say[detent.TaskPage]("List")(client.List(ctx, detent.ListOptions{Queue: "q",
		State: detent.StateDead, Key: "k", DueAfter: now, DueBefore: now, Limit: 5}))
	quiet(client.List(ctx, detent.ListOptions{Cursor: "c"}))
	for _, name := range []detent.TaskName{detent.TaskID("256"), key} {
		check(client.Cancel(ctx, name))
		quiet(client.CancelMany(ctx, []detent.TaskName{name}))
		for _, due := range []detent.Due{detent.In(time.Second), detent.At(now)} {
			say[detent.ScheduledTask]("Move")(client.Move(ctx, name, due))
			say[[]detent.TaskResult]("MoveMany")(
				client.MoveMany(ctx, []detent.TaskName{name}, due))
		}
	}
	say[detent.ScheduledTask]("RunNow")(client.RunNow(ctx, "256"))
	say[json.RawMessage]("Stats")(client.Stats(ctx))
}

func leases(client *detent.Client) {
	leases := []string{"1-1", "1-2"}
	say[[]detent.LeasedTask]("Lease")(client.Lease(ctx, "q", detent.LeaseOptions{
		Max: 5, Wait: time.Second, VisibilityTimeout: time.Minute, Worker: "w"}))
	say[[]detent.LeaseStatus]("Complete")(client.Complete(ctx, leases))
	say[[]detent.LeaseStatus]("Fail")(client.Fail(ctx, leases,
		detent.FailOptions{Error: "e", Delay: detent.Ptr(time.Second)}))
	say[[]detent.LeaseStatus]("Fail")(client.Fail(ctx, leases,
		detent.FailOptions{Error: "e", Final: true}))
	say[[]detent.LeaseStatus]("Extend")(client.Extend(ctx, leases, time.Minute))
	say[[]detent.LeaseStatus]("Release")(client.Release(ctx, leases,
		detent.ReleaseOptions{Delay: time.Second, Priority: detent.Ptr(7)}))
}

func queues(client *detent.Client) {
	say[[]detent.Queue]("Queues")(client.Queues(ctx))
	say[detent.Queue]("Queue")(client.Queue(ctx, "q"))
	say[detent.Queue]("ChangeQueue")(client.ChangeQueue(ctx, "q", detent.QueueChange{
		Paused: detent.Set(true), MaxAttempts: detent.Set(2),
		VisibilityTimeout: detent.Set(time.Minute), Backoff: detent.Set(*wait),
		Retention: detent.Set(time.Minute), KeyRetention: detent.Set(time.Minute),
		MaxTasks: detent.Set[int64](5), MaxBytes: detent.Set[int64](5), Rate: detent.Set(5),
		Concurrency: detent.Set(5), Sink: detent.Set("s"), Partitions: detent.Set(2),
		Webhook: detent.Set(detent.QueueWebhook{URL: "http://a/", Keys: []string{"whsec_AA=="}})}))
	check(client.RemoveQueue(ctx, "q"))
	say[detent.Queue]("Pause")(client.Pause(ctx, "q"))
	say[detent.Queue]("Resume")(client.Resume(ctx, "q"))
	say[int64]("Purge")(client.Purge(ctx, "q"))
	say[int64]("Redrive")(client.Redrive(ctx, "q"))
}

func schedules(client *detent.Client) {
	say[detent.Schedule]("PutSchedule")(client.PutSchedule(ctx, "s", detent.NewSchedule{
		Queue: "q", Payload: json.RawMessage("1"), Cron: "* * * * *", TimeZone: "UTC", Gap: "skip",
		Repeat: "first", Priority: detent.Ptr(7), MaxAttempts: 2, VisibilityTimeout: time.Minute,
		Backoff: wait, Count: 5, Start: now, End: now, Jitter: time.Second, Misfire: "all",
		MisfireGrace: detent.Ptr(time.Second), MisfireLimit: detent.Ptr(5), Overlap: "skip"}))
	quiet(client.PutSchedule(ctx, "s", detent.NewSchedule{
		Queue: "q", Bytes: []byte("b"), Every: time.Minute, Anchor: now}))
	quiet(client.PutSchedule(ctx, "s", detent.NewSchedule{
		Queue: "q", Calendar: &detent.Calendar{Every: 1, Unit: "day", MonthEnd: "skip"}}))
	say[detent.Schedule]("GetSchedule")(client.GetSchedule(ctx, "s"))
	say[[]detent.Schedule]("Schedules")(client.Schedules(ctx))
	say[[]time.Time]("NextOccurrences")(client.NextOccurrences(ctx, "s", 3))
	say[detent.Schedule]("PauseSchedule")(client.PauseSchedule(ctx, "s"))
	say[detent.Schedule]("ResumeSchedule")(client.ResumeSchedule(ctx, "s"))
	say[detent.ScheduledTask]("TriggerSchedule")(client.TriggerSchedule(ctx, "s"))
	check(client.RemoveSchedule(ctx, "s"))
}

func main() {
	client, err := detent.NewClient(os.Args[1], detent.ClientOptions{RetryFor: -1})
	check(err)
	tasks(client)
	leases(client)
	queues(client)
	schedules(client)
}
