#include "server/cluster/cluster_node.h"

#include <algorithm>
#include <utility>

#include "base/log/log.h"
#include "base/rng.h"
#include "base/wall_time.h"
#include "server/http/http_reply.h"

namespace detent::server {
namespace {

/// How often the rows of all shards are read when they were not as known.
constexpr std::chrono::milliseconds kLookPeriod{200};
/// Where nodes ask each other for their changes.
constexpr std::string_view kChangesTarget = "/v1/cluster/changes?after=";
/// How often it is looked whether the shards have been closed, at a stop.
constexpr std::chrono::milliseconds kClosePeriod{20};

/// Nodes trust each other, and pass long polls and large lists on.
net::HttpCallerOptions caller_options(const std::string& ca_file) {
  return {.connect_timeout = std::chrono::seconds{2},
          .answer_timeout = std::chrono::seconds{90},
          .body_timeout = std::chrono::seconds{30},
          .total_timeout = std::chrono::seconds{150},
          .max_body_bytes = std::size_t{64} << 20,
          .wants_whole_answers = true,
          .max_idle_connections = 256,
          .ca_file = ca_file};
}

RoutesOptions shard_routes(RoutesOptions options) {
  options.is_shard = true;
  return options;
}

/// Runs something when the last that has a part in it is gone.
class Finally {
 public:
  explicit Finally(UniqueFunction<void()> run) : run_(std::move(run)) {}
  ~Finally() { run_(); }
  Finally(const Finally&) = delete;
  Finally& operator=(const Finally&) = delete;

 private:
  UniqueFunction<void()> run_;
};

}  // namespace

Result<std::unique_ptr<ClusterNode>> ClusterNode::start(ClusterNodeOptions options,
                                                        std::unique_ptr<LeaseTable> table,
                                                        Clock& clock) {
  std::unique_ptr<ClusterNode> node(new ClusterNode(std::move(options), std::move(table), clock));
  TRY(node->make_caller());
  node->thread_ = Thread([self = node.get()] { self->run(); });
  return node;
}

ClusterNode::ClusterNode(ClusterNodeOptions options, std::unique_ptr<LeaseTable> table,
                         Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      table_(std::move(table)),
      changes_(
          [this](const std::string& address, const std::string& after,
                 NodeChanges::Answered answered) {
            ask_changes(address, after, std::move(answered));
          },
          clock, Rng(random_seed()).next()),
      events_([this](auto take) { return ask_figures(std::move(take)); }, changes_, clock),
      here_(events_, clock, routes_options()),
      shards_({.open = options_.open,
               .new_feed = [this] { return changes_.new_feed(); },
               .routes = shard_routes(options_.routes),
               .webhooks = options_.webhooks,
               .node_before = [this](ShardNumber shard) { return node_before(shard); },
               .on_next_log_line = [this] { bell_.ring(); }},
              events_, clock),
      keeper_(*table_, shards_, clock, options_.me, options_.seed) {}

bool ClusterNode::ask_figures(UniqueFunction<void(std::optional<EngineStats>)> take) {
  NodeFigures* const figures = figures_.load(std::memory_order_acquire);
  if (figures == nullptr) return false;
  figures->ask([take = std::move(take)](std::optional<ClusterFigures> all) mutable {
    if (!all) return take(std::nullopt);
    take(std::move(*all).stats());
  });
  return true;
}

bool ClusterNode::ask_figures_for_alerts(UniqueFunction<void(std::optional<EngineStats>)> take) {
  const bool is_cut_off = is_cut_off_.load(std::memory_order_relaxed);
  front_->figures().ask([last = last_figures_, shards = table_->shards(), is_cut_off,
                         take = std::move(take)](std::optional<ClusterFigures> all) mutable {
    std::optional<EngineStats> stats;
    {
      const MutexLock lock(last->mutex);
      const bool is_whole = all && all->of.size() == shards;
      if (is_whole) last->stats = std::move(*all).stats();
      stats = last->stats;
    }
    if (!stats && is_cut_off) stats.emplace();
    if (stats) stats->is_stopped = is_cut_off;
    take(std::move(stats));
  });
  return true;
}

/// Of the routes that need no shard.
RoutesOptions ClusterNode::routes_options() {
  RoutesOptions options = options_.routes;
  options.render_cluster = [this] { return front_->render(); };
  options.process_figures = [this] { return process_figures(); };
  return options;
}

ProcessFigures ClusterNode::process_figures() const {
  ProcessFigures figures = read_process_figures(options_.memory_bytes);
  figures.nodes = front_->nodes();
  figures.is_store_reached = !is_cut_off_.load(std::memory_order_relaxed);
  return figures;
}

Result<void> ClusterNode::make_caller() {
  const auto allow_all = [](const net::IpAddress&, std::uint16_t) { return ok(); };
  ASSIGN_OR_RETURN(caller_,
                   net::HttpCaller::start(caller_options(options_.ca_file), resolver_, allow_all));
  const auto look_again = [this] {
    if (!has_strayed_.exchange(true, std::memory_order_relaxed)) bell_.ring();
  };
  link_.emplace(PeerLinkOptions{.scheme = options_.scheme, .secret = options_.secret}, *caller_);
  front_ = std::make_unique<ClusterFront>(
      ClusterFrontOptions{.shards = table_->shards(),
                          .node = options_.me.node,
                          .max_calls_to_all_nodes = options_.max_peer_calls,
                          .node_connections = options_.http_connections},
      shards_, here_, *link_, clock_, look_again);
  figures_.store(&front_->figures(), std::memory_order_release);
  jobs_ = std::make_unique<ClusterJobShards>(*front_);
  job_shards_ = std::make_unique<NodeShards>(*jobs_, clock_);
  return ok();
}

void ClusterNode::handle(net::HttpRequest request, net::Responder responder) {
  const std::string_view target = request.target;
  const bool is_of_node = target.starts_with(kChangesTarget) && link_->is_of_cluster(request);
  if (is_of_node) return changes_.answer(target.substr(kChangesTarget.size()), responder);
  front_->handle(std::move(request), std::move(responder));
}

void ClusterNode::ask_changes(const std::string& address, const std::string& after,
                              NodeChanges::Answered answered) {
  const auto taker = std::make_shared<NodeChanges::Answered>(std::move(answered));
  const Result<PeerLink::CallNumber> asked = link_->call(
      address,
      {.method = "GET", .target = std::string(kChangesTarget) + after, .headers = {}, .body = {}},
      [taker](net::CallOutcome outcome) {
        auto* const answer = std::get_if<net::HttpResponse>(&outcome);
        if (answer == nullptr || answer->status != 200) return (*taker)(std::nullopt);
        (*taker)(std::move(answer->body));
      });
  if (!asked) (*taker)(std::nullopt);
}

Result<void> ClusterNode::start_beanstalk(net::StreamServerOptions options) {
  ASSIGN_OR_RETURN(beanstalk_, BeanstalkServer::start(std::move(options), *job_shards_, clock_));
  return ok();
}

ClusterNode::~ClusterNode() {
  stop();
  shards_.end();    // with answers for the front and for jobs_, if one outlived the grace
  caller_.reset();  // with the questions under way, which refer to the front
}

Result<void> ClusterNode::reload_webhook_keys() {
  for (const auto& shard : shards_.serving()) TRY(shard->reload_webhook_keys());
  return ok();
}

void ClusterNode::check_again() {
  events_.check_again();
  for (const auto& shard : shards_.serving()) shard->check_again();
}

void ClusterNode::ask_whether_it_works(UniqueFunction<void()> works) {
  const auto asked = std::make_shared<Finally>(std::move(works));
  job_shards_->run([asked] {});
  for (const auto& shard : shards_.serving()) shard->ask_whether_it_works([asked] {});
}

void ClusterNode::end_waits() {
  events_.end_streams();
  job_shards_->end_waits();
  for (const auto& shard : shards_.serving()) shard->end_waits();
}

/// Returns when the leases of the clients have been given back, or the attempts are used up.
void ClusterNode::stop_beanstalk() {
  if (!beanstalk_) return;
  beanstalk_->stop(kBeanstalkGrace);
  const auto is_behind_closes = std::make_shared<std::atomic<bool>>(false);
  job_shards_->run([is_behind_closes] { *is_behind_closes = true; });
  const MonotonicTime until = clock_.now() + kBeanstalkGrace;
  while (!(*is_behind_closes && job_shards_->has_given_back() && jobs_->is_idle()) &&
         clock_.now() < until) {
    Doorbell nobody_rings;
    clock_.wait(nobody_rings, clock_.now() + kClosePeriod);
  }
}

void ClusterNode::stop() {
  stop_beanstalk();
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  bell_.ring();
  const MutexLock lock(joining_);
  thread_.join();
  events_.stop();
  if (job_shards_) job_shards_->stop();
}

bool ClusterNode::is_stopping() const {
  const MutexLock lock(mutex_);
  return is_stopping_;
}

void ClusterNode::run() {
  if (auto owners = table_->owners()) owners_ = *std::move(owners);  // for node_before()
  MonotonicTime next_look = clock_.now();
  while (!is_stopping()) {
    const bool is_time = clock_.now() >= keeper_.next_step();
    if (is_time) step();
    if (is_time || clock_.now() >= next_look) {
      look();
      next_look = clock_.now() + kLookPeriod;
    }
    shards_.log().write();
    const bool has_strayed = has_strayed_.load(std::memory_order_relaxed);
    const MonotonicTime next =
        has_strayed ? std::min(next_look, keeper_.next_step()) : keeper_.next_step();
    clock_.wait(bell_, std::min(next, shards_.log().next_line().value_or(next)));
  }
  keeper_.retire();
  shards_.expect_stop();
  for (const MonotonicTime until = clock_.now() + kStopGrace;
       !(keeper_.is_empty() && shards_.sweep()) && clock_.now() < until;) {
    step();
    look();
    Doorbell nobody_rings;
    clock_.wait(nobody_rings, clock_.now() + kClosePeriod);
  }
  // Else the others see it leave when its beats stop.
  (void)table_->leave(options_.me);
  shards_.log().write_all();
}

void ClusterNode::step() {
  note(keeper_.step());
  note_missing();
  shards_.sweep();
  shards_.look_at_pages();
}

/// Tells the front how things stand, as far as that can be known.
void ClusterNode::look() {
  has_strayed_.store(false, std::memory_order_relaxed);
  Result<std::vector<ShardOwner>> owners = table_->owners();
  const Result<std::vector<QueuePartitions>> partitioned = table_->partitioned();
  if (owners && partitioned) {  // or both as they were: else the map would send keys to the home
    owners_ = *std::move(owners);
    partitioned_ = as_homes_say(*partitioned, table_->shards());
  }
  ClusterMap map{.members = keeper_.members(),
                 .owners = owners_,
                 .held_until = {},
                 .partitioned = partitioned_,
                 .missing = keeper_.missing()};
  for (const ShardLease& lease : keeper_.held()) {
    if (const auto until = keeper_.held_until(lease)) map.held_until[lease] = *until;
  }
  std::vector<std::string> others;
  for (const Member& member : map.members) {
    if (member.node != options_.me.node) others.push_back(member.address);
  }
  changes_.set_nodes(others);
  front_->update(std::move(map));
}

/// The owner of the last look, which was before the keeper took the shard.
std::string ClusterNode::node_before(ShardNumber shard) const {
  const auto owner = std::ranges::find(owners_, shard, &ShardOwner::shard);
  if (owner == owners_.end() || owner->node == options_.me.node) return "";
  return owner->node;
}

/// Each node says once of each that another is missing, or that it is so no more. After an outage
/// of the database, the other nodes get a lease to come back.
void ClusterNode::note_missing() {
  if (clock_.now() < answers_since_ + table_->lease_length()) return;
  std::set<std::string> now;
  for (const MissingMember& member : keeper_.missing()) {
    now.insert(member.node);
    if (missing_.contains(member.node)) continue;
    const auto silent = member.missing_for + table_->lease_length();
    log_warning("a node is missing: it was killed, or it cannot reach the database",
                {{"node", member.node},
                 {"address", member.address},
                 {"silent", show_duration(std::chrono::floor<std::chrono::seconds>(silent))},
                 {"action", "start the node again; until then, other nodes serve its shards"}});
  }
  for (const std::string& node : missing_) {
    if (!now.contains(node)) log_info("a missing node is back", {{"node", node}});
  }
  missing_ = std::move(now);
}

void ClusterNode::note(const Result<void>& stepped) {
  const MonotonicTime now = clock_.now();
  is_cut_off_.store(!stepped, std::memory_order_relaxed);
  if (stepped) {
    if (!cut_off_since_) return;
    log_info("the cluster's database answers again",
             {{"after", shown_since(*cut_off_since_, now)}});
    cut_off_since_.reset();
    cut_off_pace_ = {};
    answers_since_ = now;
    return;
  }
  if (!cut_off_since_) cut_off_since_ = now;
  if (!cut_off_pace_.is_worth_a_line("", now)) return;
  log_error("the cluster's database does not answer",
            {{"cause", stepped.error().message},
             {"since", shown_since(*cut_off_since_, now)},
             {"action", "check the database; the node continues by itself when it answers"}});
}

}  // namespace detent::server
