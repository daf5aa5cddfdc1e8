// Command cluster_worker is a worker that tests/cluster/clients_test.py controls.
//
//	cluster_worker URL QUEUE
//
// It reads the commands `go` (let handlers return), `hold` (let handlers wait) and `stop`. It prints
// `began PAYLOAD`, `done PAYLOAD` (or `abandoned PAYLOAD`) and `error TEXT`.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"detent"
)

// A gate lets handlers wait.
type gate struct {
	mu     sync.Mutex
	isOpen bool
	opened *sync.Cond
}

func (g *gate) set(isOpen bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isOpen = isOpen
	g.opened.Broadcast()
}

func (g *gate) wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.isOpen {
		g.opened.Wait()
	}
}

func main() {
	printing := sync.Mutex{}
	say := func(word string, value any) {
		printing.Lock()
		defer printing.Unlock()
		fmt.Println(word, value)
	}
	mayReturn := &gate{}
	mayReturn.opened = sync.NewCond(&mayReturn.mu)
	client, err := detent.NewClient(os.Args[1], detent.ClientOptions{RetryFor: 5 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	worker := detent.NewWorker(client, os.Args[2],
		func(ctx context.Context, task detent.LeasedTask) error {
			say("began", string(task.Payload))
			mayReturn.wait()
			word := "done"
			if ctx.Err() != nil {
				word = "abandoned"
			}
			say(word, string(task.Payload))
			return nil
		},
		detent.WorkerOptions{Concurrency: 10, Prefetch: 20, Wait: time.Second,
			VisibilityTimeout: 30 * time.Second, OnError: func(err error) { say("error", err) }})
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		for lines := bufio.NewScanner(os.Stdin); lines.Scan() && lines.Text() != "stop"; {
			mayReturn.set(lines.Text() == "go")
		}
		mayReturn.set(true)
	}()
	if err := worker.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
