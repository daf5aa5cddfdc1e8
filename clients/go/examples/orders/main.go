// Command orders cancels orders that are not paid within 30 days.
//
//	cd clients/go && go run ./examples/orders [URL]
//
// It places two orders. The first order is paid, so its cancellation is cancelled. For the second
// order, the example skips the 30 days, and the worker cancels it. Then it works on due tasks until
// SIGTERM or Ctrl-C.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"detent"
)

type cancellation struct {
	Order string `json:"order"`
}

func cancelOrder(_ context.Context, task detent.LeasedTask) error {
	var unpaid cancellation
	if err := json.Unmarshal(task.Payload, &unpaid); err != nil {
		return err
	}
	fmt.Printf("%s is due: cancelled\n", unpaid.Order)
	fmt.Println("working until SIGTERM")
	return nil
}

func run(url string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	client, err := detent.NewClient(url, detent.ClientOptions{})
	if err != nil {
		return err
	}
	// New numbers for each run: a key stands for its order for some time after the task has ended.
	now := time.Now().UnixNano()
	paid, unpaid := fmt.Sprintf("o-%d-1", now), fmt.Sprintf("o-%d-2", now)
	for _, order := range []string{paid, unpaid} {
		payload, err := json.Marshal(cancellation{order})
		if err != nil {
			return err
		}
		// With a key you can repeat this call, even if its answer was lost.
		task := detent.NewTask{
			Queue: "orders", Payload: payload, Due: detent.In(30 * 24 * time.Hour), Key: order,
		}
		if _, err := client.Schedule(ctx, task); err != nil {
			return err
		}
	}

	if err := client.Cancel(ctx, detent.TaskKey{Queue: "orders", Key: paid}); err != nil {
		return err
	}
	fmt.Printf("%s is paid: its cancellation is cancelled\n", paid)
	key := detent.TaskKey{Queue: "orders", Key: unpaid}
	if _, err := client.Move(ctx, key, detent.In(0)); err != nil { // 30 days later
		return err
	}

	options := detent.WorkerOptions{Concurrency: 4}
	if err := detent.NewWorker(client, "orders", cancelOrder, options).Run(ctx); err != nil {
		return err
	}
	fmt.Println("stopped")
	return nil
}

func main() {
	url := ""
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	if err := run(url); err != nil {
		log.Fatal(err)
	}
}
