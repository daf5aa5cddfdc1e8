// Ports of published wheels with their bugs, from tests/regress/classic, for the playground.
#include <algorithm>
#include <functional>
#include <utility>

#include "machine.h"
#include "tests/regress/classic/circle_wheel_port.h"
#include "tests/regress/classic/dynamic_wheel_port.h"
#include "tests/regress/classic/fixed_wheel_port.h"
#include "tests/regress/classic/kafka_port.h"
#include "tests/regress/classic/relative_wheel_port.h"
#include "tests/regress/classic/ticker_wheel_port.h"

namespace playground {
namespace {

using namespace detent::classic;

class PublishedMachine;

// The job of a timer. It tells the machine that the timer fires. Some ports ask for the duration of
// a job.
struct Report {
  PublishedMachine* machine;
  TimerNumber timer;
  Tick deadline;

  std::int64_t operator()() const;
};

// A port, which wakes at every tick. The time of a port is signed.
class PublishedMachine : public Machine {
  static constexpr std::size_t kMostFired = 1000;  // in one step, without memory of the vector

 public:
  explicit PublishedMachine(Tick now) : now_(now) {}

  bool schedule(TimerNumber timer, Tick deadline) override {
    fired_.reserve(fired_.size() + 1);
    const auto delay = static_cast<std::int64_t>(deadline - now_);
    return counted([&] {
      add(timer, delay, Report{this, timer, deadline});
      return true;
    });
  }
  bool cancel(TimerNumber timer) override {
    return counted([&] { return remove(timer); });
  }
  std::uint64_t step(Tick end, std::vector<FiredTimer>& fired) override {
    const std::uint64_t ticks = end / tick_width() - now_ / tick_width();
    fired_.reserve(kMostFired);
    counted([&] {
      run_until(static_cast<std::int64_t>(end));
      return true;
    });
    now_ = end;
    fired.insert(fired.end(), fired_.begin(), fired_.end());
    fired_.clear();
    return ticks;
  }
  Tick now() const override { return now_; }
  std::optional<Tick> next_wakeup() const override { return now_ + tick_width(); }
  std::size_t timer_bytes() const override { return 0; }

  void fires(TimerNumber timer) { fired_.push_back({timer, static_cast<Tick>(port_now())}); }

 protected:
  virtual void add(TimerNumber timer, std::int64_t delay, const Report& report) = 0;
  virtual bool remove(TimerNumber /*timer*/) { return false; }
  virtual void run_until(std::int64_t end) = 0;
  virtual std::int64_t port_now() const = 0;
  virtual Tick tick_width() const { return 1; }

  template <class Port>
  static Picture picture_of(const Port& port) {
    Picture picture;
    for (std::size_t i = 0; i < port.level_count(); ++i) {
      picture.levels.push_back(
          {"level " + std::to_string(i), port.slot_count(i), port.hand(i), {}});
    }
    port.for_each_job(
        [&picture](std::size_t level, std::size_t slot, std::int64_t rounds, const auto& job) {
          const Report* report = job.template target<Report>();
          design::put(picture.levels.at(level), slot, report->deadline);
          if (rounds > 0) picture.rounds[report->deadline] = rounds;
        });
    return picture;
  }

 private:
  Tick now_;
  std::vector<FiredTimer> fired_;  // also timers that a port runs when they are added
};

std::int64_t Report::operator()() const {
  machine->fires(timer);
  return 0;
}

template <class Port>
std::int64_t now_of(const Port& port) {
  return port.now();
}
std::int64_t now_of(const TickerWheelPort& port) { return port.now_ms() / 1000; }

template <class Port>
class PortMachine : public PublishedMachine {
 public:
  template <class... Arguments>
  explicit PortMachine(Tick now, Arguments&&... arguments)
      : PublishedMachine(now), port_(std::forward<Arguments>(arguments)...) {
    add_heap_bytes(heap_in_use() - before_);
  }

  Picture picture(const std::vector<Tick>& /*pending*/) const override { return picture_of(port_); }
  std::size_t queue_bytes() const override { return sizeof(Port); }

 protected:
  Port& port() { return port_; }
  void run_until(std::int64_t end) override { port_.run_until(end); }
  std::int64_t port_now() const override { return now_of(port_); }

 private:
  std::size_t before_ = heap_in_use();
  Port port_;
};

// One tick is a second, as in the original.
class TickerMachine final : public PortMachine<TickerWheelPort> {
 public:
  TickerMachine(Tick now, std::size_t slots) : PortMachine(now, slots, 1000) {
    run_until(static_cast<std::int64_t>(now));
  }

  bool can_cancel() const override { return false; }

 private:
  void add(TimerNumber, std::int64_t delay, const Report& report) override {
    port().add(delay * 1000, report);
  }
  void run_until(std::int64_t end) override { port().run_until(end * 1000); }
};

class FixedMachine final : public PortMachine<FixedWheelPort> {
 public:
  FixedMachine(Tick now, Promotion promotion) : PortMachine(now, SlotPath::single, promotion) {
    port().start();
    run_until(static_cast<std::int64_t>(now));
  }

 private:
  void add(TimerNumber timer, std::int64_t delay, const Report& report) override {
    port().add(static_cast<int>(timer), delay, report);
  }
  bool remove(TimerNumber timer) override { return port().cancel(static_cast<int>(timer)); }
};

class RelativeMachine final : public PortMachine<RelativeWheelPort> {
 public:
  RelativeMachine(Tick now, const std::vector<RelativeWheelPort::LevelShape>& shapes)
      : PortMachine(now, shapes) {
    run_until(static_cast<std::int64_t>(now));
  }

  bool can_cancel() const override { return false; }

 private:
  void add(TimerNumber, std::int64_t delay, const Report& report) override {
    port().add(delay, report);
  }
};

class DynamicMachine final : public PortMachine<DynamicWheelPort> {
 public:
  DynamicMachine(Tick now, std::int64_t slots) : PortMachine(now, slots) {
    port().start();
    run_until(static_cast<std::int64_t>(now));
  }

  bool can_cancel() const override { return false; }

 private:
  void add(TimerNumber, std::int64_t delay, const Report& report) override {
    if (port().level_for(delay)) port().add(delay, report);
  }
};

class CircleMachine final : public PortMachine<CircleWheelPort> {
 public:
  CircleMachine(Tick now, std::size_t slots) : PortMachine(now, slots, 1000) {
    port().start();
    port().start_thread();
    run_until(static_cast<std::int64_t>(now));
  }

 private:
  void add(TimerNumber timer, std::int64_t delay, const Report& report) override {
    port().add(std::to_string(timer), {.delay_ms = delay * 1000}, report);
    port().carry_out_orders();
  }
  bool remove(TimerNumber timer) override {
    const bool found = port().remove(std::to_string(timer));
    port().carry_out_orders();
    return found;
  }
};

// Here a tick of the playground is a millisecond.
class KafkaMachine final : public PublishedMachine {
 public:
  KafkaMachine(Tick now, Tick tick, Tick size)
      : PublishedMachine(now),
        tick_(tick),
        world_{.real = static_cast<Millis>(now)},
        port_(world_, static_cast<Millis>(tick), static_cast<Millis>(size)) {
    add_heap_bytes(heap_in_use() - before_);
  }

  Picture picture(const std::vector<Tick>& /*pending*/) const override { return picture_of(port_); }
  std::size_t queue_bytes() const override { return sizeof(KafkaPort); }

 private:
  void add(TimerNumber timer, std::int64_t delay, const Report& report) override {
    port_.start_after(timers_[timer], delay, report);
  }
  bool remove(TimerNumber timer) override { return KafkaPort::stop(timers_[timer]); }
  void run_until(std::int64_t end) override { port_.run_until(end); }
  std::int64_t port_now() const override { return world_.real; }
  Tick tick_width() const override { return tick_; }

  Tick tick_;
  World world_;
  std::size_t before_ = heap_in_use();
  KafkaPort port_;
  std::map<TimerNumber, KafkaTimer> timers_;
};

// The ports do not check their sizes: with others they divide by zero, call themselves forever or
// take all memory, which would end the program.
constexpr Tick kLargestSize = 10'000;
constexpr Tick kLargestProduct = 1'000'000'000;
bool fit(const std::vector<Tick>& sizes) {
  Tick product = 1;
  return std::all_of(sizes.begin(), sizes.end(), [&product](Tick size) {
    if (size < 2 || size > kLargestSize) return false;
    product *= size;
    return product <= kLargestProduct;
  });
}

}  // namespace

std::unique_ptr<Machine> make_published(const std::string& design, const std::vector<Tick>& sizes,
                                        Tick now, std::string& error) {
  if (!fit(sizes)) {
    error = "published wheels take sizes from 2 to " + std::to_string(kLargestSize) +
            ", with a product of up to " + std::to_string(kLargestProduct);
    return nullptr;
  }
  const auto size = [&](std::size_t at, Tick standard) {
    return at < sizes.size() && sizes[at] > 0 ? sizes[at] : standard;
  };
  if (design == "published-ticker") {
    return std::make_unique<TickerMachine>(now, static_cast<std::size_t>(size(0, 8)));
  }
  if (design == "published-circle") {
    return std::make_unique<CircleMachine>(now, static_cast<std::size_t>(size(0, 10)));
  }
  if (design == "published-fixed") return std::make_unique<FixedMachine>(now, Promotion::none);
  if (design == "published-promoting") {
    return std::make_unique<FixedMachine>(now, Promotion::to_seconds);
  }
  if (design == "published-relative") {
    std::vector<RelativeWheelPort::LevelShape> shapes;
    Tick unit = 1;
    for (const Tick slots : sizes) {
      shapes.push_back({static_cast<std::int64_t>(unit), static_cast<std::size_t>(slots)});
      unit *= slots;
    }
    return std::make_unique<RelativeMachine>(now, shapes);
  }
  if (design == "published-extended") {  // hours, days, months of 30 days, years of 365 days
    return std::make_unique<RelativeMachine>(
        now, std::vector<RelativeWheelPort::LevelShape>{
                 {1, 24}, {24, 30}, {24 * 30, 12}, {24 * 365, 100}});
  }
  if (design == "published-dynamic") {
    return std::make_unique<DynamicMachine>(now, static_cast<std::int64_t>(size(0, 10)));
  }
  if (design == "published-kafka") {
    return std::make_unique<KafkaMachine>(now, size(1, 1), size(0, 20));
  }
  error = "no design is called " + design;
  return nullptr;
}

}  // namespace playground
