#include "explorer.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <map>
#include <semaphore>
#include <thread>
#include <utility>

#include "base/rng.h"
#include "detent/check.h"

namespace detent::explore {

namespace {

constexpr std::uint32_t kEndlessSteps = 100'000;
constexpr std::uint32_t kMostChanges = 5;
constexpr std::uint32_t kSpuriousOneIn = 16;
// High priorities are random numbers from kHigh on. A change of priority makes a priority lower.
constexpr std::uint32_t kHigh = 1U << 30;

enum class Notify : std::uint8_t { one, all };

enum class State : std::uint8_t {
  ready,
  locking,  // until `mutex` is free
  waiting,  // until `condition` is notified
  joining,  // until `joined` has ended
  idling,   // until no other thread can continue
  ended,
};

}  // namespace

/// A thread of a schedule, and the real thread that runs it. The real thread is kept for the next
/// schedule. Only the thread that has the turn uses the actors.
struct Actor {
  Actor(Session& its_session, std::uint16_t its_number)
      : session(its_session), number(its_number) {}

  Session& session;
  const std::uint16_t number;
  std::binary_semaphore turn{0};
  UniqueFunction<void()> body;
  State state = State::ended;
  std::uint32_t priority = 0;
  const ExploredMutex* mutex = nullptr;
  const ExploredCondVar* condition = nullptr;
  const Actor* joined = nullptr;
  std::thread thread;
};

namespace {

// The actor of the current thread. Each real thread writes it once, when it starts.
thread_local Actor* self = nullptr;

Actor& me() {
  DETENT_CHECK(self != nullptr);  // only inside a scenario
  return *self;
}

}  // namespace

/// The threads of an explorer, and the state of the present run. Owned by the explorer and by each
/// of its threads, because the threads of a run that did not complete stay forever.
class Session : public std::enable_shared_from_this<Session> {
 public:
  const Outcome& run(const Plan& plan, std::function<void()> scenario) {
    begin(plan);
    start(std::move(scenario)).turn.release();
    over_.acquire();
    return outcome_;
  }

  bool has_completed() const { return outcome_.ending == Ending::completed; }

  /// Ends the real threads. Detaches the threads that cannot be ended.
  void close() {
    for (const std::unique_ptr<Actor>& actor : actors_) {
      if (has_completed()) {
        actor->turn.release();  // without a body
        actor->thread.join();
      } else {
        actor->thread.detach();
      }
    }
  }

  Actor& start(UniqueFunction<void()> body) {
    if (used_ == actors_.size()) add_actor();
    Actor& actor = *actors_[used_++];
    actor.body = std::move(body);
    actor.state = State::ready;
    actor.priority = kHigh + rng_.below(kHigh);
    return actor;
  }

  int next_number() { return ++objects_; }

  /// A hook point: records the operation of `actor`, and gives the turn to another thread if that
  /// thread has a higher priority.
  void step(Actor& actor, Op op, int object) {
    outcome_.trace.push_back({actor.number, op, static_cast<std::uint32_t>(object)});
    const std::size_t steps = outcome_.trace.size();
    if (std::find(changes_.begin(), changes_.end(), steps) != changes_.end()) {
      actor.priority = rng_.below(kHigh);
    }
    if (steps == kEndlessSteps) {
      finish(Ending::endless);
      stay(actor);
    }
    Actor* const next = choose();
    if (next == &actor) {
      actor.state = State::ready;
      return;
    }
    pass_turn(next);
    if (next == nullptr) stay(actor);
    actor.turn.acquire();
    actor.state = State::ready;
  }

  void lock(Actor& actor, ExploredMutex& mutex) {
    actor.mutex = &mutex;
    actor.state = State::locking;
    step(actor, Op::lock, mutex.number_);
    mutex.locked_ = true;
  }

  /// Does not use `mutex` after the turn has passed: its owner may destroy it then.
  void unlock(Actor& actor, ExploredMutex& mutex) {
    DETENT_CHECK(mutex.locked_);
    mutex.locked_ = false;
    step(actor, Op::unlock, mutex.number_);
  }

  void wait(Actor& actor, ExploredMutex& mutex, const ExploredCondVar& condition) {
    DETENT_CHECK(mutex.locked_);
    mutex.locked_ = false;
    actor.mutex = &mutex;
    actor.condition = &condition;
    actor.state = rng_.below(kSpuriousOneIn) == 0 ? State::locking : State::waiting;
    step(actor, Op::wait, condition.number_);
    mutex.locked_ = true;
  }

  /// Makes waiting threads compete for their mutex: one random thread, or all.
  void notify(Actor& actor, const ExploredCondVar& condition, Notify whom) {
    step(actor, Op::notify, condition.number_);
    const std::uint32_t waiting = count(State::waiting, &Actor::condition, &condition);
    if (waiting == 0) return;
    std::uint32_t left_out = whom == Notify::all ? 0 : rng_.below(waiting);
    for (std::size_t i = 0; i < used_; ++i) {
      Actor& other = *actors_[i];
      if (other.state != State::waiting || other.condition != &condition) continue;
      if (left_out > 0) {
        --left_out;
        continue;
      }
      other.state = State::locking;
      if (whom == Notify::one) return;
    }
  }

  void join(Actor& actor, const Actor& joined) {
    actor.joined = &joined;
    actor.state = State::joining;
    step(actor, Op::join, joined.number);
  }

  void idle(Actor& actor) {
    actor.state = State::idling;
    step(actor, Op::idle, 0);
  }

  /// The number of threads that are in `state` because of `object`.
  template <class Object>
  std::uint32_t count(State state, const Object* Actor::*member, const Object* object) const {
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < used_; ++i) {
      if (actors_[i]->state == state && (*actors_[i]).*member == object) ++found;
    }
    return found;
  }

 private:
  void begin(const Plan& plan) {
    rng_ = Rng(plan.seed);
    outcome_.ending = Ending::completed;
    outcome_.trace.clear();
    used_ = 0;
    objects_ = 0;
    changes_.fill(0);
    if (plan.length == 0) return;
    const std::uint32_t changes = rng_.below(kMostChanges + 1);
    for (std::uint32_t i = 0; i < changes; ++i) changes_.at(i) = 1 + rng_.below(plan.length);
  }

  void add_actor() {
    Actor& added = *actors_.emplace_back(
        std::make_unique<Actor>(*this, static_cast<std::uint16_t>(actors_.size())));
    added.thread = std::thread([session = shared_from_this(), &added] { session->play(added); });
  }

  void play(Actor& actor) {
    self = &actor;
    for (;;) {
      actor.turn.acquire();
      if (!actor.body) return;
      std::exchange(actor.body, {})();
      outcome_.trace.push_back({actor.number, Op::end, 0});
      actor.state = State::ended;
      pass_turn(choose());
    }
  }

  /// The thread that gets the turn; null if no thread can continue. Idling threads come last.
  Actor* choose() const {
    Actor* next = nullptr;
    Actor* idle = nullptr;
    for (std::size_t i = 0; i < used_; ++i) {
      Actor* const actor = actors_[i].get();
      if (actor->state == State::idling) idle = actor;
      if (can_go_on(*actor) && (next == nullptr || actor->priority > next->priority)) next = actor;
    }
    return next != nullptr ? next : idle;
  }

  static bool can_go_on(const Actor& actor) {
    switch (actor.state) {
      case State::ready:
        return true;
      case State::locking:
        return !actor.mutex->locked_;
      case State::joining:
        return actor.joined->state == State::ended;
      case State::waiting:
      case State::idling:
      case State::ended:
        return false;
    }
    return false;
  }

  void pass_turn(Actor* next) {
    if (next != nullptr) {
      next->turn.release();
    } else {
      finish(ended() == used_ ? Ending::completed : Ending::deadlock);
    }
  }

  std::size_t ended() const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < used_; ++i) found += actors_[i]->state == State::ended ? 1U : 0U;
    return found;
  }

  void finish(Ending ending) {
    outcome_.ending = ending;
    over_.release();
  }

  /// Blocks the thread forever, because its stack cannot be unwound.
  [[noreturn]] static void stay(Actor& actor) {
    for (;;) actor.turn.acquire();
  }

  std::binary_semaphore over_{0};
  std::vector<std::unique_ptr<Actor>> actors_;
  std::size_t used_ = 0;  // by this run
  Rng rng_{0};
  std::array<std::size_t, kMostChanges> changes_{};  // the steps at which priorities change
  int objects_ = 0;
  Outcome outcome_;
};

// ---- hook points --------------------------------------------------------------------------------

ExploredMutex::ExploredMutex() : number_(me().session.next_number()) {}

ExploredMutex::~ExploredMutex() {
  DETENT_CHECK(!locked_);
  DETENT_CHECK(me().session.count(State::locking, &Actor::mutex, this) == 0);
}

void ExploredMutex::lock() { me().session.lock(me(), *this); }
void ExploredMutex::unlock() { me().session.unlock(me(), *this); }

ExploredCondVar::ExploredCondVar() : number_(me().session.next_number()) {}

ExploredCondVar::~ExploredCondVar() {
  DETENT_CHECK(me().session.count(State::waiting, &Actor::condition, this) == 0);
}

void ExploredCondVar::wait_for_notify(ExploredMutex& mutex) {
  me().session.wait(me(), mutex, *this);
}
void ExploredCondVar::notify_one() noexcept { me().session.notify(me(), *this, Notify::one); }
void ExploredCondVar::notify_all() noexcept { me().session.notify(me(), *this, Notify::all); }

void ExploredCondVar::refuse_timed_wait() noexcept {
  constexpr bool kTimedWaitInAnExploration = false;
  DETENT_CHECK(kTimedWaitInAnExploration);
  std::abort();
}

ExploredThread::ExploredThread(UniqueFunction<void()> body)
    : actor_(&me().session.start(std::move(body))) {
  me().session.step(me(), Op::start, actor_->number);
}

ExploredThread& ExploredThread::operator=(ExploredThread&& other) noexcept {
  DETENT_CHECK(!joinable());
  actor_ = std::exchange(other.actor_, nullptr);
  return *this;
}

ExploredThread::~ExploredThread() { DETENT_CHECK(!joinable()); }

void ExploredThread::join() {
  DETENT_CHECK(joinable());
  me().session.join(me(), *std::exchange(actor_, nullptr));
}

std::size_t thread_number() noexcept { return me().number; }

void await_idle() { me().session.idle(me()); }

// ---- Explorer -----------------------------------------------------------------------------------

/// Keeps the calling thread, and the threads that it starts, on their present processor.
class Explorer::Affinity {
 public:
  Affinity() {
    ::sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t here{};
    CPU_SET(static_cast<std::size_t>(std::max(0, ::sched_getcpu())), &here);
    ::sched_setaffinity(0, sizeof(here), &here);  // if this is refused, runs are only slower
  }
  ~Affinity() { ::sched_setaffinity(0, sizeof(before_), &before_); }
  Affinity(const Affinity&) = delete;
  Affinity& operator=(const Affinity&) = delete;

 private:
  cpu_set_t before_{};
};

Explorer::Explorer()
    : affinity_(std::make_unique<Affinity>()), session_(std::make_shared<Session>()) {}
Explorer::~Explorer() { session_->close(); }

const Outcome& Explorer::run(const Plan& plan, std::function<void()> scenario) {
  if (!session_->has_completed()) {
    session_->close();
    session_ = std::make_shared<Session>();
  }
  return session_->run(plan, std::move(scenario));
}

namespace {

std::string to_text(const Step& step) {
  constexpr std::array kOps = {"lock", "unlock", "wait",  "notify", "start",
                               "join", "end",    "point", "idle"};
  std::string text =
      "thread " + std::to_string(step.thread) + ' ' + kOps.at(static_cast<std::size_t>(step.op));
  if (step.op != Op::end && step.op != Op::point && step.op != Op::idle) {
    text += ' ' + std::to_string(step.object);
  }
  return text + '\n';
}

}  // namespace

std::string to_text(const Outcome& outcome) {
  constexpr std::size_t kShown = 200;
  constexpr std::array kEndings = {"all threads ended", "deadlock: no thread can continue",
                                   "endless: the threads never end"};
  const std::vector<Step>& trace = outcome.trace;
  std::string text = "ending: ";
  text += kEndings.at(static_cast<std::size_t>(outcome.ending));
  text += "\nwhere each thread is:\n";
  std::map<std::uint16_t, Step> last;
  for (const Step& step : trace) last.insert_or_assign(step.thread, step);
  for (const auto& [thread, step] : last) text += to_text(step);
  const std::size_t left_out = trace.size() - std::min(trace.size(), kShown);
  text += "trace, without the first " + std::to_string(left_out) + " steps:\n";
  for (std::size_t i = left_out; i < trace.size(); ++i) text += to_text(trace[i]);
  return text;
}

}  // namespace detent::explore

namespace detent {

void explore_point() {
  explore::Actor& actor = explore::me();
  actor.session.step(actor, explore::Op::point, 0);
}

}  // namespace detent
