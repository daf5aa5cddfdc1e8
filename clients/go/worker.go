package detent

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

const (
	defaultVisibilityTimeout = 60 * time.Second
	defaultWait              = 20 * time.Second
	defaultGrace             = 30 * time.Second
	maxLeasedTasks           = 1000                        // of one lease call
	maxDelay                 = 4_294_967_295 * time.Second // 136 years: the limit of the server
)

// pauses between calls of a worker that fail
var workerPauses = []time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second,
}

// pauseAfter returns the pause after this number of failed calls in a row, at least one.
func pauseAfter(failures int) time.Duration {
	if failures > len(workerPauses) {
		failures = len(workerPauses)
	}
	return workerPauses[failures-1]
}

// A Handler works on a task. If it returns nil, the task is completed. If it returns an error or
// panics, the attempt has failed with this error. The task then comes again after its backoff, and
// is dead after its last attempt.
//
// The context ends when the result is no longer wanted: the lease was lost, or the worker no longer
// waits for the handler. The handler should then return soon; the worker does not report its result.
// The context has the values of the context of Run, but does not end with it.
//
// Delivery is at least once: after a crash of either side a task comes again. So a handler must be
// safe to run twice.
type Handler func(ctx context.Context, task LeasedTask) error

type retryError struct {
	error
	delay time.Duration
}

func (err retryError) Unwrap() error { return err.error }

// Retry returns an error for a handler to return: the attempt has failed with err, and the task
// comes again after the delay, instead of its backoff. A delay of 0 or less means immediately; a
// delay above 136 years is shortened to 136 years.
func Retry(err error, delay time.Duration) error {
	if err == nil {
		err = errors.New("retry")
	}
	return retryError{err, delay}
}

type deadError struct{ error }

func (err deadError) Unwrap() error { return err.error }

// Dead returns an error for a handler to return: the attempt has failed with err, and further
// attempts are useless. The task is dead.
func Dead(err error) error {
	if err == nil {
		err = errors.New("dead")
	}
	return deadError{err}
}

// WorkerOptions are the options of a Worker. The zero value has the defaults.
type WorkerOptions struct {
	// Concurrency is the number of tasks that are worked on at the same time, each by its own
	// goroutine; 0: 1.
	Concurrency int
	// Prefetch is the number of tasks to lease in addition, so that the next task is there when one
	// ends; for short tasks.
	Prefetch int
	// VisibilityTimeout is how long a lease lasts without an extension; 0: 60 s. If this process
	// dies, its tasks come again after this time.
	VisibilityTimeout time.Duration
	// Wait is how long a lease call waits for a task, at most 60 s; 0: 20 s.
	Wait time.Duration
	// Grace is how long a worker that stops waits for its handlers; 0: 30 s; negative: not at all.
	Grace time.Duration
	// Name is a name for people; "": the names of this host and process.
	Name string
	// OnError gets the errors of failed calls, lost leases and panics, from several goroutines. By
	// default the package log prints them.
	OnError func(error)
}

// A Worker leases due tasks of one queue, calls a handler with each of them and reports the results.
//
// It extends its leases at every third of the visibility timeout, so a handler may take as long as
// it needs. While the server, or a shard of a cluster, is away, the worker keeps its leases and
// repeats its reports until the lease expires.
type Worker struct {
	client   *Client
	queue    string
	handler  Handler
	options  WorkerOptions
	capacity int

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change of the following fields
	held    map[string]*heldTask
	waiting []*heldTask // the held tasks that no handler has begun, in order
	running int
	// The steps of a run.
	isStarted, isStopping, isGraceOver, isOver bool
}

type heldTask struct {
	LeasedTask
	context    context.Context
	abandon    context.CancelFunc
	isReported bool // the handler has finished
	leaseEnd   time.Time
}

// NewWorker returns a worker on this queue. It does not start yet.
func NewWorker(client *Client, queue string, handler Handler, options WorkerOptions) *Worker {
	setDefault(&options.Concurrency, 1)
	setDefault(&options.VisibilityTimeout, defaultVisibilityTimeout)
	setDefault(&options.Wait, defaultWait)
	setDefault(&options.Grace, defaultGrace)
	if options.Name == "" {
		host, _ := os.Hostname() // without a name, the number of the process remains
		options.Name = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	if options.OnError == nil {
		options.OnError = func(err error) { log.Printf("detent: %s: %v", queue, err) }
	}
	return &Worker{
		client: client, queue: queue, handler: handler, options: options,
		capacity: options.Concurrency + options.Prefetch,
		changed:  make(chan struct{}),
		held:     map[string]*heldTask{},
	}
}

func setDefault[T comparable](option *T, value T) {
	var zero T
	if *option == zero {
		*option = value
	}
}

// Run works until ctx ends, then stops:
//
//  1. It leases no more tasks.
//  2. It releases the tasks that no handler has begun, so another worker gets them immediately. The
//     attempt does not count.
//  3. It waits up to Grace for its handlers.
//  4. It ends the contexts of the remaining handlers and releases their tasks. Run does not wait for
//     these handlers to return.
//
// A worker runs once. Run returns an error if an option is wrong or the worker ran before; nil after
// a stop. To stop at SIGTERM, pass the context of signal.NotifyContext.
func (w *Worker) Run(ctx context.Context) error {
	if w.options.Concurrency < 0 || w.options.Prefetch < 0 || w.options.VisibilityTimeout < 0 ||
		w.options.Wait < 0 {
		return invalid("Concurrency, Prefetch, VisibilityTimeout and Wait must not be negative")
	}
	w.mu.Lock()
	wasStarted := w.isStarted
	w.isStarted = true
	w.mu.Unlock()
	if wasStarted {
		return invalid("a worker runs once")
	}
	values := withoutEnd{ctx}
	var loops sync.WaitGroup
	loops.Add(2)
	go func() { defer loops.Done(); w.leaseOn(ctx, values) }()
	go func() { defer loops.Done(); w.extendOn(values) }()
	<-ctx.Done()
	w.stop(values)
	loops.Wait()
	return nil
}

// withoutEnd has the values of a context, but does not end with it.
type withoutEnd struct{ context.Context }

func (withoutEnd) Deadline() (time.Time, bool) { return time.Time{}, false }
func (withoutEnd) Done() <-chan struct{}       { return nil }
func (withoutEnd) Err() error                  { return nil }

func (w *Worker) stop(ctx context.Context) {
	var unbegun []*heldTask
	w.change(func() { w.isStopping, unbegun, w.waiting = true, w.waiting, nil })
	w.release(ctx, unbegun)
	w.until(func() bool { return len(w.held) == 0 }, max(w.options.Grace, 0))
	var late []*heldTask
	w.change(func() {
		w.isGraceOver = true
		for _, task := range w.held {
			if !task.isReported {
				late = append(late, task)
				task.abandon()
			}
		}
	})
	w.release(ctx, late)
	w.until(func() bool { return len(w.held) == 0 }, forever) // at most one call for each task
	w.change(func() { w.isOver = true })
}

// ---- leasing ----

func (w *Worker) leaseOn(ctx context.Context, values context.Context) {
	isStopping := func() bool { return w.isStopping }
	for failures := 0; ; {
		free := 0
		w.until(func() bool {
			free = min(maxLeasedTasks, w.capacity-len(w.held))
			return w.isStopping || free > 0
		}, forever)
		if ctx.Err() != nil {
			return
		}
		tasks, err := w.client.lease(ctx, w.queue, LeaseOptions{
			Max: free, Wait: w.options.Wait, VisibilityTimeout: w.options.VisibilityTimeout,
			Worker: w.options.Name,
		}, Ptr(time.Duration(0)))
		if err == nil {
			failures = 0
			w.take(values, tasks)
			continue
		}
		if ctx.Err() != nil {
			return
		}
		w.options.OnError(err)
		failures++
		w.until(isStopping, pauseAfter(failures))
	}
}

func (w *Worker) take(values context.Context, tasks []LeasedTask) {
	leaseEnd := time.Now().Add(w.options.VisibilityTimeout)
	taken := make([]*heldTask, len(tasks))
	for i, task := range tasks {
		ctx, abandon := context.WithCancel(values)
		taken[i] = &heldTask{LeasedTask: task, context: ctx, abandon: abandon, leaseEnd: leaseEnd}
	}
	isLate := false
	w.change(func() {
		for _, task := range taken {
			w.held[task.Lease] = task
		}
		if isLate = w.isStopping; !isLate {
			w.waiting = append(w.waiting, taken...)
			w.begin()
		}
	})
	if isLate {
		w.release(values, taken)
	}
}

func (w *Worker) release(ctx context.Context, tasks []*heldTask) {
	if leases := leasesOf(tasks); len(leases) > 0 {
		w.try(ctx, "release", leases, &object{}, nil)
	}
	w.change(func() { w.forget(tasks...) })
}

// forget drops held tasks. The caller holds the lock.
func (w *Worker) forget(tasks ...*heldTask) {
	for _, task := range tasks {
		task.abandon() // frees the context
		delete(w.held, task.Lease)
	}
}

func leasesOf(tasks []*heldTask) []string {
	leases := make([]string, len(tasks))
	for i, task := range tasks {
		leases[i] = task.Lease
	}
	return leases
}

// ---- keeping ----

func (w *Worker) extendOn(ctx context.Context) {
	body := extension(w.options.VisibilityTimeout)
	for failures := 0; ; {
		pause := w.options.VisibilityTimeout / 3
		if failures > 0 {
			pause = min(pause, pauseAfter(failures))
		}
		if w.until(func() bool { return w.isOver }, pause) {
			return
		}
		var tasks []*heldTask
		w.change(func() {
			for _, task := range w.held {
				tasks = append(tasks, task)
			}
		})
		if len(tasks) == 0 {
			failures = 0
			continue
		}
		// Each call is made once. Repeats would delay the extension of leases on other shards.
		results := w.try(ctx, "extend", leasesOf(tasks), body, Ptr(time.Duration(0)))
		isKnown := true
		var lost []*heldTask
		w.change(func() {
			leaseEnd := time.Now().Add(w.options.VisibilityTimeout)
			for i, one := range results {
				switch {
				case one.err != nil:
					isKnown = isKnown && one.err.Code != Unavailable
				case one.value == LeaseDone:
					tasks[i].leaseEnd = leaseEnd
				case one.value == LeaseConflict && w.lose(tasks[i]):
					lost = append(lost, tasks[i])
				}
			}
		})
		for _, task := range lost {
			w.options.OnError(leaseWasLost(task, ""))
		}
		if failures++; isKnown {
			failures = 0
		}
	}
}

// lose abandons a task that another worker may have now. It drops the task if no handler has begun
// it. It returns false if the result of the task was reported. The caller holds the lock.
func (w *Worker) lose(task *heldTask) bool {
	if w.held[task.Lease] != task || task.isReported {
		return false
	}
	task.abandon()
	for i, waiting := range w.waiting {
		if waiting == task {
			w.waiting = append(w.waiting[:i:i], w.waiting[i+1:]...)
			w.forget(task)
			break
		}
	}
	return true
}

func leaseWasLost(task *heldTask, more string) error {
	detail := fmt.Sprintf("the lease of task %s was lost%s", task.ID, more)
	return &Error{Code: Conflict, Detail: detail}
}

// ---- working ----

// begin starts handlers for waiting tasks. The caller holds the lock.
func (w *Worker) begin() {
	for w.running < w.options.Concurrency && len(w.waiting) > 0 {
		task := w.waiting[0]
		w.waiting = w.waiting[1:]
		w.running++
		go w.work(task)
	}
}

// work runs the handler and reports its result. A panic is a failed attempt. The report is made by a
// deferred function, so that runtime.Goexit in a handler does not leave the task behind.
func (w *Worker) work(task *heldTask) {
	err := errors.New("the handler did not return")
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
			w.options.OnError(fmt.Errorf("detent: task %s: %w\n%s", task.ID, err, debug.Stack()))
		}
		w.finish(task, err)
	}()
	err = w.handler(task.context, task.LeasedTask)
}

func (w *Worker) finish(task *heldTask, err error) {
	w.change(func() { task.isReported = task.context.Err() == nil })
	if task.isReported {
		w.report(task, err)
	}
	w.change(func() {
		w.forget(task)
		w.running--
		w.begin()
	})
}

// report reports the result of a handler until the server has given a result for the lease, or the
// lease has expired.
func (w *Worker) report(task *heldTask, failed error) {
	verb, body := "complete", &object{}
	if failed != nil {
		verb, body = "fail", failure(failed).body()
	}
	for failures := 0; ; {
		result := w.try(withoutEnd{task.context}, verb, []string{task.Lease}, body, nil)[0]
		if result.err == nil && result.value == LeaseConflict {
			more := ""
			if failures > 0 { // a call without an answer may have been carried out
				more = ", or an earlier report was carried out"
			}
			w.options.OnError(leaseWasLost(task, more))
		}
		if result.err == nil || result.err.Code != Unavailable {
			return
		}
		failures++
		var left time.Duration
		w.change(func() { left = time.Until(task.leaseEnd) })
		isGraceOver := func() bool { return w.isGraceOver }
		if left <= 0 || w.until(isGraceOver, min(left, pauseAfter(failures))) {
			return
		}
	}
}

// failure clamps the delay and the text. The server would refuse others, and the task would wait
// until its lease ends.
func failure(failed error) *FailOptions {
	options := FailOptions{Error: strings.ToValidUTF8(failed.Error(), "?")}
	var retry retryError
	if errors.As(failed, &retry) {
		options.Delay = Ptr(min(max(retry.delay, 0), maxDelay))
	}
	var dead deadError
	if errors.As(failed, &dead) {
		options.Delay, options.Final = nil, true
	}
	return &options
}

// try returns a result for each lease. An error is reported once for all of them.
func (w *Worker) try(
	ctx context.Context, verb string, leases []string, body *object, retryFor *time.Duration,
) []result[LeaseStatus] {
	results, err := w.client.report(ctx, verb, leases, body, retryFor)
	if err != nil {
		var failed *Error
		if !errors.As(err, &failed) {
			failed = unreadable(0, err)
		}
		results = make([]result[LeaseStatus], len(leases))
		for i := range results {
			results[i].err = failed
		}
	}
	for _, one := range results {
		if one.err != nil {
			w.options.OnError(one.err)
			break
		}
	}
	return results
}

// ---- changes, and waiting for a change ----

const forever time.Duration = -1

// change runs a function with the lock, and wakes the goroutines that wait for a change.
func (w *Worker) change(function func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	function()
	close(w.changed)
	w.changed = make(chan struct{})
}

// until waits until the condition is true, and then returns true. After the limit it returns whether
// the condition is true. The condition is called with the lock.
func (w *Worker) until(isSo func() bool, limit time.Duration) bool {
	var end <-chan time.Time
	if limit != forever {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		end = timer.C
	}
	for isEnd := false; ; {
		w.mu.Lock()
		is, changed := isSo(), w.changed
		w.mu.Unlock()
		if is || isEnd {
			return is
		}
		select {
		case <-changed:
		case <-end:
			isEnd = true
		}
	}
}

func min[T int | time.Duration](a, b T) T {
	if a < b {
		return a
	}
	return b
}

func max[T int | time.Duration](a, b T) T {
	if a > b {
		return a
	}
	return b
}
