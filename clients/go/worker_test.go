package detent

// Tests the worker with a scripted server: leases of a shard that is away, wrong answers, and
// handlers that fail. Tests wait for events, and use times only for limits.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

type testKey struct{}

const patience = 60 * time.Second // until a test that hangs fails

func wait(t *testing.T, event <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-event:
	case <-time.After(patience):
		t.Fatal("waited in vain: " + what)
	}
}

// A taskServer hands out the tasks 1 … count, each once. The function resultOf gives the answer to
// each call for a lease; times counts the calls with this verb and lease.
type taskServer struct {
	count    int
	resultOf func(verb, lease string, times int) string

	mu         sync.Mutex
	leased     int
	asked      map[string]int
	bodies     map[string]map[string]any // the last body of each verb
	wantsMore  chan struct{}             // closed when a worker asks for more tasks than there are
	isWantMore bool
}

func (s *taskServer) times(verb, lease string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[verb+" "+lease]
}

func (s *taskServer) body(verb string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies[verb]
}

func (s *taskServer) answer(address string, text []byte) answer {
	var body struct {
		Max    int
		Leases []string
	}
	var members map[string]any
	if json.Unmarshal(text, &body) != nil || json.Unmarshal(text, &members) != nil {
		return problem(400, "invalid_argument", "")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	verb := path.Base(address)
	s.bodies[verb] = members
	if verb == "lease" {
		return s.lease(body.Max)
	}
	var each []string
	isAllAway := true
	for _, lease := range body.Leases {
		name := verb + " " + lease
		s.asked[name]++
		one := s.resultOf(verb, lease, s.asked[name])
		isAllAway = isAllAway && one == away
		each = append(each, one)
	}
	if isAllAway { // like a cluster: if all elements failed with the same error, the call fails
		return busy
	}
	return results(each...)
}

func (s *taskServer) lease(most int) answer {
	var tasks []string
	for len(tasks) < most && s.leased < s.count {
		s.leased++
		tasks = append(tasks, fmt.Sprintf(`{"id":"%d","lease":"1-%d","attempt":1,"queue":"q",
			"priority":0,"payload":%d,"due_at":"2026-01-02T03:04:05.678Z",
			"lease_until":"2026-01-02T03:04:05.678Z","lateness_ms":7}`, s.leased, s.leased, s.leased))
	}
	if len(tasks) == 0 && !s.isWantMore {
		s.isWantMore = true
		close(s.wantsMore)
	}
	return answer{status: 200, body: `{"tasks":[` + strings.Join(tasks, ",") + `]}`}
}

// A rig is a worker on a taskServer, and the errors that it reports.
type rig struct {
	*taskServer
	server *scriptedServer
	stop   func()
	mu     sync.Mutex
	errs   []error
}

func (r *rig) errors() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]error(nil), r.errs...)
}

func (r *rig) allAre(t *testing.T, code Code) {
	t.Helper()
	isTrue(t, len(r.errors()) > 0, "there are errors")
	for _, err := range r.errors() {
		isTrue(t, errors.Is(err, code), err.Error())
	}
}

func allHeld(string, string, int) string { return held }

func work(
	t *testing.T, count int, resultOf func(verb, lease string, times int) string,
	handler Handler, options WorkerOptions, script ...answer,
) *rig {
	t.Helper()
	tasks := &taskServer{count: count, resultOf: resultOf, asked: map[string]int{},
		bodies: map[string]map[string]any{}, wantsMore: make(chan struct{})}
	r := &rig{taskServer: tasks, server: newScripted(t, script...)}
	r.server.otherwise = tasks.answer
	client, err := NewClient(r.server.URL, ClientOptions{RetryFor: -1})
	must(t, err)
	options.Wait = time.Millisecond
	options.OnError = func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.errs = append(r.errs, err)
	}
	ctx, cancel := context.WithCancel(context.WithValue(background, testKey{}, "v"))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := NewWorker(client, "q", handler, options).Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	r.stop = func() { cancel(); wait(t, ended, "the worker stops") }
	t.Cleanup(r.stop)
	return r
}

func doNothing(context.Context, LeasedTask) error { return nil }

func TestAReportIsRepeatedUntilTheShardIsBack(t *testing.T) {
	for verb, err := range map[string]error{"complete": nil, "fail": errors.New("no")} {
		r := work(t, 2, func(_, lease string, times int) string {
			if lease == "1-2" && times < 4 {
				return away
			}
			return held
		}, func(context.Context, LeasedTask) error { return err }, WorkerOptions{Concurrency: 2})
		wait(t, r.wantsMore, "both tasks are done")
		r.stop()
		equal(t, []int{r.times(verb, "1-1"), r.times(verb, "1-2")}, []int{1, 4})
		r.allAre(t, Unavailable)
	}
}

func TestALeaseThatCouldNotBeExtendedIsKept(t *testing.T) {
	enough, finished := make(chan struct{}), make(chan struct{})
	var ended []error
	r := work(t, 3, func(verb, lease string, times int) string {
		if verb == "complete" && lease == "1-3" {
			close(finished)
		}
		if verb != "extend" || lease != "1-2" {
			return held
		}
		if times == 4 {
			close(enough)
		}
		if times < 4 {
			return away
		}
		return held
	}, func(ctx context.Context, task LeasedTask) error {
		wait(t, enough, "four extensions")
		if ctx.Err() != nil {
			ended = append(ended, ctx.Err())
		}
		return nil
	}, WorkerOptions{Prefetch: 2, VisibilityTimeout: 300 * time.Millisecond})
	wait(t, finished, "all tasks are done")
	r.stop()
	equal(t, len(ended), 0)
	for _, lease := range []string{"1-1", "1-2", "1-3"} {
		equal(t, r.times("complete", lease), 1)
	}
	r.allAre(t, Unavailable)
}

func TestAReportEndsWhenTheLeaseHasExpired(t *testing.T) {
	r := work(t, 1, func(string, string, int) string { return away }, doNothing,
		WorkerOptions{VisibilityTimeout: 50 * time.Millisecond})
	wait(t, r.wantsMore, "the task is given up")
	r.stop()
	r.allAre(t, Unavailable)
}

func TestAStopEndsReportsAfterItsGrace(t *testing.T) {
	reported := make(chan struct{})
	r := work(t, 1, func(verb, _ string, times int) string {
		if verb != "complete" {
			return held
		}
		if times == 1 {
			close(reported)
		}
		return away
	}, doNothing, WorkerOptions{Grace: -1})
	wait(t, reported, "the first report")
	r.stop()
	r.allAre(t, Unavailable)
}

func TestAConflictAfterAnUnknownOutcomeSaysSo(t *testing.T) {
	r := work(t, 1, func(_, _ string, times int) string {
		if times == 1 {
			return away
		}
		return gone
	}, doNothing, WorkerOptions{})
	wait(t, r.wantsMore, "the task has ended")
	r.stop()
	errs := r.errors()
	last := errs[len(errs)-1]
	isTrue(t, errors.Is(last, Conflict), "the code")
	isTrue(t, strings.Contains(last.Error(), "or an earlier report was carried out"), last.Error())
}

func TestALostLeaseEndsTheContextOfItsHandler(t *testing.T) {
	ended := make(chan struct{})
	r := work(t, 3, func(verb, _ string, _ int) string {
		if verb == "extend" {
			return gone
		}
		return held
	}, func(ctx context.Context, task LeasedTask) error {
		wait(t, ctx.Done(), "the lease is lost")
		equal(t, task.ID, TaskID("1"))
		close(ended)
		return nil
	}, WorkerOptions{Prefetch: 2, VisibilityTimeout: 60 * time.Millisecond})
	wait(t, ended, "the handler ends")
	wait(t, r.wantsMore, "the capacity is free again")
	r.stop()
	r.allAre(t, Conflict)
	equal(t, len(r.errors()), 3)
	for _, lease := range []string{"1-1", "1-2", "1-3"} {
		equal(t, r.times("complete", lease)+r.times("fail", lease)+r.times("release", lease), 0)
	}
}

func TestTheErrorOfAHandlerIsReported(t *testing.T) {
	handlers := map[string]struct {
		handler Handler
		body    map[string]any
	}{
		"an error": {
			func(context.Context, LeasedTask) error { return errors.New("no \xff route") },
			map[string]any{"error": "no ? route"}},
		"Retry": {
			func(context.Context, LeasedTask) error {
				return fmt.Errorf("now: %w", Retry(errors.New("busy"), 1500*time.Millisecond))
			},
			map[string]any{"error": "now: busy", "delay_ms": 1500.0}},
		"Retry with a negative delay": {
			func(context.Context, LeasedTask) error { return Retry(nil, -5) },
			map[string]any{"error": "retry", "delay_ms": 0.0}},
		"Retry with a delay above the limit": {
			func(context.Context, LeasedTask) error { return Retry(io.EOF, 1<<63-1) },
			map[string]any{"error": "EOF", "delay_ms": 4_294_967_295_000.0}},
		"a panic": {
			func(context.Context, LeasedTask) error { panic("wrong") },
			map[string]any{"error": "panic: wrong"}},
		"runtime.Goexit": {
			func(context.Context, LeasedTask) error { runtime.Goexit(); return nil },
			map[string]any{"error": "the handler did not return"}},
	}
	for name, one := range handlers {
		r := work(t, 1, allHeld, one.handler, WorkerOptions{})
		wait(t, r.wantsMore, name)
		r.stop()
		body := r.body("fail")
		equal(t, body["leases"], []any{"1-1"})
		delete(body, "leases")
		equal(t, body, one.body)
		if isPanic := name == "a panic"; isPanic {
			equal(t, len(r.errors()), 1)
			isTrue(t, strings.Contains(r.errors()[0].Error(), "worker_test.go"), "the stack")
		} else {
			equal(t, len(r.errors()), 0)
		}
	}
}

func TestAStopReleasesUnbegunTasksAndWaitsForTheOthers(t *testing.T) {
	began, goOn, released := make(chan struct{}, 2), make(chan struct{}), make(chan struct{})
	r := work(t, 5, func(verb, lease string, _ int) string {
		if verb == "release" && lease == "1-5" {
			close(released)
		}
		return held
	}, func(ctx context.Context, task LeasedTask) error {
		equal(t, task.Lateness, 7*time.Millisecond)
		equal(t, ctx.Value(testKey{}), "v")
		began <- struct{}{}
		wait(t, goOn, "the other tasks are released")
		return ctx.Err()
	}, WorkerOptions{Concurrency: 2, Prefetch: 3})
	wait(t, began, "the first handler")
	wait(t, began, "the second handler")
	go func() { wait(t, released, "the release"); close(goOn) }()
	r.stop()
	for i, times := range []int{1, 1, 0, 0, 0} {
		lease := fmt.Sprintf("1-%d", i+1)
		equal(t, []int{r.times("complete", lease), r.times("release", lease)}, []int{times, 1 - times})
	}
}

func TestAHandlerThatOutlivesTheGraceIsAbandoned(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	r := work(t, 1, allHeld, func(ctx context.Context, _ LeasedTask) error {
		close(began)
		wait(t, ctx.Done(), "the context ends")
		close(ended)
		return nil
	}, WorkerOptions{Grace: -1})
	wait(t, began, "the handler begins")
	r.stop()
	wait(t, ended, "the handler ends")
	equal(t, []int{r.times("release", "1-1"), r.times("complete", "1-1")}, []int{1, 0})
}

func TestAWrongLeaseAnswerIsReportedAndTheWorkerContinues(t *testing.T) {
	var wrong []answer
	for _, body := range []string{`{"tasks":[{"id":"9"}]}`, "{}", "[]"} {
		wrong = append(wrong, answer{status: 200, body: body})
	}
	r := work(t, 2, allHeld, doNothing, WorkerOptions{}, wrong...)
	wait(t, r.wantsMore, "the worker continues")
	r.stop()
	r.allAre(t, Internal)
	equal(t, len(r.errors()), 3)
	equal(t, r.times("complete", "1-2"), 1)
}

func TestAWorkerRunsOnceWithRightOptions(t *testing.T) {
	client, _ := clientOf(t, newScripted(t).URL, 0)
	ctx, cancel := context.WithCancel(background)
	cancel()
	worker := NewWorker(client, "q", doNothing, WorkerOptions{OnError: func(error) {}})
	must(t, worker.Run(ctx))
	isTrue(t, worker.Run(ctx) != nil, "the second run")
	for _, options := range []WorkerOptions{{Concurrency: -1}, {Prefetch: -1}, {Wait: -1},
		{VisibilityTimeout: -1}} {
		isTrue(t, NewWorker(client, "q", doNothing, options).Run(ctx) != nil, fmt.Sprint(options))
	}
}
