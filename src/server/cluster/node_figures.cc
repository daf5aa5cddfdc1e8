#include "server/cluster/node_figures.h"

#include <algorithm>
#include <variant>

#include "gateway/metrics_sum.h"
#include "server/http/http_reply.h"
#include "server/http/metrics.h"

namespace detent::server {

/// Collects figures of several engines or nodes. It gives the result when its last reference is
/// gone, so a missing answer is noticed too. Thread-safe.
class NodeFigures::Gathering {
 public:
  explicit Gathering(Take take) : take_(std::move(take)) {}
  ~Gathering() { take_(is_whole_ ? std::optional(std::move(sum_)) : std::nullopt); }
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

  void add(const ClusterFigures& figures) {
    const MutexLock lock(mutex_);
    sum_.add(figures);
  }
  void fail() {
    const MutexLock lock(mutex_);
    is_whole_ = false;
  }
  void take_answer(const net::CallOutcome& outcome) {
    const auto* const answer = std::get_if<net::HttpResponse>(&outcome);
    if (answer == nullptr || answer->status != 200) return fail();
    const Result<ClusterFigures> figures = decode_figures(answer->body);
    if (!figures) return fail();
    add(*figures);
  }

 private:
  Take take_;
  Mutex mutex_;
  ClusterFigures sum_;    // guarded by mutex_, except in the destructor
  bool is_whole_ = true;  // likewise
};

void NodeFigures::KnownBacklog::note(const ClusterFigures& figures) {
  const MutexLock lock(mutex_);
  for (const auto& [lease, ready] : figures.of) ready_[lease.shard] = ready;
}

std::optional<std::uint64_t> NodeFigures::KnownBacklog::of(ShardNumber shard) const {
  const MutexLock lock(mutex_);
  const auto it = ready_.find(shard);
  return it == ready_.end() ? std::nullopt : std::optional(it->second);
}

NodeFigures::NodeFigures(ClusterShards& shards, const Routes& here, const PeerLink& link)
    : shards_(shards), here_(here), link_(link) {}

void NodeFigures::set_nodes(std::vector<std::string> addresses) {
  std::vector<PeerLink::CallNumber> to_the_gone;
  {
    const MutexLock lock(mutex_);
    addresses_ = std::move(addresses);
    std::erase_if(calls_, [&](const auto& call) DETENT_REQUIRES(mutex_) {
      const bool is_gone = std::ranges::count(addresses_, call.first) == 0;
      if (is_gone) to_the_gone.push_back(call.second);
      return is_gone;
    });
  }
  for (const PeerLink::CallNumber number : to_the_gone) link_.abandon(number);
}

std::vector<std::string> NodeFigures::addresses() const {
  const MutexLock lock(mutex_);
  return addresses_;
}

void NodeFigures::ask(Take take) {
  const auto gathering = std::make_shared<Gathering>(
      [backlog = backlog_, take = std::move(take)](std::optional<ClusterFigures> figures) mutable {
        if (figures) backlog->note(*figures);
        take(std::move(figures));
      });
  gather_here(gathering);
  std::vector<std::pair<std::string, PeerLink::CallNumber>> calls;
  for (const std::string& address : addresses()) {
    const Result<PeerLink::CallNumber> call = link_.call(
        address,
        {.method = "GET", .target = std::string(kFiguresTarget), .headers = {}, .body = {}},
        [gathering](const net::CallOutcome& outcome) { gathering->take_answer(outcome); });
    if (!call) {
      gathering->fail();
      continue;
    }
    calls.emplace_back(address, *call);
  }
  const MutexLock lock(mutex_);
  calls_.insert(calls_.end(), calls.begin(), calls.end());
  const std::size_t most = kMostCallsOfNode * addresses_.size();
  const std::size_t old = calls_.size() - std::min(calls_.size(), most);
  calls_.erase(calls_.begin(), calls_.begin() + static_cast<std::ptrdiff_t>(old));
}

void NodeFigures::gather_here(const std::shared_ptr<Gathering>& gathering) const {
  for (const auto& shard : shards_.serving()) {
    shard->ask_figures([gathering](const ClusterFigures& figures) { gathering->add(figures); });
  }
}

void NodeFigures::answer(const net::Responder& responder) const {
  gather_here(std::make_shared<Gathering>([responder](std::optional<ClusterFigures> figures) {
    responder.send({.status = 200,
                    .content_type = "application/octet-stream",
                    .body = encode_figures(*figures)});
  }));
}

void NodeFigures::answer_metrics(const net::Responder& responder) const {
  shards_.ask_pages([responder, page = here_.node_page()](std::vector<std::string> pages) {
    pages.push_back(page);
    responder.send({.status = 200,
                    .content_type = std::string(kMetricsText),
                    .body = gateway::sum_metrics(pages)});
  });
}

}  // namespace detent::server
