#include "engine/hand_out/hand_out.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "detent/check.h"
#include "task/lifecycle.h"
#include "task/retry.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

/// Most payload bytes in one answer to a lease, so that an answer stays within a few HTTP buffers.
constexpr std::size_t kMaxLeaseBytes = 16 * 1024 * 1024;

/// For this time after workers of other queues waited, answers stay small: these workers handle
/// their tasks, and will soon wait again.
constexpr Tick kSharedTicks = 1'000;
/// The most expired waits that are answered in one turn.
constexpr std::size_t kEndLimit = 2'000;

/// Whether the webhook of the queue does not accept messages. Tasks with their own webhook are not
/// held.
bool is_held(const Queue& queue, const HeldWebhooks& held) {
  const std::optional<QueueWebhook>& webhook = queue.record.settings.webhook;
  return webhook && std::ranges::find(held, webhook->url) != held.end();
}

}  // namespace

/// The request of the deliverer while it waits for tasks.
struct HandOut::DeliveryWait {
  DeliveryRequest request;
  HeldWebhooks held;
  DeliveriesDone done;
};

HandOut::HandOut(Parts parts, std::uint64_t shard)
    : parts_(parts), shard_(shard), waits_(parts.time.now()) {}

HandOut::~HandOut() = default;

void HandOut::begin(std::uint64_t epoch) noexcept {
  DETENT_CHECK(epoch > epoch_);
  epoch_ = epoch;
  waits_.begin_names(epoch << 32);
}

void HandOut::note_number(std::uint64_t number) noexcept {
  last_lease_ = std::max(last_lease_, number);
}

// ---- workers ----

Result<std::vector<LeasedTask>> HandOut::lease(const LeaseRequest& request) {
  if (parts_.writer.stopped_by()) return *parts_.writer.stopped_by();
  TRY(validate(request));
  if (parts_.window.holds_hand_outs()) return std::vector<LeasedTask>{};
  serve_waits_before(request);
  if (!request.other_queues.empty()) return lease_most_urgent(request);
  return lease_from(request.queue, request);
}

Result<std::vector<LeasedTask>> HandOut::lease_from(const std::string& name,
                                                    const LeaseRequest& request) {
  Queue* const known = parts_.queues.find(name);
  if (known == nullptr) return std::vector<LeasedTask>{};
  Queue& queue = *known;
  // Workers of this queue still wait after serve_waits_before(), and they come first.
  if (queue.to_serve) return std::vector<LeasedTask>{};
  if (!queue.has_work()) return std::vector<LeasedTask>{};
  Result<std::vector<LeasedTask>> tasks = take_ready(queue, queue.ready, request, {});
  // An unreadable task is now set aside, and the tasks behind it may be readable.
  while (tasks && tasks->empty() && parts_.tasks.allowance(queue) > 0 && queue.has_work()) {
    tasks = take_ready(queue, queue.ready, request, {});
  }
  return tasks;
}

WaitId HandOut::lease_or_wait(const LeaseRequest& request, milliseconds wait, LeaseDone done) {
  const WaitId id = waits_.next_name();
  Result<std::vector<LeasedTask>> ready = lease(request);
  if (!ready || !ready->empty() || wait <= milliseconds{0} || waits_.have_ended()) {
    parts_.answers.answer(std::move(done), std::move(ready));
    return id;
  }
  std::vector<Queue*> queues{&parts_.queues.queue_of(request.queue)};
  for (const std::string& name : request.other_queues)
    queues.push_back(&parts_.queues.queue_of(name));
  waits_.add({.id = id, .queues = queues, .request = request, .done = std::move(done)},
             parts_.time.tick_after(wait));
  // A limit may hold the ready tasks back.
  for (Queue* const queue : queues) parts_.turns.want_serving(*queue);
  return id;
}

void HandOut::abandon_wait(WaitId id) {
  if (WorkerWait* const wait = waits_.find(id)) finish_wait(*wait, std::vector<LeasedTask>{});
}

void HandOut::end_waits() {
  waits_.end();
  end_delivery_wait(std::vector<Delivery>{});
  for (const WaitId id : waits_.all()) abandon_wait(id);
}

Result<void> HandOut::expect_going_on() const {
  if (!waits_.have_ended()) return ok();
  return Error{ErrorCode::unavailable, "the server is stopping", ""};
}

/// The queues that the request names, without the queues that do not exist.
std::vector<Queue*> HandOut::queues_of(const LeaseRequest& request) const {
  std::vector<Queue*> queues;
  queues.reserve(request.other_queues.size() + 1);
  const auto add = [&](const std::string& name) {
    if (Queue* const queue = parts_.queues.find(name)) queues.push_back(queue);
  };
  add(request.queue);
  for (const std::string& name : request.other_queues) add(name);
  return queues;
}

Result<std::optional<ReadyHead>> HandOut::next_ready(const LeaseRequest& request) {
  if (parts_.writer.stopped_by()) return *parts_.writer.stopped_by();
  TRY(validate(request));
  if (parts_.window.holds_hand_outs()) return std::optional<ReadyHead>();
  serve_waits();  // waiting workers come first
  ASSIGN_OR_RETURN(Queue* const queue, most_urgent(queues_of(request), nullptr));
  if (queue == nullptr) return std::optional<ReadyHead>();
  ASSIGN_OR_RETURN(const LoadedTask* const head, parts_.window.head_of(*queue, queue->ready));
  const Place place = head->ready_place();
  return std::optional(ReadyHead{.priority = place.priority, .due_at = place.at, .id = place.id});
}

Result<std::vector<LeasedTask>> HandOut::lease_most_urgent(const LeaseRequest& request) {
  const std::vector<Queue*> queues = queues_of(request);
  while (true) {
    ASSIGN_OR_RETURN(Queue* const queue, most_urgent(queues, nullptr));
    if (queue == nullptr) return std::vector<LeasedTask>{};
    Result<std::vector<LeasedTask>> tasks = take_ready(*queue, queue->ready, request, {});
    // Empty: an unreadable task is now set aside. The tasks behind it may be readable.
    if (!tasks || !tasks->empty()) return tasks;
  }
}

/// Returns the queue whose next task is most urgent, or null if no task can be handed out. If
/// `wait` is given, only queues where it is the first waiting worker count. If `wait` is null, only
/// queues that have no waiting workers to serve count. Without the store, the answer is also null
/// if the most urgent task may be on disk.
Result<Queue*> HandOut::most_urgent(const std::vector<Queue*>& queues, const WorkerWait* wait,
                                    Source source) {
  Queue* best = nullptr;
  const LoadedTask* best_head = nullptr;
  for (Queue* const queue : queues) {
    const bool is_first = wait == nullptr ? !queue->to_serve : queue->waits.begin()->second == wait;
    if (!is_first || !queue->has_work() || parts_.tasks.allowance(*queue) == 0) continue;
    const LoadedTask* head = queue->ready.head();
    if (head == nullptr) {
      if (source == Source::memory) return static_cast<Queue*>(nullptr);
      ASSIGN_OR_RETURN(head, parts_.window.head_of(*queue, queue->ready));
    }
    if (head == nullptr) continue;
    if (best_head == nullptr || ReadyOrder()(head, best_head)) {
      best = queue;
      best_head = head;
    }
  }
  return best;
}

// ---- the turn ----

void HandOut::end_times(Tick now) {
  parts_.turns.want_serving_due(now);
  for (const WaitId id : waits_.expired(now, kEndLimit)) abandon_wait(id);
}

std::optional<Tick> HandOut::next_time() const {
  const std::optional<Tick> turn = parts_.turns.next_time();
  const std::optional<Tick> end = waits_.next_wakeup();
  if (!turn || !end) return turn ? turn : end;
  return std::min(*turn, *end);
}

void HandOut::serve() {
  if (parts_.window.holds_hand_outs()) return;
  if (is_deliverers_turn_) serve_delivery_wait();
  serve_waits(serve_now());
  serve_delivery_wait();
}

void HandOut::fail_waits(const Error& error) {
  for (const WaitId id : waits_.all()) finish_wait(*waits_.find(id), error);
  end_delivery_wait(error);
}

/// A limit holds the tasks of the queue back. The queue is looked at again at the next second or at
/// the end of the pause. No time is set if the limit ends only by an action: an operator ends the
/// pause, or a worker ends a lease.
void HandOut::hold_back(Queue& queue) {
  if (queue.record.settings.paused || queue.awaits_a_lease()) return;
  parts_.turns.serve_later(queue,
                           std::max(HandOutRate::next(parts_.time.now()), queue.paused_until));
}

/// The most tasks of the queue for one answer. If workers of other queues wait, a large answer
/// would delay them for the time of reading its records.
std::size_t HandOut::share_of(const Queue& queue) noexcept {
  const bool do_others_wait = waits_.size() > queue.waits.size();
  if (do_others_wait) shared_until_ = parts_.time.now() + kSharedTicks;
  return parts_.time.now() < shared_until_ ? kShare : std::numeric_limits<std::size_t>::max();
}

/// The queues take turns. Each queue serves its workers until it has handed out kShare tasks.
/// `served` is the number of tasks that this step has handed out before.
void HandOut::serve_waits(std::size_t served) {
  while (served < kServeLimit && parts_.turns.has_to_serve()) {
    Queue& queue = parts_.turns.take_to_serve();
    std::size_t share = serve_next(queue);
    while (share < kShare && queue.to_serve) {
      parts_.turns.take_to_serve(queue);
      share += serve_next(queue);
    }
    served += share;
    parts_.queues.forget_if_unused(queue);
  }
}

/// Serves the workers that wait for the queues of a new request, because they came before it.
void HandOut::serve_waits_before(const LeaseRequest& request) {
  const auto serve = [this](const std::string& name) {
    Queue* const known = parts_.queues.find(name);
    if (known == nullptr) return;
    Queue& queue = *known;
    for (std::size_t served = 0; served < kServeLimit && queue.to_serve;) {
      parts_.turns.take_to_serve(queue);
      served += serve_next(queue);
    }
    parts_.queues.forget_if_unused(queue);
  };
  serve(request.queue);
  for (const std::string& name : request.other_queues) serve(name);
}

/// Serves the worker that has waited longest for a task of this queue. The queue was just taken out
/// of the ring, and returns to it if there may be more work. Returns the number of tasks handed
/// out, where a KiB of payload counts as one more task.
std::size_t HandOut::serve_next(Queue& queue) {
  if (queue.waits.empty() || !queue.has_work()) return 0;
  if (parts_.tasks.allowance(queue) == 0) {
    hold_back(queue);
    return 0;
  }
  WorkerWait& wait = *queue.waits.begin()->second;
  DETENT_CHECK(!wait.queues.empty());
  Queue* from = &queue;
  if (wait.queues.size() > 1) {
    const Result<Queue*> first = most_urgent(wait.queues, &wait);
    if (first) from = *first;
  }
  std::size_t served = 0;
  if (from != nullptr) {
    Result<std::vector<LeasedTask>> tasks = take_ready(*from, from->ready, wait.request, {});
    // Empty: the ready tasks could not be read and are set aside.
    if (!tasks || !tasks->empty()) {
      if (tasks) {
        is_deliverers_turn_ = true;
        for (const LeasedTask& task : *tasks) served += 1 + task.task.payload.data.size() / 1024;
      }
      finish_wait(wait, std::move(tasks));
    }
  }
  if (!queue.waits.empty() && queue.has_work()) parts_.turns.want_serving(queue);
  return served;
}

void HandOut::finish_wait(WorkerWait& wait, Result<std::vector<LeasedTask>> answer) {
  parts_.answers.answer(end_wait(wait), std::move(answer));
}

/// Ends the wait, and returns its callback.
LeaseDone HandOut::end_wait(WorkerWait& wait) {
  WorkerWait taken = waits_.take(wait);
  for (Queue* const queue : taken.queues) parts_.queues.forget_if_unused(*queue);
  return std::move(taken.done);
}

// ---- tasks ----

/// Leases the most urgent tasks of `ready`. It takes no more tasks than the request, the limits of
/// the queue and its share allow. Without the store, the answer is empty if a record cannot be
/// read: the turn sets it aside.
Result<std::vector<LeasedTask>> HandOut::take_ready(Queue& queue, ReadyTasks& ready,
                                                    const LeaseRequest& request,
                                                    const Choice& choice) {
  const std::size_t most = std::min({request.max, parts_.tasks.allowance(queue), share_of(queue)});
  ASSIGN_OR_RETURN(const std::vector<LoadedTask*> picked, pick(queue, ready, most, choice));
  if (picked.empty()) return std::vector<LeasedTask>{};
  ASSIGN_OR_RETURN(std::vector<Result<Task>> records, parts_.records.read_all(picked));
  const auto is_sound = [](const Result<Task>& record) { return record.has_value(); };
  if (choice.source == Source::memory && !std::ranges::all_of(records, is_sound)) {
    return std::vector<LeasedTask>{};
  }
  return hand_out_all(queue, picked, std::move(records), request);
}

/// The first `most` tasks in the order of the queue. Without the store, they end before a task that
/// is not at the head in memory, or that has a pending change.
Result<std::vector<LoadedTask*>> HandOut::pick(Queue& queue, ReadyTasks& ready, std::size_t most,
                                               const Choice& choice) {
  std::vector<LoadedTask*> picked;
  auto it = ready.in_memory.begin();
  while (picked.size() < most) {
    if (it != ready.in_memory.end() && ready.is_at_head(**it)) {
      if (choice.until != nullptr && ReadyOrder()(choice.until, *it)) break;
      if (choice.source == Source::memory && parts_.records.is_changing((*it)->id())) break;
      picked.push_back(*it++);
      continue;
    }
    if (choice.source == Source::memory || !ready.is_spilled()) break;
    TRY(parts_.window.load_head(queue, ready));
    // The loaded tasks may come before `it`, so continue behind the last picked task.
    it = picked.empty() ? ready.in_memory.begin() : std::next(ready.in_memory.find(picked.back()));
  }
  return picked;
}

/// Leases the picked tasks, as many as fit into one answer. Tasks whose records could not be read
/// are set aside.
std::vector<LeasedTask> HandOut::hand_out_all(Queue& queue, const std::vector<LoadedTask*>& picked,
                                              std::vector<Result<Task>> records,
                                              const LeaseRequest& request) {
  std::vector<LeasedTask> leased;
  DETENT_CHECK(records.size() == picked.size());
  leased.reserve(picked.size());
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < picked.size(); ++i) {
    if (!records[i]) {
      parts_.tasks.set_aside(*picked[i]);
      continue;
    }
    bytes += records[i]->payload.data.size();
    if (bytes > kMaxLeaseBytes && !leased.empty()) break;
    leased.push_back(hand_out(*picked[i], *std::move(records[i]), request));
  }
  queue.rate.note(leased.size(), parts_.time.now());
  parts_.tasks.note_limits(queue);
  return leased;
}

LeasedTask HandOut::hand_out(LoadedTask& loaded, Task task, const LeaseRequest& request) {
  DETENT_CHECK(epoch_ != 0);
  DETENT_CHECK(task.id == loaded.id() && task.standing == Standing::live);
  DETENT_CHECK(task.attempts == loaded.attempts);
  const WallTime now = parts_.time.wall_now();
  const milliseconds lateness = std::max(now - loaded.due_at, milliseconds{0});
  parts_.news.count_hand_out(*loaded.queue, lateness);
  parts_.news.tell(loaded.id(), *loaded.queue, TaskEvent::leased,
                   state_after(loaded.state, TaskVerb::lease));
  const milliseconds timeout =
      request.visibility_timeout.value_or(task.rules.visibility_timeout.value_or(
          loaded.queue->record.settings.visibility_timeout.value_or(kDefaultVisibilityTimeout)));
  const std::uint64_t number = TaskId{last_lease_}.on_shard(shard_).next().value;
  DETENT_CHECK(number > last_lease_);
  last_lease_ = number;
  parts_.tasks.open_lease(last_lease_,
                          {.task = &loaded,
                           .epoch = epoch_,
                           .since = now,
                           .worker = request.worker,
                           .run_out = request.run_out,
                           .late = parts_.lateness.note_hand_out(loaded)},
                          parts_.time.tick_after(timeout));
  return LeasedTask{.task = std::move(task),
                    .lease = {.epoch = epoch_, .number = loaded.lease},
                    .attempt = loaded.attempts + 1,
                    .lease_until = parts_.time.wall_after(timeout),
                    .lateness = lateness};
}

// ---- deliveries ----

Result<std::vector<Delivery>> HandOut::lease_deliveries(const DeliveryRequest& request,
                                                        const HeldWebhooks& held) {
  if (parts_.writer.stopped_by()) return *parts_.writer.stopped_by();
  TRY(validate(request));
  if (parts_.window.holds_hand_outs()) return std::vector<Delivery>{};
  LeaseRequest lease{
      .queue = {}, .visibility_timeout = request.visibility_timeout, .worker = request.worker};
  parts_.turns.release_held(held);
  std::vector<Delivery> deliveries;
  while (deliveries.size() < request.max && parts_.turns.to_deliver() > 0) {
    Queue& queue = parts_.turns.take_to_deliver();
    const bool is_plain_held = is_held(queue, held);
    if (is_plain_held && queue.webhooks.empty()) {
      parts_.turns.hold(queue);
      continue;
    }
    if (!queue.has_deliveries()) continue;
    if (parts_.tasks.allowance(queue) == 0) {
      hold_back(queue);
      continue;
    }
    const std::size_t left = request.max - deliveries.size();
    lease.max = std::max<std::size_t>(1, left / (parts_.turns.to_deliver() + 1));
    Result<std::vector<LeasedTask>> tasks = is_plain_held
                                                ? take_ready(queue, queue.webhooks, lease, {})
                                                : take_deliveries(queue, lease);
    parts_.turns.want_delivery(queue);  // behind the others
    if (!tasks && deliveries.empty()) return std::move(tasks).error();
    // The tasks of earlier queues are leased already, so answer with them.
    if (!tasks) break;
    const std::optional<QueueWebhook>& webhook = queue.record.settings.webhook;
    for (LeasedTask& task : *tasks) {
      DETENT_CHECK(webhook || !task.task.webhook.empty());
      std::string url = task.task.webhook.empty() ? webhook->url : task.task.webhook;
      deliveries.push_back({.leased = std::move(task), .url = std::move(url)});
      if (webhook) deliveries.back().keys = webhook->keys;
    }
  }
  if (!deliveries.empty()) is_deliverers_turn_ = false;
  return deliveries;
}

void HandOut::lease_deliveries_or_wait(const DeliveryRequest& request, const HeldWebhooks& held,
                                       DeliveriesDone done) {
  end_delivery_wait(std::vector<Delivery>{});
  Result<std::vector<Delivery>> ready = lease_deliveries(request, held);
  if (!ready || !ready->empty() || waits_.have_ended()) {
    parts_.answers.answer(std::move(done), std::move(ready));
    return;
  }
  DETENT_CHECK(delivery_wait_ == nullptr);
  delivery_wait_ = std::make_unique<DeliveryWait>(DeliveryWait{request, held, std::move(done)});
}

/// The most urgent tasks with a webhook. Empty if the first task could not be read or is no longer
/// at the head.
Result<std::vector<LeasedTask>> HandOut::take_deliveries(Queue& queue,
                                                         const LeaseRequest& request) {
  if (!queue.record.settings.webhook) return take_ready(queue, queue.webhooks, request, {});
  std::vector<LeasedTask> all;
  LeaseRequest rest = request;
  while (rest.max > 0) {
    Result<std::vector<LeasedTask>> run = take_run(queue, rest);
    // Tasks that are leased already must be in the answer.
    if (!run && all.empty()) return run;
    if (!run || run->empty()) break;
    rest.max -= run->size();
    std::ranges::move(*run, std::back_inserter(all));
  }
  return all;
}

/// One step of merging the two orders: takes from the order with the more urgent head, up to the
/// head of the other order.
Result<std::vector<LeasedTask>> HandOut::take_run(Queue& queue, const LeaseRequest& request) {
  ASSIGN_OR_RETURN(const LoadedTask* const plain, parts_.window.head_of(queue, queue.ready));
  ASSIGN_OR_RETURN(const LoadedTask* const own, parts_.window.head_of(queue, queue.webhooks));
  const bool is_own = plain == nullptr || (own != nullptr && ReadyOrder()(own, plain));
  return take_ready(queue, is_own ? queue.webhooks : queue.ready, request,
                    {.until = is_own ? plain : own});
}

void HandOut::serve_delivery_wait() {
  if (delivery_wait_ == nullptr || parts_.turns.to_deliver() == 0) return;
  Result<std::vector<Delivery>> deliveries =
      lease_deliveries(delivery_wait_->request, delivery_wait_->held);
  if (!deliveries || !deliveries->empty()) end_delivery_wait(std::move(deliveries));
}

void HandOut::end_delivery_wait(Result<std::vector<Delivery>> answer) {
  if (delivery_wait_ == nullptr) return;
  const std::unique_ptr<DeliveryWait> wait = std::move(delivery_wait_);
  parts_.answers.answer(std::move(wait->done), std::move(answer));
}

}  // namespace detent
