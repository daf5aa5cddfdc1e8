// Netty's HashedWheelTimer in bench/runtime_bench: answers a line of standard input with a line, "ok"
// and numbers, or what went wrong. One timer of 512 slots (its default) and ticks of 1 ms, called
// from as many threads as asked for; its worker is a thread of its own. A run of schedule and cancel
// is over when the worker has taken all that was cancelled out of its wheel.
// runtime_workloads.h has the same workloads; refresh is missing, since a Timeout cannot be moved.

import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;

public final class NettyTimers {
  private static final int AT_ONCE = 64; // operations between two looks at the clock
  private static final long HOUR_US = 3_600_000_000L;

  private static HashedWheelTimer idle;

  private static HashedWheelTimer newTimer() {
    return new HashedWheelTimer(1, TimeUnit.MILLISECONDS);
  }

  private static long between(SplittableRandom random, long shortest, long longest) {
    return longest <= shortest ? shortest : random.nextLong(shortest, longest);
  }

  /** Timeouts due from shortest microseconds on, spread over an hour; in the wheel on return. */
  private static HashedWheelTimer filled(int count, long shortest, AtomicLong fired)
      throws InterruptedException {
    HashedWheelTimer timer = newTimer();
    SplittableRandom random = new SplittableRandom(count);
    for (int i = 0; i < count; ++i) {
      long delay = between(random, shortest, shortest + HOUR_US);
      timer.newTimeout(timeout -> fired.incrementAndGet(), delay, TimeUnit.MICROSECONDS);
    }
    Thread.sleep(20); // the worker takes up to 100 000 of them a tick
    return timer;
  }

  /** Schedules timeouts, cancels every other one, and counts those that fired wrongly. */
  private static String check() throws InterruptedException {
    for (int i = 0; i < 3; ++i) { // first of all, so that the code gets compiled
      pairs("pairs 1000 1 2 1000000 60000000 0.3 64".split(" "));
    }
    final int count = 1000;
    HashedWheelTimer timer = newTimer();
    SplittableRandom random = new SplittableRandom(7);
    AtomicIntegerArray firings = new AtomicIntegerArray(count);
    AtomicInteger early = new AtomicInteger();
    Timeout[] timeouts = new Timeout[count];
    for (int i = 0; i < count; ++i) {
      final int index = i;
      long base = i % 2 == 0 ? 1_000 : 200_000; // time enough for code that is not compiled yet
      long delay = between(random, base, base + 20_000);
      long deadline = System.nanoTime() + delay * 1_000;
      timeouts[i] = timer.newTimeout(timeout -> {
        if (System.nanoTime() < deadline - 1_000_000) {
          early.incrementAndGet();
        }
        firings.incrementAndGet(index);
      }, delay, TimeUnit.MICROSECONDS);
    }
    for (int i = 1; i < count; i += 2) {
      timeouts[i].cancel();
    }
    Thread.sleep(400);
    timer.stop();
    int wrong = early.get();
    for (int i = 0; i < count; ++i) {
      if (firings.get(i) != 1 - i % 2) {
        ++wrong;
      }
    }
    return "ok " + wrong;
  }

  /** One thread that schedules and cancels in a window of timeouts until the time is over. */
  private static final class Lane extends Thread {
    private final HashedWheelTimer timer;
    private final SplittableRandom random;
    private final long shortest;
    private final long longest;
    private final long nanoseconds;
    private final Timeout[] timeouts;
    private final AtomicLong fired;
    private long pairs;
    private long cancelled;

    Lane(HashedWheelTimer timer, String[] words, int index, AtomicLong fired) {
      this.timer = timer;
      this.random = new SplittableRandom(Long.parseLong(words[2]) * 1000 + index);
      this.shortest = Long.parseLong(words[4]);
      this.longest = Long.parseLong(words[5]);
      this.nanoseconds = (long) (Double.parseDouble(words[6]) * 1e9);
      this.timeouts = new Timeout[Integer.parseInt(words[7])];
      this.fired = fired;
    }

    @Override
    public void run() {
      int oldest = 0;
      int held = 0;
      long start = System.nanoTime();
      for (boolean more = true; more || held > 0; ) {
        more = System.nanoTime() - start < nanoseconds;
        for (int i = 0; i < AT_ONCE; ++i) {
          if (held == timeouts.length || !more && held > 0) {
            cancelled += timeouts[oldest].cancel() ? 1 : 0;
            oldest = (oldest + 1) % timeouts.length;
            --held;
          }
          if (more) {
            timeouts[(oldest + held) % timeouts.length] = timer.newTimeout(
                timeout -> fired.incrementAndGet(), between(random, shortest, longest),
                TimeUnit.MICROSECONDS);
            ++held;
            ++pairs;
          }
        }
      }
    }
  }

  private static String pairs(String[] words) throws InterruptedException {
    int pending = Integer.parseInt(words[1]);
    AtomicLong backgroundFired = new AtomicLong();
    AtomicLong fired = new AtomicLong();
    HashedWheelTimer timer = filled(pending, 0, backgroundFired);
    Lane[] lanes = new Lane[Integer.parseInt(words[3])];
    for (int i = 0; i < lanes.length; ++i) {
      lanes[i] = new Lane(timer, words, i, fired);
    }
    long start = System.nanoTime();
    for (Lane lane : lanes) {
      lane.start();
    }
    long pairs = 0;
    long cancelled = 0;
    for (Lane lane : lanes) {
      lane.join();
      pairs += lane.pairs;
      cancelled += lane.cancelled;
    }
    while (timer.pendingTimeouts() > pending - backgroundFired.get()) {
      Thread.onSpinWait();
    }
    long elapsed = System.nanoTime() - start;
    timer.stop();
    if (cancelled + fired.get() != pairs || fired.get() > AT_ONCE + pairs / 10) {
      return "of " + pairs + " timeouts " + cancelled + " were cancelled, " + fired + " fired";
    }
    return "ok " + (double) elapsed / pairs;
  }

  /** Timeouts that follow one another, each scheduled by the task before it. */
  private static final class Chain {
    private final HashedWheelTimer timer;
    private final SplittableRandom random;
    private final long[] measured;
    private final long shortest;
    private final long longest;
    private final CountDownLatch done = new CountDownLatch(1);
    private int count;
    private long deadline;

    Chain(HashedWheelTimer timer, String[] words) {
      this.timer = timer;
      this.random = new SplittableRandom(Long.parseLong(words[2]));
      this.measured = new long[Integer.parseInt(words[3])];
      this.shortest = Long.parseLong(words[4]);
      this.longest = Long.parseLong(words[5]);
    }

    void scheduleNext() {
      long delay = between(random, shortest, longest);
      deadline = System.nanoTime() + delay * 1_000;
      timer.newTimeout(timeout -> fire(), delay, TimeUnit.MICROSECONDS);
    }

    private void fire() {
      measured[count++] = System.nanoTime() - deadline;
      if (count == measured.length) {
        done.countDown();
      } else {
        scheduleNext();
      }
    }
  }

  private static String lateness(String[] words) throws InterruptedException {
    HashedWheelTimer timer = filled(Integer.parseInt(words[1]), HOUR_US, new AtomicLong());
    Chain chain = new Chain(timer, words);
    chain.scheduleNext();
    chain.done.await();
    timer.stop();
    StringBuilder answer = new StringBuilder("ok");
    for (long late : chain.measured) {
      answer.append(' ').append(late);
    }
    return answer.toString();
  }

  private static String answer(String[] words) throws InterruptedException {
    switch (words[0]) {
      case "check":
        return check();
      case "pairs":
        return pairs(words);
      case "lateness":
        return lateness(words);
      case "idle":
        idle = filled(Integer.parseInt(words[1]), HOUR_US, new AtomicLong());
        return "ok";
      case "idle_no_more":
        idle.stop();
        idle = null;
        return "ok";
      default:
        return "unknown: " + words[0];
    }
  }

  public static void main(String[] arguments) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      System.out.println(answer(line.split(" ")));
      System.out.flush();
    }
  }
}
