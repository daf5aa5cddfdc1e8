// Go's runtime timers in bench/runtime_bench: answers a line of standard input with a line, "ok" and
// numbers, or what went wrong. time.AfterFunc, Stop and Reset; a goroutine for each thread asked
// for, GOMAXPROCS and collector as they are by default. runtime_workloads.h has the same workloads.
package main

import (
	"bufio"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	atOnce = 64 // operations between two looks at the clock
	hour   = time.Hour
)

var idle []*time.Timer

func between(random *rand.Rand, shortest, longest time.Duration) time.Duration {
	if longest <= shortest {
		return shortest
	}
	return shortest + time.Duration(random.Int63n(int64(longest-shortest)))
}

// fill starts timers due from shortest on, spread over an hour.
func fill(count int, shortest time.Duration) []*time.Timer {
	random := rand.New(rand.NewSource(int64(count)))
	timers := make([]*time.Timer, count)
	for i := range timers {
		timers[i] = time.AfterFunc(between(random, shortest, shortest+hour), func() {})
	}
	return timers
}

func stopAll(timers []*time.Timer) {
	for _, timer := range timers {
		timer.Stop()
	}
}

// check starts timers and counts those that fire wrongly. Of four, one fires as it was started, one
// is moved to earlier, one to later, one is stopped; those that must not fire where they are get
// time until that has been done.
func check() string {
	const count = 1000
	random := rand.New(rand.NewSource(7))
	var firings [count]int32
	var deadlines [count]int64 // since start
	var early int32
	start := time.Now()
	timers := make([]*time.Timer, count)
	delayFrom := func(i int, shortest time.Duration) time.Duration {
		delay := between(random, shortest, shortest+20*time.Millisecond)
		atomic.StoreInt64(&deadlines[i], int64(time.Since(start)+delay))
		return delay
	}
	for i := range timers {
		shortest := 100 * time.Millisecond
		if i%4 == 0 {
			shortest = time.Millisecond
		}
		i := i
		timers[i] = time.AfterFunc(delayFrom(i, shortest), func() {
			if int64(time.Since(start)) < atomic.LoadInt64(&deadlines[i]) {
				atomic.AddInt32(&early, 1)
			}
			atomic.AddInt32(&firings[i], 1)
		})
	}
	for i := range timers {
		switch i % 4 {
		case 1:
			timers[i].Reset(delayFrom(i, time.Millisecond))
		case 2:
			timers[i].Reset(delayFrom(i, 140*time.Millisecond))
		case 3:
			timers[i].Stop()
		}
	}
	time.Sleep(200 * time.Millisecond)
	wrong := atomic.LoadInt32(&early)
	for i := range firings {
		expected := int32(1)
		if i%4 == 3 {
			expected = 0
		}
		if atomic.LoadInt32(&firings[i]) != expected {
			wrong++
		}
	}
	return fmt.Sprint("ok ", wrong)
}

type lane struct {
	scheduled, cancelled, stopped int
	_                             [40]byte // lanes share no cache line
}

// run schedules and stops in a window of timers, as one thread, until the time is over.
func (l *lane) run(random *rand.Rand, window int, shortest, longest, length time.Duration,
	fired *int64) {
	timers := make([]*time.Timer, window)
	fire := func() { atomic.AddInt64(fired, 1) }
	start := time.Now()
	for more := true; more || l.cancelled < l.scheduled; {
		more = time.Since(start) < length
		for i := 0; i < atOnce; i++ {
			held := l.scheduled - l.cancelled
			if held == window || !more && held > 0 {
				if timers[l.cancelled%window].Stop() {
					l.stopped++
				}
				l.cancelled++
			}
			if more {
				timers[l.scheduled%window] = time.AfterFunc(between(random, shortest, longest), fire)
				l.scheduled++
			}
		}
	}
}

func pairs(pending int, seed int64, threads, window int, shortest, longest int64,
	seconds float64) string {
	background := fill(pending, 0)
	defer stopAll(background)
	var fired int64
	lanes := make([]lane, threads)
	var group sync.WaitGroup
	group.Add(threads)
	start := time.Now()
	for i := range lanes {
		random := rand.New(rand.NewSource(seed*1000 + int64(i)))
		go func(l *lane) {
			l.run(random, window, time.Duration(shortest)*time.Microsecond,
				time.Duration(longest)*time.Microsecond,
				time.Duration(seconds*float64(time.Second)), &fired)
			group.Done()
		}(&lanes[i])
	}
	group.Wait()
	elapsed := time.Since(start)
	sum, stopped := 0, 0
	for i := range lanes {
		sum += lanes[i].scheduled
		stopped += lanes[i].stopped
	}
	seen := int(atomic.LoadInt64(&fired))
	for i := 0; i < 1000 && stopped+seen < sum; i++ { // callbacks begun are goroutines of their own
		time.Sleep(time.Millisecond)
		seen = int(atomic.LoadInt64(&fired))
	}
	if stopped+seen != sum || seen > atOnce+sum/10 {
		return fmt.Sprintf("of %d timers %d were stopped and %d fired", sum, stopped, seen)
	}
	return fmt.Sprint("ok ", float64(elapsed.Nanoseconds())/float64(sum))
}

func refresh(pending int, seed int64, seconds float64) string {
	timers := fill(pending, time.Minute)
	defer stopAll(timers)
	random := rand.New(rand.NewSource(seed))
	length := time.Duration(seconds * float64(time.Second))
	count, missed := 0, 0
	start := time.Now()
	for time.Since(start) < length {
		for i := 0; i < atOnce; i++ {
			if !timers[random.Intn(pending)].Reset(hour) {
				missed++
			}
		}
		count += atOnce
	}
	elapsed := time.Since(start)
	if missed > 0 {
		return fmt.Sprintf("%d of %d timers were not pending", missed, count)
	}
	return fmt.Sprint("ok ", float64(elapsed.Nanoseconds())/float64(count))
}

// lateness measures timers that follow one another, each scheduled by the callback before it.
func lateness(pending int, seed int64, samples int, shortest, longest int64) string {
	background := fill(pending, hour)
	defer stopAll(background)
	random := rand.New(rand.NewSource(seed))
	measured := make([]time.Duration, 0, samples)
	done := make(chan struct{})
	var deadline time.Time
	var fire func()
	next := func() {
		delay := between(random, time.Duration(shortest)*time.Microsecond,
			time.Duration(longest)*time.Microsecond)
		deadline = time.Now().Add(delay)
		time.AfterFunc(delay, fire)
	}
	fire = func() {
		measured = append(measured, time.Since(deadline))
		if len(measured) == samples {
			close(done)
			return
		}
		next()
	}
	next()
	<-done
	var answer strings.Builder
	answer.WriteString("ok")
	for _, late := range measured {
		fmt.Fprint(&answer, " ", late.Nanoseconds())
	}
	return answer.String()
}

func answer(line string) string {
	var verb string
	var pending, threads, window, samples int
	var seed, shortest, longest int64
	var seconds float64
	fmt.Sscan(line, &verb, &pending, &seed)
	switch verb {
	case "check":
		return check()
	case "pairs":
		fmt.Sscan(line, &verb, &pending, &seed, &threads, &shortest, &longest, &seconds,
			&window)
		return pairs(pending, seed, threads, window, shortest, longest, seconds)
	case "refresh":
		fmt.Sscan(line, &verb, &pending, &seed, &seconds)
		return refresh(pending, seed, seconds)
	case "lateness":
		fmt.Sscan(line, &verb, &pending, &seed, &samples, &shortest, &longest)
		return lateness(pending, seed, samples, shortest, longest)
	case "idle":
		idle = fill(pending, hour)
		return "ok"
	case "idle_no_more":
		stopAll(idle)
		idle = nil
		return "ok"
	}
	return "unknown: " + line
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fmt.Println(answer(lines.Text()))
	}
}
