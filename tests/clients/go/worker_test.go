package tests

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"detent"
)

const patience = 120 * time.Second // until a test that hangs fails

func wait(t *testing.T, event <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-event:
	case <-time.After(patience):
		t.Fatal("waited in vain: " + what)
	}
}

// until waits until the condition is true.
func until(t *testing.T, what string, isSo func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !isSo(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain: " + what)
		}
	}
}

// begin runs a worker. It returns a function that stops the worker.
func begin(
	t *testing.T, client *detent.Client, handler detent.Handler, options detent.WorkerOptions,
) (stop func()) {
	t.Helper()
	if options.Wait == 0 {
		options.Wait = time.Second
	}
	running, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := detent.NewWorker(client, "q", handler, options).Run(running); err != nil {
			t.Error(err)
		}
	}()
	stop = func() { cancel(); wait(t, ended, "the worker stops") }
	t.Cleanup(stop)
	return stop
}

func queueOf(t *testing.T, client *detent.Client) detent.Queue {
	t.Helper()
	queue, err := client.Queue(ctx, "q")
	return of(t, queue, err)
}

func isEmpty(t *testing.T, client *detent.Client) func() bool {
	return func() bool {
		queue := queueOf(t, client)
		return queue.Scheduled+queue.Ready+queue.Leased+queue.Dead == 0
	}
}

func scheduleMany(t *testing.T, client *detent.Client, count int) {
	t.Helper()
	tasks := make([]detent.NewTask, count)
	for n := range tasks {
		tasks[n] = detent.NewTask{Queue: "q", Key: fmt.Sprint(n)}
	}
	results, err := client.ScheduleMany(ctx, tasks)
	must(t, err)
	for _, result := range results {
		must(t, result.Err)
	}
}

func TestTheResultOfAHandlerIsReported(t *testing.T) {
	_, client := withServer(t)
	ids := map[string]detent.TaskID{}
	for _, key := range []string{"good", "bad", "later", "overdue", "panic", "useless"} {
		task := detent.NewTask{Queue: "q", Key: key}
		if key == "bad" || key == "panic" {
			task.MaxAttempts = 1
		}
		ids[key] = scheduleOne(t, client, task).ID
	}
	begin(t, client, func(_ context.Context, task detent.LeasedTask) error {
		switch task.Key {
		case "bad":
			return errors.New("no \xff route")
		case "later":
			return detent.Retry(errors.New("busy"), time.Hour)
		case "overdue":
			if task.Attempt == 1 {
				return detent.Retry(errors.New("late"), -5)
			}
		case "panic":
			panic("wrong")
		case "useless":
			return fmt.Errorf("order 7: %w", detent.Dead(errors.New("no such order")))
		}
		return nil
	}, detent.WorkerOptions{Concurrency: 2, OnError: func(error) {}})
	until(t, "the good and the overdue task are done", func() bool {
		queue := queueOf(t, client)
		return queue.Scheduled == 1 && queue.Dead == 3 && queue.Ready+queue.Leased == 0
	})
	for key, text := range map[string]string{
		"bad": "no ? route", "later": "busy", "panic": "panic: wrong",
		"useless": "order 7: no such order"} {
		task, err := client.Get(ctx, ids[key])
		equal(t, of(t, task, err).LastError, text)
	}
}

func TestAHandlerLongerThanTheVisibilityTimeoutKeepsItsTask(t *testing.T) {
	_, client := withServer(t)
	scheduleMany(t, client, 3)
	const timeout = time.Second
	mu, runs := sync.Mutex{}, []string{}
	begin(t, client, func(handling context.Context, task detent.LeasedTask) error {
		mu.Lock()
		runs = append(runs, fmt.Sprint(task.Key, task.Attempt))
		mu.Unlock()
		if task.Key == "0" {
			time.Sleep(2 * timeout) // longer than a lease without extensions
		}
		return handling.Err()
	}, detent.WorkerOptions{Prefetch: 2, VisibilityTimeout: timeout})
	until(t, "all tasks are done", isEmpty(t, client))
	equal(t, runs, []string{"01", "11", "21"})
}

func TestAStopReleasesUnbegunTasksAndWaitsForTheOthers(t *testing.T) {
	_, client := withServer(t)
	scheduleMany(t, client, 10)
	began, goOn := make(chan struct{}, 2), make(chan struct{})
	mu, attempts := sync.Mutex{}, map[string]int{}
	note := func(task detent.LeasedTask) {
		mu.Lock()
		defer mu.Unlock()
		attempts[task.Key] += task.Attempt
	}
	stop := begin(t, client, func(_ context.Context, task detent.LeasedTask) error {
		began <- struct{}{}
		wait(t, goOn, "the others are done")
		note(task)
		return nil
	}, detent.WorkerOptions{Concurrency: 2, Prefetch: 8})
	wait(t, began, "the first handler")
	wait(t, began, "the second handler")
	until(t, "all are leased", func() bool { return queueOf(t, client).Leased == 10 })
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	until(t, "the others are released", func() bool { return queueOf(t, client).Ready == 8 })
	begin(t, client, func(_ context.Context, task detent.LeasedTask) error {
		note(task)
		return nil
	}, detent.WorkerOptions{Concurrency: 4})
	until(t, "the others are done", func() bool { mu.Lock(); defer mu.Unlock(); return len(attempts) == 8 })
	close(goOn)
	wait(t, stopped, "the first worker stops")
	until(t, "all are done", isEmpty(t, client))
	equal(t, len(attempts), 10)
	for key, attempt := range attempts {
		if attempt != 1 {
			t.Fatal(key, attempt)
		}
	}
}

func TestAHandlerThatOutlivesTheGraceIsAbandonedAndItsTaskReleased(t *testing.T) {
	_, client := withServer(t)
	scheduleMany(t, client, 1)
	began, ended := make(chan struct{}), make(chan struct{})
	stop := begin(t, client, func(handling context.Context, _ detent.LeasedTask) error {
		close(began)
		wait(t, handling.Done(), "the context ends")
		close(ended)
		return nil
	}, detent.WorkerOptions{Grace: -1})
	wait(t, began, "the handler begins")
	stop()
	wait(t, ended, "the handler ends")
	leased := leaseOne(t, client, detent.LeaseOptions{Wait: 5 * time.Second})
	equal(t, leased.Attempt, 1)
}

func TestAnIdleWorkerStopsImmediatelyAndHoldsNoTask(t *testing.T) {
	_, client := withServer(t)
	isWaiting := func(count int) func() bool {
		return func() bool {
			stats, err := client.Stats(ctx)
			return strings.Contains(string(of(t, stats, err)), fmt.Sprintf(`"waiting_workers":%d`, count))
		}
	}
	stop := begin(t, client, func(context.Context, detent.LeasedTask) error { return nil },
		detent.WorkerOptions{Wait: time.Minute})
	until(t, "the worker waits", isWaiting(1))
	stop()
	until(t, "the worker has gone", isWaiting(0))
	scheduleMany(t, client, 1)
	leaseOne(t, client, detent.LeaseOptions{})
}

func TestAServerKilledTwiceLosesNothingAndRepeatsOnlyOpenLeases(t *testing.T) {
	const count, concurrency, prefetch, kills = 600, 4, 8, 2
	server, client := withServer(t)
	scheduleMany(t, client, count)
	mu, runs := sync.Mutex{}, map[string]int{}
	done := func() int { mu.Lock(); defer mu.Unlock(); return len(runs) }
	stop := begin(t, client, func(_ context.Context, task detent.LeasedTask) error {
		mu.Lock()
		defer mu.Unlock()
		runs[task.Key]++
		return nil
	}, detent.WorkerOptions{Concurrency: concurrency, Prefetch: prefetch, OnError: func(error) {}})
	for kill := 1; kill <= kills; kill++ {
		until(t, "a third is done", func() bool { return done() >= kill*count/(kills+1) })
		server.kill()
		server.start()
	}
	until(t, "all are done", isEmpty(t, client))
	stop()
	total := 0
	for _, times := range runs {
		total += times
	}
	equal(t, len(runs), count)
	if repeats := total - count; repeats > kills*(concurrency+prefetch) {
		t.Fatal("tasks that were not leased ran twice: ", repeats)
	}
}
