#include "server/cluster/cluster_shards.h"

#include <chrono>
#include <string>
#include <utility>

#include "gateway/metrics_sum.h"
#include "server/http/http_reply.h"

namespace detent::server {
namespace {

/// How long webhooks that are being called may still take when their shard moves.
constexpr std::chrono::seconds kWebhookGrace{2};

/// Pages on their way; given when the last that has one to add is gone. Thread-safe.
class Pages {
 public:
  using Take = UniqueFunction<void(std::vector<std::string>)>;

  explicit Pages(Take take) : take_(std::move(take)) {}
  ~Pages() { take_(std::move(pages_)); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  void add(std::string page) {
    const MutexLock lock(mutex_);
    pages_.push_back(std::move(page));
  }

 private:
  Take take_;
  Mutex mutex_;
  std::vector<std::string> pages_;  // guarded by mutex_, except in the destructor
};

}  // namespace

// ---- one shard ----------------------------------------------------------------------------------

ServedShard::ServedShard(const ShardLease& lease, const ClusterShardsOptions& options,
                         ShardLog& log, EventHub& events, Clock& clock)
    : lease_(lease),
      node_before_(options.node_before(lease.shard)),
      options_(options),
      log_(log),
      events_(events),
      clock_(clock),
      thread_([this] { run(); }) {}

ServedShard::~ServedShard() {
  close(ShardEnd::stopping);
  thread_.join();
}

void ServedShard::handle(net::HttpRequest request, net::Responder responder) {
  if (!is_serving()) return responder.send(http_try_again("the shard is not open here"));
  if (request.target == kJobsTarget) return parts_.jobs->handle(request, responder);
  parts_.routes->handle(std::move(request), std::move(responder));
}

void ServedShard::close(ShardEnd end) {
  {
    const MutexLock lock(mutex_);
    if (!end_) end_ = end;
  }
  bell_.ring();
}

std::optional<ShardEnd> ServedShard::end() const {
  const MutexLock lock(mutex_);
  return end_;
}

bool ServedShard::is_serving() const { return is(State::serving); }
bool ServedShard::is_closed() const { return is(State::closed); }

bool ServedShard::is(State state) const {
  const MutexLock lock(mutex_);
  return state_ == state;
}

void ServedShard::become(State state) {
  const MutexLock lock(mutex_);
  state_ = state;
}

void ServedShard::run() {
  const Result<void> opened = open();
  if (opened) {
    log_.serving(lease_, node_before_);
    become(State::serving);
    while (!end()) clock_.wait(bell_, std::nullopt);
    become(State::closing);
  } else {
    log_.not_opened(lease_, opened.error().message);
  }
  stop();
  log_.closed(lease_, opened ? end().value_or(ShardEnd::stopping) : ShardEnd::not_opened);
  become(State::closed);
}

Result<void> ServedShard::open() {
  parts_.feed = options_.new_feed();
  ASSIGN_OR_RETURN(OpenEngine opened, options_.open(lease_, *parts_.feed));
  EngineEvents events;
  events.on_stopped = [this](const Error& error) { fail(error); };
  parts_.engine = std::make_unique<EngineThread>(std::move(opened), clock_, std::move(events));
  ASSIGN_OR_RETURN(parts_.webhooks, Webhooks::start(options_.webhooks, *parts_.engine, clock_));
  parts_.routes = std::make_unique<Routes>(*parts_.engine, events_, clock_, options_.routes);
  parts_.routes->show_deliveries(parts_.webhooks->deliverer());
  parts_.jobs = std::make_unique<ShardJobs>(*parts_.engine, clock_, options_.routes.tracer);
  return ok();
}

void ServedShard::fail(const Error& error) {
  log_.failed(lease_, error.message);
  close(ShardEnd::failed);
}

void ServedShard::ask_figures(UniqueFunction<void(ClusterFigures)> take) {
  // One that stops is left out of the figures: `take` goes away with the command.
  (void)parts_.engine->post([take = std::move(take), lease = lease_](const Engine& engine) mutable {
    ClusterFigures figures{.of = {}, .sum = engine.stats(0)};
    figures.of.push_back({lease, figures.sum.all.ready});
    figures.sum.epoch = 0;
    take(std::move(figures));
  });
}

void ServedShard::ask_page(MetricsPage::Take take) {
  if (!page_.wait(std::move(take))) return;
  const bool is_asked =
      parts_.routes->ask_page([this](std::string page) { page_.note(std::move(page)); });
  if (!is_asked) page_.note(page_.last());
}

void ServedShard::ask_whether_it_works(UniqueFunction<void()> works) {
  parts_.engine->post_end(
      [works = std::move(works)](Engine& engine) mutable {
        (void)engine.get(TaskId{});  // of no task, so it is looked for in the store
        works();
      },
      EngineThread::own_line());
}

void ServedShard::end_waits() {
  parts_.engine->post_end([](Engine& engine) { engine.end_waits(); });
}

void ServedShard::stop() {
  if (!parts_.engine) return page_.note_last("");
  end_waits();
  if (parts_.webhooks) parts_.webhooks->stop(kWebhookGrace);
  const auto note_last = [this](std::string page) { page_.note_last(std::move(page)); };
  if (!parts_.routes || !parts_.routes->ask_page(note_last)) page_.note_last(page_.last());
  parts_.engine->stop();
}

// ---- all of them --------------------------------------------------------------------------------

ClusterShards::ClusterShards(ClusterShardsOptions options, EventHub& events, Clock& clock)
    : options_(std::move(options)),
      events_(events),
      clock_(clock),
      log_(clock, options_.on_next_log_line) {}

void ClusterShards::open(const ShardLease& lease) {
  auto shard = std::make_shared<ServedShard>(lease, options_, log_, events_, clock_);
  const MutexLock lock(mutex_);
  shards_[lease.shard].swap(shard);
  if (shard) note_ended(*shard);  // one of before has come to its end
}

void ClusterShards::close(ShardNumber shard) {
  const bool is_stopping = is_stopping_.load(std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  shards_.at(shard)->close(is_stopping ? ShardEnd::stopping : ShardEnd::moved);
}

bool ClusterShards::is_closed(ShardNumber shard) {
  const MutexLock lock(mutex_);
  return shards_.at(shard)->is_closed();
}

void ClusterShards::drop(ShardNumber shard) {
  const MutexLock lock(mutex_);
  const auto it = shards_.find(shard);
  if (!it->second->is_opening() && !it->second->is_closed()) {
    log_.lost(it->second->lease());
  }
  it->second->close(ShardEnd::lost);
  dropped_.push_back(std::move(it->second));
  shards_.erase(it);
}

std::shared_ptr<ServedShard> ClusterShards::find(ShardNumber shard) const {
  const MutexLock lock(mutex_);
  const auto it = shards_.find(shard);
  return it != shards_.end() && it->second->is_serving() ? it->second : nullptr;
}

std::vector<std::shared_ptr<ServedShard>> ClusterShards::serving() const {
  const MutexLock lock(mutex_);
  std::vector<std::shared_ptr<ServedShard>> open;
  for (const auto& [number, shard] : shards_) {
    if (shard->is_serving()) open.push_back(shard);
  }
  return open;
}

bool ClusterShards::sweep() {
  std::vector<std::shared_ptr<ServedShard>> ended;
  const MutexLock lock(mutex_);
  std::erase_if(dropped_, [&](std::shared_ptr<ServedShard>& shard) DETENT_REQUIRES(mutex_) {
    if (!shard->is_closed()) return false;
    note_ended(*shard);
    ended.push_back(std::move(shard));
    return true;
  });
  return dropped_.empty();
}

void ClusterShards::end() {
  std::map<ShardNumber, std::shared_ptr<ServedShard>> shards;
  std::vector<std::shared_ptr<ServedShard>> dropped;
  const MutexLock lock(mutex_);
  shards.swap(shards_);
  dropped.swap(dropped_);
}

void ClusterShards::note_ended(const ServedShard& shard) {
  counted_by_ended_ = gateway::sum_metrics({counted_by_ended_, shard.last_page()},
                                           gateway::Families::without_gauges);
}

std::vector<std::shared_ptr<ServedShard>> ClusterShards::with_pages() const {
  std::vector<std::shared_ptr<ServedShard>> all = dropped_;
  for (const auto& [number, shard] : shards_) all.push_back(shard);
  std::erase_if(all, [](const auto& shard) { return shard->is_opening(); });
  return all;
}

void ClusterShards::ask_pages(UniqueFunction<void(std::vector<std::string>)> take) {
  const auto pages = std::make_shared<Pages>(std::move(take));
  std::vector<std::shared_ptr<ServedShard>> all;
  {
    const MutexLock lock(mutex_);
    all = with_pages();
    pages->add(counted_by_ended_);
  }
  for (const auto& shard : all) {
    shard->ask_page([pages](std::string page) { pages->add(std::move(page)); });
  }
}

void ClusterShards::look_at_pages() {
  std::vector<std::shared_ptr<ServedShard>> all;
  {
    const MutexLock lock(mutex_);
    all = with_pages();
  }
  for (const auto& shard : all) shard->look_at_page();
}

}  // namespace detent::server
