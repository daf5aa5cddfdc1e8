package detent

// Calls over kept-alive connections, and the rules for repeating a call without an answer.
//
// A client of a task server must know whether the server may have carried a request out. So each
// call says whether a second run has the same effect (repeat). If no connection could be made, the
// server has not seen the request, and any call is repeated. After another failure (connection
// lost, time-out, 408, 502, 503, 504) a call is repeated only if a second run has the same effect.
// The first pause is 100 ms. Each further pause is twice as long, up to 5 s, less a random part. If
// Retry-After is longer, it is the pause. A call for many elements is repeated for the elements that
// a cluster could not reach.

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strconv"
	"time"
)

const (
	firstPause     = 100 * time.Millisecond
	lastPause      = 5 * time.Second
	longestTimeout = 24 * time.Hour
	// Less than the server's limit for silent connections (75 s), so that the server does not close
	// a connection at the moment when a call takes it.
	idleTimeout = 60 * time.Second
	// The pool keeps one connection for each call that runs at the same time.
	maxIdleConnections = 10_000
)

type repeat bool

const (
	never  repeat = false // a second run has another effect
	always repeat = true
)

// A call is one request. The zero values of its options are those of most calls.
type call struct {
	method, path string
	body         []byte // nil: none
	repeat       repeat
	patience     time.Duration  // more time for the server's answer
	retryFor     *time.Duration // nil: that of the client
}

// tries has the pauses between the tries of a call, while there is time for another try.
type tries struct {
	transport *transport
	giveUp    time.Time
	pauses    int
}

func (t *transport) tries(ctx context.Context, retryFor *time.Duration) *tries {
	limit := t.retryFor
	if retryFor != nil {
		limit = *retryFor
	}
	giveUp := t.now().Add(limit)
	if deadline, isSet := ctx.Deadline(); isSet && deadline.Before(giveUp) {
		giveUp = deadline
	}
	return &tries{transport: t, giveUp: giveUp}
}

func (t *tries) left() time.Duration {
	if left := t.giveUp.Sub(t.transport.now()); left > 0 {
		return left
	}
	return 0
}

// rest waits for the next try, for at least the time that the server told. It returns false
// immediately if no try is left, and false as soon as the context ends.
func (t *tries) rest(ctx context.Context, told time.Duration) bool {
	pause := lastPause
	if t.pauses < 6 && firstPause<<t.pauses < lastPause {
		pause = firstPause << t.pauses
	}
	pause -= random(pause / 2)
	if told > pause {
		pause = told
	}
	if pause > t.left() {
		return false
	}
	t.pauses++
	return t.transport.wait(ctx, pause)
}

// random returns a time below the limit. The generator of math/rand would give every process the
// same times, and their clients would all call at the same moment.
func random(limit time.Duration) time.Duration {
	value, err := rand.Int(rand.Reader, big.NewInt(int64(limit)))
	if err != nil {
		return 0
	}
	return time.Duration(value.Int64())
}

// A transport is safe for concurrent use.
type transport struct {
	base              string
	token             string
	timeout, retryFor time.Duration
	http              *http.Client

	// Tests replace the clock.
	now  func() time.Time
	wait func(ctx context.Context, pause time.Duration) bool
}

func newTransport(address string, options ClientOptions) (*transport, error) {
	parts, err := url.Parse(address)
	if err != nil || parts.Scheme != "http" && parts.Scheme != "https" || parts.Hostname() == "" {
		return nil, invalid("%q must be http://HOST[:PORT] or https://HOST[:PORT]", address)
	}
	if parts.Path != "" && parts.Path != "/" || parts.RawQuery != "" || parts.Fragment != "" ||
		parts.User != nil {
		return nil, invalid("%q must have only a host and a port", address)
	}
	if options.Timeout <= 0 || options.Timeout > longestTimeout {
		return nil, invalid("Timeout must be greater than 0 and at most 24h, got %v", options.Timeout)
	}
	roots, err := readCertificates(options.CAFile)
	if err != nil {
		return nil, err
	}
	return &transport{
		base:     parts.Scheme + "://" + parts.Host,
		token:    options.Token,
		timeout:  options.Timeout,
		retryFor: options.RetryFor,
		http: &http.Client{
			Transport: &http.Transport{
				TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
				MaxIdleConnsPerHost: maxIdleConnections,
				IdleConnTimeout:     idleTimeout,
				DisableCompression:  true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		now:  time.Now,
		wait: sleep,
	}, nil
}

// readCertificates returns nil, which means those of the system, if the name is empty.
func readCertificates(name string) (*x509.CertPool, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, &Error{Code: InvalidArgument, Detail: fmt.Sprintf("CAFile: %v", err), Cause: err}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, invalid("CAFile: %s must have a certificate in PEM form", name)
	}
	return pool, nil
}

// sleep returns false if the context ends first.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// call returns the JSON of the answer. The error is an *Error.
func (t *transport) call(ctx context.Context, call call) (json.RawMessage, error) {
	tries := t.tries(ctx, call.retryFor)
	sends := 0 // requests that the server may have seen
	for {
		answer, told, err := t.try(ctx, call)
		if err == nil {
			return answer, nil
		}
		if !err.isUnseen {
			sends++
		}
		err.IsRepeated = sends > 1
		isHarmless := call.repeat == always || err.isUnseen
		if err.Code != Unavailable || !isHarmless || ctx.Err() != nil {
			return nil, err
		}
		if !tries.rest(ctx, told) {
			if ended := ctx.Err(); ended != nil {
				err.Cause = ended
			}
			return nil, err
		}
	}
}

// try makes one request. It returns the answer, or the error and the time of Retry-After.
func (t *transport) try(ctx context.Context, call call) (json.RawMessage, time.Duration, *Error) {
	limit := t.timeout + call.patience
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	isConnected := false
	traced := httptrace.WithClientTrace(limited, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { isConnected = true },
	})
	request, err := t.request(traced, call)
	if err != nil {
		return nil, 0, invalid("%s %s: %v", call.method, call.path, err)
	}
	response, err := t.http.Do(request)
	var answer []byte
	if err == nil {
		defer response.Body.Close()
		answer, err = io.ReadAll(response.Body)
	}
	if err != nil {
		return nil, 0, lost(ctx, limited, call, err, isConnected)
	}
	if response.StatusCode >= 300 {
		return nil, retryAfter(response.Header), errorOf(response.StatusCode, answer)
	}
	if !json.Valid(answer) {
		return nil, 0, unreadable(response.StatusCode, errors.New("it is not JSON"))
	}
	return answer, 0, nil
}

func (t *transport) request(ctx context.Context, call call) (*http.Request, error) {
	var body io.Reader
	if call.body != nil {
		body = bytes.NewReader(call.body)
	}
	request, err := http.NewRequestWithContext(ctx, call.method, t.base+call.path, body)
	if err != nil {
		return nil, err
	}
	if call.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if t.token != "" {
		request.Header.Set("Authorization", "Bearer "+t.token)
	}
	return request, nil
}

// lost returns the error of a request without an answer.
func lost(ctx, limited context.Context, call call, err error, isConnected bool) *Error {
	var wrapped *url.Error // its text repeats the method and the URL
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if ended := ctx.Err(); ended != nil {
		err = ended
	} else if limited.Err() != nil {
		err = errors.New("no answer within the timeout")
	}
	detail := fmt.Sprintf("%s %s: %v", call.method, call.path, err)
	return &Error{Code: Unavailable, Detail: detail, Cause: err, isUnseen: !isConnected}
}

func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.ParseUint(header.Get("Retry-After"), 10, 32)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// A result is the value of one element of a call for many, or its error.
type result[T any] struct {
	value T
	err   *Error
}

// callForEach makes a call for many elements. If a shard of a cluster is away, only its elements
// are Unavailable. They are repeated like a whole call, and all tries together take at most the
// retryFor of the call. The results of the other elements are kept, also if a repeat fails.
func callForEach[E, T any](
	ctx context.Context, t *transport, call call, elements []E,
	bodyOf func([]E) ([]byte, error), read func(json.RawMessage) (T, error),
) ([]result[T], error) {
	tries := t.tries(ctx, call.retryFor)
	results, err := callOnce(ctx, t, call, elements, bodyOf, read)
	if err != nil {
		return nil, err
	}
	for call.repeat == always {
		var places []int
		var away []E
		for i, one := range results {
			if one.err != nil && one.err.Code == Unavailable {
				places, away = append(places, i), append(away, elements[i])
			}
		}
		if len(away) == 0 || !tries.rest(ctx, 0) {
			break
		}
		left := tries.left()
		call.retryFor = &left
		again, err := callOnce(ctx, t, call, away, bodyOf, read)
		if err != nil {
			break
		}
		for i, one := range again {
			if one.err != nil {
				one.err.IsRepeated = true
			}
			results[places[i]] = one
		}
	}
	return results, nil
}

func callOnce[E, T any](
	ctx context.Context, t *transport, call call, elements []E,
	bodyOf func([]E) ([]byte, error), read func(json.RawMessage) (T, error),
) ([]result[T], error) {
	body, err := bodyOf(elements)
	if err != nil {
		return nil, err
	}
	call.body = body
	text, err := t.call(ctx, call)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Results []json.RawMessage `json:"results"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, unreadable(0, err)
	}
	if len(answer.Results) != len(elements) {
		return nil, unreadable(0, errors.New("it has results for other elements"))
	}
	results := make([]result[T], len(elements))
	for i, one := range answer.Results {
		results[i] = readResult(one, read)
	}
	return results, nil
}

func readResult[T any](text json.RawMessage, read func(json.RawMessage) (T, error)) result[T] {
	var failed struct{ Error json.RawMessage }
	if err := json.Unmarshal(text, &failed); err != nil {
		return result[T]{err: unreadable(0, err)}
	}
	if failed.Error != nil {
		var problem struct{ Status int }
		_ = json.Unmarshal(failed.Error, &problem) // without a status the type decides
		return result[T]{err: errorOf(problem.Status, failed.Error)}
	}
	value, err := read(text)
	if err != nil {
		return result[T]{err: unreadable(0, err)}
	}
	return result[T]{value: value}
}
