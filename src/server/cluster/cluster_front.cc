#include "server/cluster/cluster_front.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "detent/check.h"
#include "net/http_server/exchange.h"
#include "net/http_server/local_exchange.h"
#include "protocol/json/json_writer.h"
#include "protocol/json/queue_codec.h"
#include "server/cluster/forwarded_request.h"
#include "server/http/http_reply.h"

namespace detent::server {
namespace {

std::string_view path_of(const net::HttpRequest& request) noexcept {
  return std::string_view(request.target).substr(0, request.target.find('?'));
}

/// Returns true for a path that may change the settings of a queue, remove a queue, or do so among
/// other changes.
bool may_change_partitions(std::string_view path) noexcept {
  constexpr std::string_view kQueues = "/v1/queues/";
  if (path == "/v1/restore") return true;
  return path.starts_with(kQueues) && path.find('/', kQueues.size()) == std::string_view::npos;
}

/// The queues whose partitions differ.
std::vector<std::string> changed_queues(const PartitionedQueues& before,
                                        const PartitionedQueues& now) {
  std::vector<std::pair<std::string, std::uint32_t>> changed;
  std::ranges::set_symmetric_difference(before, now, std::back_inserter(changed));
  std::vector<std::string> queues;
  for (auto& [queue, partitions] : changed) queues.push_back(std::move(queue));
  // A queue appears twice if its number has changed. This is not ranges::unique, because clang 14
  // cannot compile its subrange.
  queues.erase(std::unique(queues.begin(), queues.end()), queues.end());
  return queues;
}

}  // namespace

ClusterFront::ClusterFront(ClusterFrontOptions options, ClusterShards& shards, Routes& here,
                           const PeerLink& link, const Clock& clock, std::function<void()> on_stray)
    : options_(std::move(options)),
      shards_(shards),
      here_(here),
      link_(link),
      clock_(clock),
      on_stray_(std::move(on_stray)),
      followers_(std::make_shared<Followers>()),
      peers_({.node = options_.node,
              .max_calls = options_.max_calls_to_a_node,
              .max_all_calls = options_.max_calls_to_all_nodes,
              .node_connections = options_.node_connections},
             link_, clock_, on_stray_,
             [this](gateway::Part part) {
               // The request has no client, so it is never abandoned.
               (void)ask(std::move(part), [](const net::HttpResponse&) { return true; });
             }),
      figures_(shards_, here_, link_),
      shard_map_(std::make_shared<const ShardMap>(ShardMap{.shards = options_.shards})) {}

void ClusterFront::handle(net::HttpRequest request, net::Responder responder) {
  if (!request.header(kSecretHeader).empty()) {
    return answer_peer(std::move(request), std::move(responder));
  }
  drop_headers(request.headers, kOfNodes);
  if (request.method == "HEAD") request.method = "GET";  // the connection leaves the body out
  // The body of a GET has no meaning, and would go to all shards.
  if (request.method == "GET") request.body.clear();
  const std::string_view path = path_of(request);
  if (request.method == "GET" && path == "/readyz") return answer_ready(responder);
  // Callers without permission are refused here, because one request may become a request to each
  // shard.
  if (auto refused = here_.refuse_unread(request)) return responder.send(*std::move(refused));
  if (request.method == "GET" && path == "/metrics") return figures_.answer_metrics(responder);
  if (gateway::is_of_node(request)) return here_.handle(std::move(request), std::move(responder));
  run(std::move(request), std::move(responder));
}

std::optional<net::HttpResponse> ClusterFront::refuse_unread(const net::HttpRequest& head) {
  return link_.is_of_cluster(head) ? std::nullopt : here_.refuse_unread(head);
}

void ClusterFront::run(net::HttpRequest request, net::Responder responder) {
  const bool may_partition = request.method != "GET" && may_change_partitions(path_of(request));
  const std::uint64_t turn = turn_.fetch_add(1, std::memory_order_relaxed);
  const std::shared_ptr<const ShardMap> map = shard_map();
  gateway::Step step = gateway::plan_request(std::move(request), *map, turn);
  if (auto* const answer = std::get_if<net::HttpResponse>(&step)) {
    return responder.send(std::move(*answer));
  }
  const auto after = may_partition ? AfterAnswer::look_again : AfterAnswer::nothing;
  std::make_shared<ForwardedRequest>(*this, std::move(responder), after)
      ->start(std::get<gateway::Plan>(std::move(step)), map);
}

ClusterFront::Abandon ClusterFront::ask(gateway::Part part, Answered answered, WhenSlow slow) {
  const std::shared_ptr<ServedShard> shard = shards_.find(part.shard);
  if (shard && is_sure_of(shard->lease())) {
    return ask_here(shard, std::move(part.request), std::move(answered));
  }
  if (const auto address = node_of(part.shard)) {
    return peers_.ask(*address, std::move(part), std::move(answered), std::move(slow));
  }
  on_stray_();
  answered(http_try_again("no node serves shard " + std::to_string(part.shard) + " at present"));
  return [] {};
}

/// If an answer is held back, or its client has gone, the shard releases its leases.
ClusterFront::Abandon ClusterFront::ask_here(const std::shared_ptr<ServedShard>& shard,
                                             net::HttpRequest request, Answered answered) {
  auto exchange = std::make_shared<net::LocalExchange>(
      [this, lease = shard->lease(),
       answered = std::move(answered)](std::optional<net::HttpResponse> answer) mutable {
        if (!answer) return answered(http_problem(500, net::kNoAnswer));
        if (is_sure_of(lease)) return answered(*std::move(answer));
        answered(not_sure(lease.shard));
        return false;
      });
  const std::weak_ptr<net::LocalExchange> weak = exchange;
  shard->handle(std::move(request), net::Responder(std::move(exchange)));
  // Whom it tells must live so long; not longer, or a shard's own thread might be the last to go.
  return [weak, weak_shard = std::weak_ptr(shard)] {
    const std::shared_ptr<ServedShard> kept = weak_shard.lock();
    if (const auto waiting = weak.lock()) waiting->abandon();
  };
}

/// Answers a request of another node to a shard that should be on this node.
void ClusterFront::answer_peer(net::HttpRequest request, net::Responder responder) {
  if (!link_.is_of_cluster(request)) {
    responder.send(http_problem(403, "this node belongs to another cluster"));
    return;
  }
  if (request.target == kFiguresTarget) return figures_.answer(responder);
  const std::string wait(request.header(kCallHeader));
  if (request.target == kEndWaitTarget) {
    waits_.end(wait);
    responder.send({.status = 200, .body = "{}"});
    return;
  }
  const std::string_view text = request.header(kShardHeader);
  ShardNumber number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || stop != text.data() + text.size()) {
    responder.send(http_problem(400, "a request of a node must name its shard"));
    return;
  }
  const std::shared_ptr<ServedShard> shard = shards_.find(number);
  if (!shard || !is_sure_of(shard->lease())) {
    on_stray_();
    responder.send(
        http_try_again("shard " + std::to_string(number) + " is not open at " + options_.node));
    return;
  }
  const std::string host(request.header(kHostHeader));
  request.peer = std::string(request.header(kPeerHeader));
  drop_headers(request.headers, kOfNodes);
  std::erase_if(request.headers, [](const auto& header) { return header.first == "host"; });
  request.headers.emplace_back("host", host);
  ask_for_peer(wait, shard, std::move(request), std::move(responder));
}

/// A wait ends when the asking node disconnects, or when it says that the wait must end.
void ClusterFront::ask_for_peer(const std::string& wait, const std::shared_ptr<ServedShard>& shard,
                                net::HttpRequest request, net::Responder responder) {
  const auto is_over = std::make_shared<std::atomic<bool>>(false);  // set before it is forgotten
  const auto forget = [this, wait, is_over] {
    is_over->store(true);
    waits_.forget(wait);
  };
  const auto abandon = std::make_shared<Abandon>(
      ask_here(shard, std::move(request), [responder, forget](net::HttpResponse answer) {
        forget();
        return responder.offer(std::move(answer));
      }));
  if (!wait.empty()) {
    waits_.keep(wait, [responder, abandon] {
      (*abandon)();
      responder.send({.status = 200, .body = R"({"tasks":[]})"});
    });
    if (*is_over) waits_.forget(wait);
  }
  responder.on_gone([abandon, forget] {
    forget();
    (*abandon)();
  });
}

void ClusterFront::answer_ready(const net::Responder& responder) const {
  if (is_ready()) return responder.send({.status = 200, .body = R"({"status":"ready"})"});
  responder.send(
      http_try_again("some shards of this node are not open yet, or it cannot reach the "
                     "database"));
}

void ClusterFront::update(ClusterMap map) {
  std::map<ShardNumber, std::string> addresses;
  std::set<std::string> alive;
  std::vector<std::string> others;
  std::vector<std::string> changed;
  {
    const MutexLock lock(mutex_);
    map_ = std::move(map);
    changed = set_partitioned(map_.partitioned);
    for (const Member& member : map_.members) {
      alive.insert(member.address);
      if (member.node != options_.node) others.push_back(member.address);
    }
    for (const ShardOwner& owner : map_.owners) {
      if (auto address = address_of(owner.shard)) addresses[owner.shard] = *std::move(address);
    }
  }
  figures_.set_nodes(std::move(others));
  const auto has_shard = [&](ShardNumber shard, const std::string& address) {
    const auto it = addresses.find(shard);
    return it != addresses.end() && it->second == address;
  };
  peers_.update(has_shard, [&](const std::string& address) { return alive.contains(address); });
  follow(changed);
}

/// The queues that are elsewhere now.
std::vector<std::string> ClusterFront::set_partitioned(PartitionedQueues queues) {
  std::vector<std::string> changed = changed_queues(shard_map_->partitioned, queues);
  if (!changed.empty()) {
    shard_map_ = std::make_shared<const ShardMap>(
        ShardMap{.shards = options_.shards, .partitioned = std::move(queues)});
  }
  return changed;
}

/// Moves waits for tasks of these queues to their new places.
void ClusterFront::follow(const std::vector<std::string>& queues) {
  for (const std::string& queue : queues) {
    for (const std::shared_ptr<ForwardedRequest>& forwarded : followers_->of(queue))
      forwarded->renew();
  }
}

/// Handles the answer to a request that may have moved a queue. The news in the home's answer is
/// applied before the client reads the answer. The next look at the table finds the rest.
void ClusterFront::note_change(const net::HttpResponse& answer) {
  const auto view = json::parse_queue(answer.body);
  if (answer.status == 200 && view) {
    std::vector<std::string> changed;
    {
      const MutexLock lock(mutex_);
      PartitionedQueues queues = shard_map_->partitioned;
      queues.erase(view->stats.queue);
      if (view->settings.partitions > 1) queues[view->stats.queue] = view->settings.partitions;
      changed = set_partitioned(std::move(queues));
    }
    follow(changed);
  }
  on_stray_();
}

bool ClusterFront::is_sure_of(const ShardLease& lease) const {
  const MonotonicTime now = clock_.now();
  const MutexLock lock(mutex_);
  const auto it = map_.held_until.find(lease);
  return it != map_.held_until.end() && now < it->second;
}

std::shared_ptr<const ShardMap> ClusterFront::shard_map() const {
  const MutexLock lock(mutex_);
  return shard_map_;
}

std::optional<std::string> ClusterFront::node_of(ShardNumber shard) const {
  const MutexLock lock(mutex_);
  return address_of(shard);
}

std::optional<std::string> ClusterFront::address_of(ShardNumber shard) const {
  if (shard >= map_.owners.size() || map_.owners[shard].has_run_out) return std::nullopt;
  if (map_.owners[shard].node == options_.node) return std::nullopt;
  const auto member = std::ranges::find(map_.members, map_.owners[shard].node, &Member::node);
  if (member == map_.members.end()) return std::nullopt;
  return member->address;
}

bool ClusterFront::is_ready() const {
  const MonotonicTime now = clock_.now();
  const MutexLock lock(mutex_);
  if (map_.members.empty()) return false;  // no step yet
  return std::ranges::all_of(map_.held_until, [&](const auto& held) {
    return now < held.second && shards_.find(held.first.shard) != nullptr;
  });
}

bool ClusterFront::has_shard(ShardNumber shard) const {
  const MutexLock lock(mutex_);
  return shard < map_.owners.size() && !map_.owners[shard].has_run_out &&
         map_.owners[shard].node == options_.node;
}

NodeCounts ClusterFront::nodes() const {
  const MutexLock lock(mutex_);
  return {.alive = map_.members.size(), .missing = map_.missing.size()};
}

std::string ClusterFront::render() const {
  const MutexLock lock(mutex_);
  std::string body;
  json::JsonWriter writer(body);
  writer.begin_object();
  writer.name("node").string(options_.node);
  writer.name("nodes").begin_array();
  for (const Member& member : map_.members) {
    const auto shards = std::ranges::count(map_.owners, member.node, &ShardOwner::node);
    writer.begin_object();
    writer.name("node").string(member.node).name("address").string(member.address);
    writer.name("shards").number(shards).end_object();
  }
  writer.end_array().name("missing").begin_array();
  for (const MissingMember& member : map_.missing) {
    writer.begin_object();
    writer.name("node").string(member.node).name("address").string(member.address);
    writer.name("missing_ms").number(member.missing_for.count()).end_object();
  }
  writer.end_array().name("shards").begin_array();
  for (const ShardOwner& owner : map_.owners) {
    writer.begin_object().name("shard").number(owner.shard);
    writer.name("node").string_or_null(owner.has_run_out ? "" : owner.node);
    writer.name("epoch").number(owner.epoch);
    const auto ready = owner.has_run_out ? std::nullopt : figures_.backlog_of(owner.shard);
    writer.name("backlog");
    (ready ? writer.number(*ready) : writer.null()).end_object();
  }
  writer.end_array().end_object();
  return body;
}

}  // namespace detent::server
