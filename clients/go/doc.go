// Package detent is a client of Detent, the durable delayed-task server. It schedules tasks and
// works on due tasks.
//
//	client, err := detent.NewClient("http://127.0.0.1:7070", detent.ClientOptions{})
//	task := detent.NewTask{Queue: "orders", Due: detent.In(30 * 24 * time.Hour), Key: "o-1001"}
//	scheduled, err := client.Schedule(ctx, task)
//	err = detent.NewWorker(client, "orders", cancelOrder, detent.WorkerOptions{}).Run(ctx)
//
// Start with Client (client.go), then Worker (worker.go). The server's repository describes its
// promises and each field in docs/reference/http.md. The page docs/guides/clients.md compares the
// clients. The package uses only the standard library.
//
// # Retries
//
// If the server is away, restarts or answers 503 (with its Retry-After), the client repeats a call
// for up to RetryFor. It does not repeat a call whose second execution has an effect of its own:
//
//   - Schedule and ScheduleMany of tasks without a key would create two tasks.
//   - TriggerSchedule would create two tasks.
//   - Purge and Redrive would change tasks that came in between.
//
// There is one exception: if no connection was made, the server has not seen the request, and the
// client repeats any call.
//
// If a task has a key, it is safe to schedule it again, for this client and for you.
//
// # Errors
//
// Each call that fails returns an *Error. Its Code tells how to react:
//
//	if errors.Is(err, detent.NotFound) { … }
//
//	var failed *detent.Error
//	if errors.As(err, &failed) && failed.IsRepeated { … }
//
// # Payloads
//
// A payload is one JSON value or bytes. Payload has the text of the JSON value, which the server
// keeps byte for byte. Bytes is not nil if the payload is bytes.
package detent
