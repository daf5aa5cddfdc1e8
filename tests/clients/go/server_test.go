package tests

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"detent"
)

var ctx = context.Background()

func withServer(t *testing.T, flags ...string) (*realServer, *detent.Client) {
	t.Helper()
	server := newServer(t, flags...)
	client, err := detent.NewClient(server.url(), detent.ClientOptions{RetryFor: time.Minute})
	must(t, err)
	t.Cleanup(client.CloseIdle)
	return server, client
}

// of returns the value of a call that must succeed.
func of[T any](t *testing.T, value T, err error) T {
	t.Helper()
	must(t, err)
	return value
}

func isCode(t *testing.T, err error, code detent.Code) *detent.Error {
	t.Helper()
	var failed *detent.Error
	if !errors.As(err, &failed) || failed.Code != code {
		t.Fatalf("got %v, wanted %s", err, code)
	}
	return failed
}

func scheduleOne(t *testing.T, client *detent.Client, task detent.NewTask) detent.ScheduledTask {
	t.Helper()
	made, err := client.Schedule(ctx, task)
	return of(t, made, err)
}

func leaseOne(t *testing.T, client *detent.Client, options detent.LeaseOptions) detent.LeasedTask {
	t.Helper()
	tasks, err := client.Lease(ctx, "q", options)
	must(t, err)
	equal(t, len(tasks), 1)
	return tasks[0]
}

func statuses(t *testing.T, got []detent.LeaseStatus, err error) func(...detent.LeaseStatus) {
	t.Helper()
	must(t, err)
	return func(wanted ...detent.LeaseStatus) { t.Helper(); equal(t, got, wanted) }
}

func TestATaskIsFoundAndMovedByIDAndKey(t *testing.T) {
	_, client := withServer(t)
	wanted := detent.NewTask{Queue: "q", Payload: json.RawMessage(`{"n": 1.0}`),
		Due: detent.In(30 * 24 * time.Hour), Key: "k-1", Priority: detent.Ptr(7)}
	task := scheduleOne(t, client, wanted)
	equal(t, []any{task.Queue, task.State, task.WasThere}, []any{"q", detent.StateScheduled, false})
	equal(t, scheduleOne(t, client, wanted).WasThere, true)
	other := wanted
	other.Priority = detent.Ptr(8)
	_, err := client.Schedule(ctx, other)
	refused := isCode(t, err, detent.Conflict)
	equal(t, []any{refused.Status, refused.IsRepeated}, []any{409, false})
	equal(t, strings.Contains(string(refused.Problem), "urn:detent:error:conflict"), true)
	key := detent.TaskKey{Queue: "q", Key: "k-1"}
	found, err := client.Get(ctx, key)
	must(t, err)
	equal(t, []any{found.ID, string(found.Payload), found.Priority, found.DueAt},
		[]any{task.ID, `{"n": 1.0}`, 7, task.DueAt}) // byte for byte
	byID, err := client.Get(ctx, task.ID)
	equal(t, string(of(t, byID, err).Body), string(found.Body))
	later := task.DueAt.Add(time.Millisecond)
	moved, err := client.Move(ctx, task.ID, detent.At(later))
	equal(t, of(t, moved, err).DueAt, later)
	page, err := client.List(ctx, detent.ListOptions{Queue: "q", State: detent.StateScheduled,
		Key: "k-1", DueAfter: later, DueBefore: later.Add(time.Millisecond), Limit: 5})
	must(t, err)
	equal(t, []any{len(page.Tasks), page.Tasks[0].ID, page.Cursor}, []any{1, task.ID, ""})
	now, err := client.RunNow(ctx, task.ID)
	equal(t, of(t, now, err).State, detent.StateReady)
	must(t, client.Cancel(ctx, key))
	_, err = client.Get(ctx, task.ID)
	isCode(t, err, detent.NotFound)
}

func TestALeaseIsExtendedReleasedFailedAndCompleted(t *testing.T) {
	_, client := withServer(t)
	task := scheduleOne(t, client, detent.NewTask{Queue: "q", Key: "k",
		Webhook: "", Headers: map[string]string{"X-A": "b"}})
	leased := leaseOne(t, client,
		detent.LeaseOptions{Max: 5, VisibilityTimeout: time.Minute, Worker: "w"})
	equal(t, []any{leased.ID, leased.Attempt, leased.Key, leased.Headers["X-A"]},
		[]any{task.ID, 1, "k", "b"})
	equal(t, leased.LeaseUntil.After(leased.DueAt), true)
	isCode(t, client.Cancel(ctx, task.ID), detent.Conflict)
	leases := func() []string { return []string{leased.Lease} }
	got, err := client.Extend(ctx, leases(), 2*time.Minute)
	statuses(t, got, err)(detent.LeaseDone)
	got, err = client.Release(ctx, leases(), detent.ReleaseOptions{Priority: detent.Ptr(1)})
	statuses(t, got, err)(detent.LeaseDone)
	leased = leaseOne(t, client, detent.LeaseOptions{})
	equal(t, leased.Priority, 1)
	got, err = client.Fail(ctx, leases(),
		detent.FailOptions{Error: "no\nroute", Delay: detent.Ptr(time.Duration(0))})
	statuses(t, got, err)(detent.LeaseDone)
	leased = leaseOne(t, client, detent.LeaseOptions{Wait: 5 * time.Second})
	found, err := client.Get(ctx, task.ID)
	equal(t, []any{leased.Attempt, of(t, found, err).LastError}, []any{2, "no\nroute"})
	got, err = client.Complete(ctx, append(leases(), "1-1"))
	statuses(t, got, err)(detent.LeaseDone, detent.LeaseConflict)
	_, err = client.Get(ctx, task.ID)
	isCode(t, err, detent.NotFound)
	scheduleOne(t, client, detent.NewTask{Queue: "q", MaxAttempts: 1})
	leased = leaseOne(t, client, detent.LeaseOptions{})
	got, err = client.Fail(ctx, leases(), detent.FailOptions{})
	statuses(t, got, err)(detent.LeaseDead)
}

func TestManyAreCancelledAndMovedByIDsOrKeys(t *testing.T) {
	_, client := withServer(t)
	var ids []detent.TaskName
	for _, key := range []string{"0", "1", "2"} {
		task := scheduleOne(t, client, detent.NewTask{Queue: "q", Due: detent.In(time.Minute), Key: key})
		ids = append(ids, task.ID)
	}
	moved, err := client.MoveMany(ctx, []detent.TaskName{ids[0], detent.TaskID("1")},
		detent.In(time.Hour))
	must(t, err)
	equal(t, []any{moved[0].Task.ID, moved[0].Err}, []any{ids[0], nil})
	isCode(t, moved[1].Err, detent.NotFound)
	cancelled, err := client.CancelMany(ctx, []detent.TaskName{detent.TaskKey{Queue: "q", Key: "0"},
		detent.TaskKey{Queue: "q", Key: "2"}, detent.TaskKey{Queue: "q", Key: "none"}})
	must(t, err)
	equal(t, cancelled[:2], []error{nil, nil})
	isCode(t, cancelled[2], detent.NotFound)
	must(t, client.Cancel(ctx, ids[1]))
	page, err := client.List(ctx, detent.ListOptions{})
	equal(t, len(of(t, page, err).Tasks), 0)
}

func TestTenThousandTasksAreScheduledAndReadBackByPages(t *testing.T) {
	_, client := withServer(t)
	tasks := make([]detent.NewTask, 10_000)
	for n := range tasks {
		tasks[n] = detent.NewTask{Queue: "q", Payload: json.RawMessage(fmt.Sprint(n)),
			Due: detent.In(time.Hour), Key: fmt.Sprint(n)}
	}
	first, err := client.ScheduleMany(ctx, tasks)
	must(t, err)
	again, err := client.ScheduleMany(ctx, tasks) // like a repeat after a lost answer
	must(t, err)
	for i := range tasks {
		if first[i].Err != nil || again[i].Task.ID != first[i].Task.ID || !again[i].Task.WasThere {
			t.Fatal(i, first[i], again[i])
		}
	}
	_, err = client.ScheduleMany(ctx, append(tasks, detent.NewTask{Queue: "q"}))
	isCode(t, err, detent.TooLarge)
	seen := map[string]bool{}
	options := detent.ListOptions{Queue: "q", Limit: 1000}
	for {
		page, err := client.List(ctx, options)
		must(t, err)
		for _, task := range page.Tasks {
			seen[string(task.Payload)] = true
		}
		if options.Cursor = page.Cursor; page.Cursor == "" {
			break
		}
	}
	equal(t, len(seen), 10_000)
}

func TestAWrongTaskAmongManyFailsAlone(t *testing.T) {
	_, client := withServer(t)
	results, err := client.ScheduleMany(ctx, []detent.NewTask{{Queue: "q"}, {Queue: "a b"}})
	must(t, err)
	must(t, results[0].Err)
	equal(t, isCode(t, results[1].Err, detent.InvalidArgument).Field, "queue")
}

func TestOddNamesAndPayloadsComeBackUnchanged(t *testing.T) {
	_, client := withServer(t)
	key := "é?#%\"🕰"
	for _, name := range []string{"a", "A-+/;:.$_()z9", strings.Repeat("q", 200), "/", ".", "..", "a//b",
		"$(x)"} {
		scheduleOne(t, client, detent.NewTask{Queue: name, Key: key})
		queue, err := client.Queue(ctx, name)
		equal(t, []any{of(t, queue, err).Name, queue.Ready}, []any{name, int64(1)})
		_, err = client.Get(ctx, detent.TaskKey{Queue: name, Key: key})
		must(t, err)
		leased, err := client.Lease(ctx, name, detent.LeaseOptions{})
		equal(t, of(t, leased, err)[0].Queue, name)
	}
	for _, payload := range []string{"null", "true", "9007199254740993", `[1.0, "\ud83d\ude00 é<>&"]`,
		`{"": [{"a": null}]}`, `"` + strings.Repeat("x", 60_000) + `"`} {
		scheduleOne(t, client, detent.NewTask{Queue: "q", Payload: json.RawMessage(payload)})
		leased := leaseOne(t, client, detent.LeaseOptions{})
		equal(t, string(leased.Payload), payload)
		equal(t, leased.Bytes == nil, true)
	}
	for _, payload := range []string{"", "\x00\xff\r\n", strings.Repeat("x", 60_000)} {
		scheduleOne(t, client, detent.NewTask{Queue: "q", Bytes: []byte(payload)})
		leased := leaseOne(t, client, detent.LeaseOptions{})
		equal(t, string(leased.Bytes), payload)
		equal(t, leased.Bytes != nil && leased.Payload == nil, true)
	}
	for _, wrong := range []string{"", "-a", "a b", "é", strings.Repeat("q", 201)} {
		_, err := client.Schedule(ctx, detent.NewTask{Queue: wrong})
		equal(t, isCode(t, err, detent.InvalidArgument).Field, "queue")
	}
}

func TestQueuesAreChangedAndEmptied(t *testing.T) {
	_, client := withServer(t)
	queue, err := client.ChangeQueue(ctx, "q", detent.QueueChange{
		MaxTasks: detent.Set[int64](1), Retention: detent.Set(24 * time.Hour),
		Backoff: detent.Set(detent.Backoff{Initial: time.Second, Max: time.Minute})})
	settings := of(t, queue, err).Settings
	equal(t, []any{*settings.MaxTasks, settings.Retention, *settings.Backoff},
		[]any{int64(1), 24 * time.Hour, detent.Backoff{Initial: time.Second, Max: time.Minute}})
	scheduleOne(t, client, detent.NewTask{Queue: "q", Due: detent.In(time.Minute)})
	_, err = client.Schedule(ctx, detent.NewTask{Queue: "q"})
	isCode(t, err, detent.ResourceExhausted)
	queue, err = client.ChangeQueue(ctx, "q", detent.QueueChange{MaxTasks: detent.Reset[int64](),
		VisibilityTimeout: detent.Set(1500 * time.Millisecond)})
	settings = of(t, queue, err).Settings
	equal(t, []any{settings.MaxTasks == nil, *settings.VisibilityTimeout, settings.Retention},
		[]any{true, 1500 * time.Millisecond, 24 * time.Hour})
	queue, err = client.Pause(ctx, "q")
	equal(t, of(t, queue, err).Settings.Paused, true)
	queue, err = client.Resume(ctx, "q")
	equal(t, of(t, queue, err).Settings.Paused, false)
	queues, err := client.Queues(ctx)
	equal(t, len(of(t, queues, err)), 1)
	equal(t, []any{queues[0].Name, queues[0].Scheduled}, []any{"q", int64(1)})
	isCode(t, client.RemoveQueue(ctx, "q"), detent.Conflict)
	count, err := client.Redrive(ctx, "q")
	equal(t, of(t, count, err), 0)
	count, err = client.Purge(ctx, "q")
	equal(t, of(t, count, err), 1)
	stats, err := client.Stats(ctx)
	equal(t, strings.Contains(string(of(t, stats, err)), `"queue_count":1`), true)
	must(t, client.RemoveQueue(ctx, "q"))
	_, err = client.Queue(ctx, "q")
	isCode(t, err, detent.NotFound)
}

func TestSchedulesAreMadeTriggeredAndRemoved(t *testing.T) {
	_, client := withServer(t)
	wanted := detent.NewSchedule{Queue: "q", Payload: json.RawMessage("[1]"), Cron: "0 9 LW * *",
		TimeZone: "Asia/Shanghai", Jitter: time.Minute, MisfireGrace: detent.Ptr(time.Second),
		Overlap: "skip", Start: time.Now()}
	schedule, err := client.PutSchedule(ctx, "s/1", wanted)
	equal(t, []any{of(t, schedule, err).Name, schedule.State}, []any{"s/1", "active"})
	next, err := client.NextOccurrences(ctx, "s/1", 3)
	equal(t, of(t, next, err)[0], schedule.NextAt)
	found, err := client.GetSchedule(ctx, "s/1")
	equal(t, string(of(t, found, err).Body), string(schedule.Body))
	all, err := client.Schedules(ctx)
	equal(t, len(of(t, all, err)), 1)
	found, err = client.PauseSchedule(ctx, "s/1")
	equal(t, of(t, found, err).State, "paused")
	found, err = client.ResumeSchedule(ctx, "s/1")
	equal(t, of(t, found, err).State, "active")
	made, err := client.TriggerSchedule(ctx, "s/1")
	must(t, err)
	task, err := client.Get(ctx, made.ID)
	equal(t, string(of(t, task, err).Payload), "[1]")
	must(t, client.RemoveSchedule(ctx, "s/1"))
	_, err = client.GetSchedule(ctx, "s/1")
	isCode(t, err, detent.NotFound)
	for name, rule := range map[string]detent.NewSchedule{
		"every":    {Queue: "q", Every: time.Hour, Anchor: time.Now()},
		"calendar": {Queue: "q", Calendar: &detent.Calendar{Every: 1, Unit: "month"}},
	} {
		schedule, err = client.PutSchedule(ctx, name, rule)
		equal(t, of(t, schedule, err).NextAt.IsZero(), false)
	}
}

func TestSchedulingContinuesAfterAKill(t *testing.T) {
	server, client := withServer(t)
	made := int64(0)
	for kill := 0; kill < 3; kill++ {
		for n := 0; n < 50; n++ {
			scheduleOne(t, client, detent.NewTask{Queue: "q", Due: detent.In(time.Hour),
				Key: fmt.Sprint(made)})
			made++
		}
		server.kill()
		server.start()
	}
	queue, err := client.Queue(ctx, "q")
	equal(t, of(t, queue, err).Scheduled, made)
	server.kill()
	impatient, err := detent.NewClient(server.url(), detent.ClientOptions{RetryFor: time.Second})
	must(t, err)
	_, err = impatient.Schedule(ctx, detent.NewTask{Queue: "q"})
	refused := isCode(t, err, detent.Unavailable)
	equal(t, []any{refused.IsRepeated, refused.Status}, []any{false, 0}) // no server saw a request
}

// newCertificate writes a certificate for 127.0.0.1 that signs itself, and its key.
func newCertificate(t *testing.T, folder string) (certificate, key string) {
	t.Helper()
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	public, err := x509.CreateCertificate(rand.Reader, &template, &template, &pair.PublicKey, pair)
	must(t, err)
	private, err := x509.MarshalECPrivateKey(pair)
	must(t, err)
	certificate, key = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	for name, block := range map[string]pem.Block{
		certificate: {Type: "CERTIFICATE", Bytes: public},
		key:         {Type: "EC PRIVATE KEY", Bytes: private},
	} {
		block := block
		must(t, os.WriteFile(name, pem.EncodeToMemory(&block), 0o600))
	}
	return certificate, key
}

func TestATokenAndACertificateAreChecked(t *testing.T) {
	folder := t.TempDir()
	certificate, key := newCertificate(t, folder)
	made, err := exec.Command(os.Getenv("DETENT_BINARY"), "token", "new", "--name", "shop",
		"--scope", "produce").Output()
	must(t, err)
	tokens := filepath.Join(folder, "tokens.toml")
	must(t, os.WriteFile(tokens, made, 0o600))
	server := newServer(t, "--auth", tokens, "--tls-cert", certificate, "--tls-key", key)
	token := regexp.MustCompile(`dt_[\w-]+`).FindString(string(made))
	options := detent.ClientOptions{Token: token, CAFile: certificate}
	client, err := detent.NewClient(server.url(), options)
	must(t, err)
	scheduleOne(t, client, detent.NewTask{Queue: "q"})
	_, err = client.Lease(ctx, "q", detent.LeaseOptions{})
	isCode(t, err, detent.Forbidden)
	options.Token = ""
	client, err = detent.NewClient(server.url(), options)
	must(t, err)
	_, err = client.Queue(ctx, "q")
	equal(t, isCode(t, err, detent.Unauthorized).Status, 401)
	client, err = detent.NewClient(server.url(), detent.ClientOptions{Token: token, RetryFor: -1})
	must(t, err)
	_, err = client.Queue(ctx, "q")
	isCode(t, err, detent.Unavailable) // the certificate is not one of the system's
}

func TestAWebhookOfTheServerIsGenuine(t *testing.T) {
	type delivery struct {
		header http.Header
		body   []byte
	}
	arrived := make(chan delivery, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			arrived <- delivery{r.Header, body}
		}
	}))
	defer receiver.Close()
	server, client := withServer(t, "--webhook-allow", "127.0.0.0/8")
	task := scheduleOne(t, client, detent.NewTask{Queue: "q", Payload: json.RawMessage(`{"é":"🕰"}`),
		Webhook: receiver.URL})
	var one delivery
	select {
	case one = <-arrived:
	case <-time.After(patience):
		t.Fatal("no webhook arrived")
	}
	text, err := os.ReadFile(filepath.Join(server.data, "webhook.key"))
	must(t, err)
	keys := []string{strings.TrimSpace(string(text))}
	id, err := detent.VerifyWebhook(keys, one.header, one.body, detent.VerifyOptions{})
	equal(t, of(t, id, err), "task_"+string(task.ID))
	_, err = detent.VerifyWebhook(keys, one.header, append(one.body, ' '), detent.VerifyOptions{})
	equal(t, errors.Is(err, detent.ErrInvalidSignature), true)
}
