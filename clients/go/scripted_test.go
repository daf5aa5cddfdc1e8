package detent

// A server that sends the answers of a script, one for each request, and records the requests. After
// the last answer of the script, `otherwise` gives the answers.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"reflect"
	"sync"
	"testing"
	"time"
)

type answer struct {
	status  int
	headers map[string]string
	body    string
	isDrop  bool // the connection is closed without an answer
}

type received struct {
	method, path string
	header       http.Header
	body         []byte
}

type scriptedServer struct {
	*httptest.Server
	mu        sync.Mutex
	script    []answer
	otherwise func(path string, body []byte) answer
	requests  []received
}

func newScripted(t *testing.T, script ...answer) *scriptedServer {
	t.Helper()
	server := &scriptedServer{script: script}
	server.Server = httptest.NewServer(server)
	t.Cleanup(server.Close)
	return server
}

func (s *scriptedServer) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the client has gone
	}
	s.mu.Lock()
	s.requests = append(s.requests,
		received{request.Method, request.RequestURI, request.Header, body})
	var next answer
	if len(s.script) > 0 {
		next, s.script = s.script[0], s.script[1:]
		s.mu.Unlock()
	} else {
		s.mu.Unlock()
		next = s.otherwise(request.URL.Path, body)
	}
	if next.isDrop {
		panic(http.ErrAbortHandler)
	}
	for name, value := range next.headers {
		writer.Header().Set(name, value)
	}
	writer.WriteHeader(next.status)
	fmt.Fprint(writer, next.body)
}

func (s *scriptedServer) received() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]received(nil), s.requests...)
}

const taskText = `{"id":"256","queue":"q","state":"scheduled","due_at":"2026-01-02T03:04:05.678Z"}`
const busyText = `{"type":"urn:detent:error:unavailable","status":503,"detail":"busy"}`

var (
	done = answer{status: 200, body: taskText}
	busy = answer{status: 503, body: busyText}
	drop = answer{isDrop: true}
	page = answer{status: 502, headers: map[string]string{"Retry-After": "7"}, body: "<html>"}
)

func problem(status int, kind, more string) answer {
	body := `{"type":"urn:detent:error:%s","status":%d,"detail":"no"%s}`
	return answer{status: status, body: fmt.Sprintf(body, kind, status, more)}
}

func later(seconds string) answer {
	return answer{status: 503, headers: map[string]string{"Retry-After": seconds}, body: "{}"}
}

// testClock is the clock of a client. It advances by the pauses, without real waits.
type testClock struct {
	now    time.Time
	pauses []time.Duration
}

func (c *testClock) sum() time.Duration {
	var sum time.Duration
	for _, pause := range c.pauses {
		sum += pause
	}
	return sum
}

func clientOf(t *testing.T, url string, retryFor time.Duration) (*Client, *testClock) {
	t.Helper()
	client, err := NewClient(url, ClientOptions{RetryFor: retryFor})
	must(t, err)
	t.Cleanup(client.CloseIdle)
	clock := &testClock{now: time.Now()}
	client.http.now = func() time.Time { return clock.now.Add(clock.sum()) }
	client.http.wait = func(ctx context.Context, pause time.Duration) bool {
		clock.pauses = append(clock.pauses, pause)
		return ctx.Err() == nil
	}
	return client, clock
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t *testing.T, got, wanted any) {
	t.Helper()
	if !reflect.DeepEqual(got, wanted) {
		t.Fatalf("got %#v, wanted %#v", got, wanted)
	}
}

func isTrue(t *testing.T, condition bool, why string) {
	t.Helper()
	if !condition {
		t.Fatal(why)
	}
}

func membersOf(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var members map[string]any
	must(t, json.Unmarshal(text, &members))
	return members
}

var quiet = log.New(io.Discard, "", 0)

var background = context.Background()
