package detent

// Tests the client with a scripted server: which calls are repeated, which error is returned, and
// which bytes are sent. No test waits, because the client uses a clock of the test.

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var keyed = NewTask{Queue: "q", Key: "k"}

func failed(t *testing.T, err error) *Error {
	t.Helper()
	var failed *Error
	isTrue(t, errors.As(err, &failed), fmt.Sprintf("got %v, wanted an *Error", err))
	return failed
}

func TestA503IsRepeatedAfterTheSecondsItNames(t *testing.T) {
	server := newScripted(t, later("7"), busy, done)
	client, clock := clientOf(t, server.URL, 100*time.Second)
	task, err := client.Schedule(background, keyed)
	must(t, err)
	equal(t, task.ID, TaskID("256"))
	equal(t, clock.pauses[0], 7*time.Second)
	isTrue(t, clock.pauses[1] <= 200*time.Millisecond, "the second pause is short")
	requests := server.received()
	equal(t, requests[0].body, requests[2].body)
}

func TestTheAnswerOfAProxyWithoutAServerCountsAs503(t *testing.T) {
	for _, status := range []int{408, 502, 504} {
		proxy := page
		proxy.status = status
		client, clock := clientOf(t, newScripted(t, proxy, done).URL, 100*time.Second)
		_, err := client.Schedule(background, keyed)
		must(t, err)
		equal(t, clock.pauses, []time.Duration{7 * time.Second})
	}
}

func TestARetryAfterOfZeroDoesNotShortenThePauses(t *testing.T) {
	server := newScripted(t, later("0"), later("0"), later("0"), done)
	client, clock := clientOf(t, server.URL, 100*time.Second)
	_, err := client.Move(background, TaskID("256"), In(time.Hour))
	must(t, err)
	isTrue(t, clock.pauses[0] >= 50*time.Millisecond, "the first pause")
	isTrue(t, clock.pauses[2] >= 200*time.Millisecond, "the third pause")
}

func TestALostCallIsRepeatedIfItMayRunTwice(t *testing.T) {
	server := newScripted(t, drop, done)
	client, clock := clientOf(t, server.URL, 100*time.Second)
	_, err := client.Move(background, TaskID("256"), In(time.Hour))
	must(t, err)
	equal(t, []int{len(server.received()), len(clock.pauses)}, []int{2, 1})
}

func TestACallThatMustNotRunTwiceIsSentOnce(t *testing.T) {
	calls := map[string]func(*Client) error{
		"Schedule": func(c *Client) error {
			_, err := c.Schedule(background, NewTask{Queue: "q"})
			return err
		},
		"ScheduleMany": func(c *Client) error {
			_, err := c.ScheduleMany(background, []NewTask{keyed, {Queue: "q"}})
			return err
		},
		"TriggerSchedule": func(c *Client) error { _, err := c.TriggerSchedule(background, "s"); return err },
		"Purge":           func(c *Client) error { _, err := c.Purge(background, "q"); return err },
		"Redrive":         func(c *Client) error { _, err := c.Redrive(background, "q"); return err },
	}
	for name, call := range calls {
		for _, lost := range []answer{busy, drop} {
			server := newScripted(t, lost)
			client, clock := clientOf(t, server.URL, 100*time.Second)
			err := failed(t, call(client))
			equal(t, err.Code, Unavailable)
			isTrue(t, !err.IsRepeated && len(clock.pauses) == 0, name)
			equal(t, len(server.received()), 1)
		}
	}
}

func TestAnyCallIsRepeatedWhileNoServerListens(t *testing.T) {
	server := newScripted(t)
	server.Close()
	client, clock := clientOf(t, server.URL, 20*time.Second)
	_, err := client.Schedule(background, NewTask{Queue: "q"})
	isTrue(t, errors.Is(err, Unavailable) && !failed(t, err).IsRepeated, "it was never sent")
	isTrue(t, len(clock.pauses) > 4 && clock.sum() <= 20*time.Second, "it was repeated for 20 s")
}

func TestNoPauseEndsAfterTheTimeLimit(t *testing.T) {
	client, clock := clientOf(t, newScripted(t, later("101")).URL, 100*time.Second)
	_, err := client.Get(background, TaskID("1"))
	isTrue(t, errors.Is(err, Unavailable) && len(clock.pauses) == 0, "no pause")

	client, clock = clientOf(t, newScripted(t, later("50")).URL, 100*time.Second)
	ctx, cancel := context.WithTimeout(background, 40*time.Second)
	defer cancel()
	_, err = client.Get(ctx, TaskID("1"))
	isTrue(t, errors.Is(err, Unavailable) && len(clock.pauses) == 0, "no pause after the deadline")

	client, clock = clientOf(t, newScripted(t, busy).URL, -1)
	_, err = client.Get(background, TaskID("1"))
	isTrue(t, errors.Is(err, Unavailable) && len(clock.pauses) == 0, "a negative RetryFor: never")
}

func TestTheErrorOfARepeatedCallHasIsRepeated(t *testing.T) {
	client, _ := clientOf(t, newScripted(t, drop, problem(404, "not_found", "")).URL, time.Minute)
	err := client.Cancel(background, TaskID("256"))
	isTrue(t, errors.Is(err, NotFound) && failed(t, err).IsRepeated, "is repeated")
}

func TestAContextEndsACallAndItsPauses(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	server := newScripted(t)
	arrived, isOver := make(chan struct{}), make(chan struct{})
	server.otherwise = func(string, []byte) answer {
		close(arrived)
		<-isOver
		return done
	}
	defer close(isOver)
	go func() { <-arrived; cancel() }()
	client, err := NewClient(server.URL, ClientOptions{})
	must(t, err)
	_, err = client.Get(ctx, TaskID("1"))
	isTrue(t, errors.Is(err, context.Canceled) && errors.Is(err, Unavailable), fmt.Sprint(err))

	client, _ = clientOf(t, newScripted(t, busy).URL, time.Minute)
	ctx, cancel = context.WithCancel(background)
	client.http.wait = func(ctx context.Context, _ time.Duration) bool {
		cancel()
		return sleep(ctx, time.Hour)
	}
	_, err = client.Get(ctx, TaskID("1"))
	isTrue(t, errors.Is(err, context.Canceled), "in a pause")
}

func TestATryWithoutAnAnswerEndsAfterTheTimeout(t *testing.T) {
	server := newScripted(t)
	isOver := make(chan struct{})
	server.otherwise = func(string, []byte) answer { <-isOver; return done }
	defer close(isOver)
	options := ClientOptions{Timeout: time.Millisecond, RetryFor: -1}
	client, err := NewClient(server.URL, options)
	must(t, err)
	_, err = client.Get(background, TaskID("1"))
	isTrue(t, errors.Is(err, Unavailable), fmt.Sprint(err))
}

func TestAConnectionIsKept(t *testing.T) {
	server := newScripted(t, done, done, problem(404, "not_found", ""), done)
	connections := map[string]bool{}
	scripted := server.Config.Handler
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connections[r.RemoteAddr] = true
		scripted.ServeHTTP(w, r)
	})
	client, _ := clientOf(t, server.URL, 0)
	for i := 0; i < 4; i++ {
		_, err := client.Schedule(background, keyed)
		isTrue(t, (err == nil) == (i != 2), fmt.Sprint(err))
	}
	equal(t, len(connections), 1)
}

func TestEachErrorHasItsCodeAndTheProblem(t *testing.T) {
	kinds := []struct {
		status int
		kind   string
		code   Code
	}{
		{400, "invalid_argument", InvalidArgument}, {403, "forbidden", Forbidden},
		{404, "not_found", NotFound}, {409, "conflict", Conflict}, {413, "too_large", TooLarge},
		{429, "resource_exhausted", ResourceExhausted}, {500, "data_loss", DataLoss},
		{500, "internal", Internal},
	}
	for _, one := range kinds {
		server := newScripted(t, problem(one.status, one.kind, `,"field":"queue"`))
		client, _ := clientOf(t, server.URL, 0)
		_, err := client.Get(background, TaskID("1"))
		got := failed(t, err)
		equal(t, []any{got.Code, got.Status, got.Field, got.Detail},
			[]any{one.code, one.status, "queue", "no"})
		equal(t, membersOf(t, got.Problem)["type"], "urn:detent:error:"+one.kind)
		equal(t, err.Error(), "detent: queue: no")
		isTrue(t, errors.Is(err, one.code) && !errors.Is(err, Unavailable), "errors.Is")
	}
}

func TestTheStatusDecidesIfTheAnswerHasNoProblem(t *testing.T) {
	codes := map[int]Code{
		302: Internal, 401: Unauthorized, 405: InvalidArgument, 412: Conflict, 501: Internal}
	for status, code := range codes {
		client, _ := clientOf(t, newScripted(t, answer{status: status, body: "<html>"}).URL, 0)
		_, err := client.Get(background, TaskID("1"))
		isTrue(t, errors.Is(err, code), fmt.Sprint(status))
		equal(t, failed(t, err).Problem == nil, true)
	}
}

func TestAnUnreadableAnswerIsInternal(t *testing.T) {
	for _, body := range []string{"{", "[]", "{}", `{"id":1}`} {
		client, _ := clientOf(t, newScripted(t, answer{status: 200, body: body}).URL, 0)
		_, err := client.Get(background, TaskID("1"))
		isTrue(t, errors.Is(err, Internal), body)
	}
}

func results(each ...string) answer {
	text := ""
	for i, one := range each {
		if i > 0 {
			text += ","
		}
		text += one
	}
	return answer{status: 200, body: `{"results":[` + text + `]}`}
}

func TestAnElementThatFailedIsAnErrorAmongTheResults(t *testing.T) {
	wrong := `{"error":` + problem(400, "invalid_argument", `,"field":"dely"`).body + `}`
	client, _ := clientOf(t, newScripted(t, results(taskText, wrong)).URL, 0)
	made, err := client.ScheduleMany(background, make([]NewTask, 2))
	must(t, err)
	equal(t, made[0], TaskResult{Task: made[0].Task})
	equal(t, made[0].Task.ID, TaskID("256"))
	isTrue(t, errors.Is(made[1].Err, InvalidArgument), "the code")
	equal(t, failed(t, made[1].Err).Field, "dely")
}

// ---- a shard of a cluster is away ----
//
// Then a call for many elements is still answered with 200. Only the elements of that shard have a
// 503.

const (
	away = `{"status":"unavailable","error":` + busyText + `}`
	held = `{"status":"done"}`
	gone = `{"status":"conflict"}`
)

var verbs = map[string]func(*Client, []string) ([]LeaseStatus, error){
	"complete": func(c *Client, leases []string) ([]LeaseStatus, error) {
		return c.Complete(background, leases)
	},
	"fail": func(c *Client, leases []string) ([]LeaseStatus, error) {
		return c.Fail(background, leases, FailOptions{Error: "e"})
	},
	"extend": func(c *Client, leases []string) ([]LeaseStatus, error) {
		return c.Extend(background, leases, time.Minute)
	},
	"release": func(c *Client, leases []string) ([]LeaseStatus, error) {
		return c.Release(background, leases, ReleaseOptions{})
	},
}

func TestLeasesAreRepeatedUntilTheirResultIsKnown(t *testing.T) {
	for name, verb := range verbs {
		server := newScripted(t, results(held, away, away), results(away, gone), busy, results(held))
		client, clock := clientOf(t, server.URL, 100*time.Second)
		statuses, err := verb(client, []string{"1-1", "1-2", "1-3"})
		must(t, err)
		equal(t, statuses, []LeaseStatus{LeaseDone, LeaseDone, LeaseConflict})
		var asked []any
		for _, request := range server.received() {
			equal(t, request.path, "/v1/leases/"+name)
			body := membersOf(t, request.body)
			asked = append(asked, body["leases"])
			delete(body, "leases")
			first := membersOf(t, server.received()[0].body)
			delete(first, "leases")
			equal(t, body, first)
		}
		equal(t, asked, []any{[]any{"1-1", "1-2", "1-3"}, []any{"1-2", "1-3"}, []any{"1-2"},
			[]any{"1-2"}})
		equal(t, len(clock.pauses), 3)
	}
}

func TestALeaseOfAnAbsentShardIsUnavailableAndNotAConflict(t *testing.T) {
	for _, verb := range verbs {
		server := newScripted(t, results(held, away))
		server.otherwise = func(string, []byte) answer { return results(away) }
		client, clock := clientOf(t, server.URL, 20*time.Second)
		statuses, err := verb(client, []string{"1-1", "1-2"})
		must(t, err)
		equal(t, statuses, []LeaseStatus{LeaseDone, LeaseUnavailable})
		isTrue(t, len(clock.pauses) > 4 && clock.sum() <= 20*time.Second, "for 20 s")
	}
}

func TestKnownResultsAreReturnedIfARepeatFails(t *testing.T) {
	broken := `{"status":"error","error":` + problem(500, "data_loss", "").body + `}`
	for _, failure := range []answer{problem(403, "forbidden", ""), problem(500, "internal", "")} {
		client, _ := clientOf(t, newScripted(t, results(held, away, broken), failure).URL, time.Minute)
		statuses, err := client.Complete(background, []string{"1-1", "1-2", "1-3"})
		must(t, err)
		equal(t, statuses, []LeaseStatus{LeaseDone, LeaseUnavailable, LeaseError})
	}
}

func TestResultsForOtherLeasesAreAnError(t *testing.T) {
	client, _ := clientOf(t, newScripted(t, results()).URL, 0)
	_, err := client.Complete(background, []string{"1-1"})
	isTrue(t, errors.Is(err, Internal), fmt.Sprint(err))
}

func TestTasksAreRepeatedIfTheCallMayRunTwice(t *testing.T) {
	absent := `{"error":` + busyText + `}`
	tasks := []NewTask{{Queue: "q", Key: "a"}, {Queue: "q", Key: "b"}}
	names := []TaskName{TaskID("1"), TaskID("2")}
	calls := []func(*Client) ([]error, error){
		func(c *Client) ([]error, error) { return errorsOf(c.ScheduleMany(background, tasks)) },
		func(c *Client) ([]error, error) {
			return errorsOf(c.MoveMany(background, names, In(time.Second)))
		},
		func(c *Client) ([]error, error) { return c.CancelMany(background, names) },
	}
	for _, call := range calls {
		server := newScripted(t, results(absent, taskText), results(taskText))
		client, _ := clientOf(t, server.URL, time.Minute)
		errs, err := call(client)
		must(t, err)
		equal(t, errs, []error{nil, nil})
		equal(t, len(server.received()), 2)
	}
	missing := `{"error":` + problem(404, "not_found", "").body + `}`
	client, _ := clientOf(t, newScripted(t, results(taskText, absent), results(missing)).URL, time.Minute)
	errs, err := client.CancelMany(background, names)
	must(t, err)
	isTrue(t, errors.Is(errs[1], NotFound) && failed(t, errs[1]).IsRepeated, "is repeated")

	client, _ = clientOf(t, newScripted(t, results(absent, taskText)).URL, time.Minute)
	made, err := client.ScheduleMany(background, []NewTask{{Queue: "q"}, keyed})
	must(t, err)
	isTrue(t, errors.Is(made[0].Err, Unavailable), "without a key there is no repeat")
}

func errorsOf(results []TaskResult, err error) ([]error, error) {
	all := make([]error, len(results))
	for i, one := range results {
		all[i] = one.Err
	}
	return all, err
}

// ---- the bytes ----

func TestATaskIsSentWithAllItsFields(t *testing.T) {
	server := newScripted(t, done)
	client, err := NewClient(server.URL, ClientOptions{Token: "t0"})
	must(t, err)
	due := time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.UTC)
	_, err = client.Schedule(background, NewTask{
		Queue: "q", Bytes: []byte("\x00\xff"), Due: At(due), Key: "k", Priority: Ptr(0),
		MaxAttempts: 2, VisibilityTimeout: 1_000_500 * time.Microsecond,
		Backoff: &Backoff{Initial: time.Second, Max: time.Minute}, Webhook: "http://a/",
		Headers: map[string]string{"X-A": "b"}})
	must(t, err)
	request := server.received()[0]
	equal(t, []string{request.method, request.path}, []string{"POST", "/v1/tasks"})
	equal(t, request.header.Get("Authorization"), "Bearer t0")
	equal(t, request.header.Get("Content-Type"), "application/json")
	equal(t, membersOf(t, request.body), map[string]any{
		"queue": "q", "payload_base64": "AP8=", "due_at": 1767323045679.0, "key": "k",
		"priority": 0.0, "max_attempts": 2.0, "visibility_timeout_ms": 1001.0,
		"backoff": map[string]any{"initial_ms": 1000.0, "max_ms": 60000.0},
		"webhook": "http://a/", "headers": map[string]any{"X-A": "b"}})
}

func TestAPayloadIsSentByteForByte(t *testing.T) {
	server := newScripted(t, done, done)
	client, _ := clientOf(t, server.URL, 0)
	payload := json.RawMessage("{\"a\" : [1.0, \"<\u2028>\"] }")
	_, err := client.Schedule(background, NewTask{Queue: "q", Payload: payload})
	must(t, err)
	_, err = client.Schedule(background, NewTask{Queue: "q", Bytes: []byte{}})
	must(t, err)
	var task struct {
		Payload json.RawMessage
		Bytes   []byte `json:"payload_base64"`
	}
	must(t, json.Unmarshal(server.received()[0].body, &task))
	equal(t, string(task.Payload), string(payload))
	must(t, json.Unmarshal(server.received()[1].body, &task))
	equal(t, task.Bytes, []byte{})
}

func TestAWrongArgumentIsNotSent(t *testing.T) {
	server := newScripted(t)
	client, _ := clientOf(t, server.URL, 0)
	calls := map[string]error{}
	_, calls["payload"] = client.Schedule(background, NewTask{Queue: "q", Payload: []byte("{")})
	_, calls["queue"] = client.Schedule(background, NewTask{Queue: "\xff"})
	_, calls["headers"] = client.ScheduleMany(background,
		[]NewTask{keyed, {Queue: "q", Headers: map[string]string{"a": "\xff"}}})
	_, calls["keys"] = client.CancelMany(background, []TaskName{TaskKey{"q", "\xff"}})
	_, calls[""] = client.CancelMany(background, []TaskName{TaskKey{"q", "k"}, TaskID("1")})
	for field, err := range calls {
		isTrue(t, errors.Is(err, InvalidArgument), fmt.Sprint(field, err))
		equal(t, failed(t, err).Field, field)
	}
	_, err := client.MoveMany(background, []TaskName{TaskKey{"q", "k"}, TaskKey{"r", "k"}}, In(0))
	isTrue(t, errors.Is(err, InvalidArgument), "keys of two queues")
	equal(t, len(server.received()), 0)
}

func TestDurationsAndInstantsAreRoundedUp(t *testing.T) {
	equal(t, toMilliseconds(100*time.Millisecond), int64(100))
	equal(t, toMilliseconds(100*time.Millisecond+1), int64(101))
	equal(t, toMilliseconds(30*24*time.Hour), int64(2_592_000_000))
	equal(t, toMilliseconds(-1), int64(0))
	equal(t, instantOf(time.UnixMilli(5).Add(1)), int64(6))
}

func TestNamesAreEncodedInPaths(t *testing.T) {
	server := newScripted(t, done, done, answer{status: 200, body: `{"tasks":[],"cursor":null}`})
	client, _ := clientOf(t, server.URL, 0)
	_, err := client.Move(background, TaskKey{"a/b;c+", "ä ?#%/.."}, In(time.Second))
	must(t, err)
	_, err = client.RunNow(background, "256")
	must(t, err)
	_, err = client.List(background, ListOptions{Queue: "a+b", Key: "ä &", Limit: 5})
	must(t, err)
	var paths []string
	for _, request := range server.received() {
		paths = append(paths, request.path)
	}
	equal(t, paths, []string{"/v1/queues/a%2Fb%3Bc%2B/keys/%C3%A4%20%3F%23%25%2F..",
		"/v1/tasks/256/run", "/v1/tasks?key=%C3%A4%20%26&limit=5&queue=a%2Bb"})
}

func TestASettingIsSetResetOrLeft(t *testing.T) {
	queue := answer{status: 200, body: `{"queue":"q","settings":{"webhook":{"url":"http://a/"},
		"sink":null,"max_tasks":0,"visibility_timeout_ms":1500,"backoff":null}}`}
	server := newScripted(t, queue)
	client, _ := clientOf(t, server.URL, 0)
	got, err := client.ChangeQueue(background, "q", QueueChange{
		Paused: Set(true), MaxTasks: Set[int64](0), MaxBytes: Reset[int64](),
		Retention: Set(1500 * time.Millisecond), Backoff: Set(Backoff{Max: time.Second}),
		Webhook: Set(QueueWebhook{URL: "http://a/"}), Sink: Reset[string]()})
	must(t, err)
	equal(t, membersOf(t, server.received()[0].body), map[string]any{
		"paused": true, "max_tasks": 0.0, "max_bytes": nil, "retention_ms": 1500.0,
		"backoff": map[string]any{"initial_ms": 0.0, "max_ms": 1000.0},
		"webhook": map[string]any{"url": "http://a/"}, "sink": nil})
	equal(t, got.Settings, QueueSettings{Webhook: "http://a/", MaxTasks: Ptr[int64](0),
		VisibilityTimeout: Ptr(1500 * time.Millisecond)})
}

func TestWrongOptionsAreRefused(t *testing.T) {
	for _, url := range []string{"127.0.0.1:7070", "http://", "http://a/b", "http://u@a", "ftp://a"} {
		_, err := NewClient(url, ClientOptions{})
		isTrue(t, errors.Is(err, InvalidArgument), url)
	}
	for _, timeout := range []time.Duration{-1, 24*time.Hour + 1} {
		_, err := NewClient("", ClientOptions{Timeout: timeout})
		isTrue(t, errors.Is(err, InvalidArgument), timeout.String())
	}
	_, err := NewClient("", ClientOptions{Timeout: 24 * time.Hour})
	must(t, err)
	_, err = NewClient("", ClientOptions{CAFile: filepath.Join(t.TempDir(), "none")})
	isTrue(t, errors.Is(err, os.ErrNotExist), "the file of certificates is missing")
}

func TestHTTPSNeedsACertificateOfTheCAFile(t *testing.T) {
	server := httptest.NewTLSServer(&scriptedServer{script: []answer{done}})
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	must(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	client, err := NewClient(server.URL, ClientOptions{CAFile: file})
	must(t, err)
	defer client.CloseIdle()
	_, err = client.Schedule(background, keyed)
	must(t, err)

	server.Config.ErrorLog = quiet
	stranger, err := NewClient(server.URL, ClientOptions{RetryFor: -1})
	must(t, err)
	_, err = stranger.Schedule(background, keyed)
	isTrue(t, errors.Is(err, Unavailable), "the certificate is not trusted")
	must(t, os.WriteFile(file, []byte("no"), 0o600))
	_, err = NewClient(server.URL, ClientOptions{CAFile: file})
	isTrue(t, errors.Is(err, InvalidArgument), "not a certificate")
}
