package detent

import (
	"encoding/json"
	"fmt"
)

// A Code is the kind of an error, which tells the caller how to react. It is an error itself, so
// that errors.Is(err, detent.NotFound) works.
type Code string

const (
	InvalidArgument   Code = "invalid_argument"   // the request is wrong: fix the request
	Unauthorized      Code = "unauthorized"       // the server requires an access token
	Forbidden         Code = "forbidden"          // the token does not have the scope for this
	NotFound          Code = "not_found"          // the object does not exist, or no longer exists
	Conflict          Code = "conflict"           // the state of the object, or its key, forbids this
	TooLarge          Code = "too_large"          // the request exceeds a limit that Detail names
	ResourceExhausted Code = "resource_exhausted" // a quota or the space is used up: try later
	Unavailable       Code = "unavailable"        // no answer; the server may have done the work
	DataLoss          Code = "data_loss"          // stored data cannot be read
	Internal          Code = "internal"           // a failure of the server, or an unreadable answer
)

// Error returns the name of the code.
func (code Code) Error() string { return string(code) }

// An Error is a call that failed.
type Error struct {
	Code Code
	// Status is the HTTP status of the answer; 0 without an answer.
	Status int
	// Detail is the reason, for people.
	Detail string
	// Field is the wrong field of the request; "" if the error is not about one field.
	Field string
	// Problem is the problem document (RFC 9457) as the server sent it; nil without a document.
	Problem json.RawMessage
	// IsRepeated says that the request was sent more than once. A NotFound or Conflict may then be
	// the effect of the first request, whose answer was lost.
	IsRepeated bool
	// Cause is the error of the connection or of the context; nil if the server answered.
	Cause error

	isUnseen bool // there was no connection, so the server has not seen the request
}

// Error returns the field and the reason.
func (err *Error) Error() string {
	if err.Field != "" {
		return fmt.Sprintf("detent: %s: %s", err.Field, err.Detail)
	}
	return "detent: " + err.Detail
}

// Is reports whether target is the code of this error.
func (err *Error) Is(target error) bool { return target == err.Code }

// Unwrap returns the cause. So errors.Is(err, context.Canceled) is true for a cancelled call.
func (err *Error) Unwrap() error { return err.Cause }

func invalid(format string, values ...any) *Error {
	return &Error{Code: InvalidArgument, Detail: fmt.Sprintf(format, values...)}
}

func unreadable(status int, cause error) *Error {
	detail := fmt.Sprintf("unexpected answer of the server: %v", cause)
	return &Error{Code: Internal, Status: status, Detail: detail, Cause: cause}
}

var codeByType = map[string]Code{
	"urn:detent:error:invalid_argument":   InvalidArgument,
	"urn:detent:error:forbidden":          Forbidden,
	"urn:detent:error:not_found":          NotFound,
	"urn:detent:error:conflict":           Conflict,
	"urn:detent:error:too_large":          TooLarge,
	"urn:detent:error:resource_exhausted": ResourceExhausted,
	"urn:detent:error:unavailable":        Unavailable,
	"urn:detent:error:data_loss":          DataLoss,
	"urn:detent:error:internal":           Internal,
}

var codeByStatus = map[int]Code{
	401: Unauthorized,
	403: Forbidden,
	404: NotFound,
	408: Unavailable,
	409: Conflict,
	412: Conflict,
	413: TooLarge,
	429: ResourceExhausted,
	502: Unavailable, // 502 and 504 come from a proxy that reaches no server
	503: Unavailable,
	504: Unavailable,
}

// errorOf returns the error for an answer with this status. The answer may be anything, for example
// the page of a proxy. The type of the problem document decides the code; without a type of Detent,
// the status decides.
func errorOf(status int, answer []byte) *Error {
	var problem struct{ Type, Title, Detail, Field string }
	err := &Error{Code: Internal, Status: status}
	if json.Unmarshal(answer, &problem) == nil {
		err.Problem = answer
	}
	err.Detail, err.Field = problem.Detail, problem.Field
	if err.Detail == "" {
		err.Detail = problem.Title
	}
	if err.Detail == "" {
		err.Detail = fmt.Sprintf("the server answered %d", status)
	}
	if code, isKnown := codeByType[problem.Type]; isKnown {
		err.Code = code
	} else if code, isKnown := codeByStatus[status]; isKnown {
		err.Code = code
	} else if status >= 400 && status < 500 {
		err.Code = InvalidArgument
	}
	return err
}
