#include "server/cluster_front.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "detent/check.h"
#include "gateway/metrics_sum.h"
#include "net/local_exchange.h"
#include "protocol/json/json_writer.h"
#include "server/access_token.h"
#include "server/http_reply.h"

namespace detent::server {
namespace {

constexpr std::string_view kShardHeader = "detent-shard";
constexpr std::string_view kSecretHeader = "detent-cluster";
constexpr std::string_view kHostHeader = "detent-host";  // as the client gave it
constexpr std::string_view kPeerHeader = "detent-peer";  // the client's address
/// What nodes ask each other besides requests of clients.
constexpr std::string_view kFiguresTarget = "/v1/cluster/figures";

/// Of one connection, not of the request; and those that are for nodes only.
constexpr std::array<std::string_view, 11> kOfTheConnection{"connection",
                                                            "content-length",
                                                            "expect",
                                                            "host",
                                                            "keep-alive",
                                                            "te",
                                                            "transfer-encoding",
                                                            "upgrade",
                                                            "trailer",
                                                            "proxy-connection",
                                                            "proxy-authorization"};
constexpr std::array<std::string_view, 4> kOfNodes{kShardHeader, kSecretHeader, kHostHeader,
                                                   kPeerHeader};

void drop_headers(net::HttpHeaders& headers, std::span<const std::string_view> names) {
  std::erase_if(headers, [names](const auto& header) {
    return std::ranges::find(names, header.first) != names.end();
  });
}

net::HttpResponse not_sure(ShardNumber shard) {
  return http_try_again("shard " + std::to_string(shard) +
                        " is about to change hands: what was asked may have been done");
}

/// Takes equally long whatever differs.
bool is_same(std::string_view secret, std::string_view other) noexcept {
  return is_equal(hash_token(secret), hash_token(other));
}

std::string_view path_of(const net::HttpRequest& request) noexcept {
  return std::string_view(request.target).substr(0, request.target.find('?'));
}

}  // namespace

/// One client's request on its way: the questions of a plan, until all are answered.
class ClusterFront::Errand final : public std::enable_shared_from_this<Errand> {
 public:
  Errand(ClusterFront& front, net::Responder responder)
      : front_(front), responder_(std::move(responder)) {}

  void start(gateway::Plan plan) {
    responder_.on_gone([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->abandon();
    });
    ask(std::move(plan));
  }

 private:
  void ask(gateway::Plan plan) {
    const std::size_t count = plan.parts.size();
    DETENT_CHECK(count > 0);
    {
      const MutexLock lock(mutex_);
      join_ = std::move(plan.join);
      answers_.assign(count, {});
      open_ = count;
      abandons_.clear();
    }
    for (std::size_t i = 0; i < count; ++i) {
      Abandon abandon = front_.ask(std::move(plan.parts[i]),
                                   [self = shared_from_this(), i](net::HttpResponse answer) {
                                     self->answered(i, std::move(answer));
                                   });
      const MutexLock lock(mutex_);
      if (!is_abandoned_) {
        abandons_.push_back(std::move(abandon));
        continue;
      }
      abandon();
    }
  }

  void answered(std::size_t part, net::HttpResponse answer) {
    std::vector<net::HttpResponse> answers;
    {
      const MutexLock lock(mutex_);
      answers_[part] = std::move(answer);
      if (--open_ > 0) return;
      answers.swap(answers_);
    }
    gateway::Step next = join_(std::move(answers));
    if (auto* const plan = std::get_if<gateway::Plan>(&next)) return ask(std::move(*plan));
    responder_.send(std::get<net::HttpResponse>(std::move(next)));
  }

  void abandon() {
    std::vector<Abandon> abandons;
    {
      const MutexLock lock(mutex_);
      is_abandoned_ = true;
      abandons.swap(abandons_);
    }
    for (Abandon& one : abandons) one();
  }

  ClusterFront& front_;
  const net::Responder responder_;
  /// Set before the questions are asked, called once all are answered.
  std::function<gateway::Step(std::vector<net::HttpResponse>)> join_;

  Mutex mutex_;
  std::vector<net::HttpResponse> answers_ DETENT_GUARDED_BY(mutex_);
  std::size_t open_ DETENT_GUARDED_BY(mutex_) = 0;
  std::vector<Abandon> abandons_ DETENT_GUARDED_BY(mutex_);
  bool is_abandoned_ DETENT_GUARDED_BY(mutex_) = false;
};

/// One that another node has been asked. Thread-safe.
class ClusterFront::Question {
 public:
  Question(ShardNumber of, std::string at, Answered answered)
      : shard(of), address(std::move(at)), answered_(std::move(answered)) {}

  /// The first answer counts.
  void answer(net::HttpResponse response) {
    Answered answered;
    {
      const MutexLock lock(mutex_);
      answered = std::move(answered_);
    }
    if (answered) answered(std::move(response));
  }

  const ShardNumber shard;
  const std::string address;
  std::atomic<net::HttpCaller::CallNumber> number{0};  // relaxed; 0 until the call has one

 private:
  Mutex mutex_;
  Answered answered_ DETENT_GUARDED_BY(mutex_);  // empty once it is answered
};

/// Figures on their way from several engines or nodes. Given when the last that knows of it is
/// gone, so who never answers is noticed, too. Thread-safe.
class ClusterFront::Gathering {
 public:
  using Take = UniqueFunction<void(std::optional<ClusterFigures>)>;

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

 private:
  Take take_;
  Mutex mutex_;
  ClusterFigures sum_;    // guarded by mutex_, but for the destructor
  bool is_whole_ = true;  // likewise
};

ClusterFront::ClusterFront(ClusterFrontOptions options, ClusterShards& shards, Routes& here,
                           net::HttpCaller& caller, const Clock& clock,
                           std::function<void()> on_stray)
    : options_(std::move(options)),
      shards_(shards),
      here_(here),
      caller_(caller),
      clock_(clock),
      on_stray_(std::move(on_stray)) {
  DETENT_CHECK(!options_.secret.empty());
}

void ClusterFront::handle(net::HttpRequest request, net::Responder responder) {
  if (!request.header(kSecretHeader).empty()) {
    return answer_peer(std::move(request), std::move(responder));
  }
  drop_headers(request.headers, kOfNodes);
  if (request.method == "HEAD") request.method = "GET";  // the connection leaves the body out
  if (request.method == "GET") request.body.clear();     // it means nothing, and would go to all
  const std::string_view path = path_of(request);
  if (request.method == "GET" && path == "/readyz") return answer_ready(responder);
  // Who may not ask at all, asks no shard: one request may be one to each.
  if (auto refused = here_.refuse_unread(request)) return responder.send(*std::move(refused));
  if (request.method == "GET" && path == "/metrics") {
    return answer_metrics(request, std::move(responder));
  }
  if (gateway::is_of_node(request)) return here_.handle(std::move(request), std::move(responder));
  run(std::move(request), std::move(responder));
}

std::optional<net::HttpResponse> ClusterFront::refuse_unread(const net::HttpRequest& head) {
  const std::string_view secret = head.header(kSecretHeader);
  if (!secret.empty() && is_same(secret, options_.secret)) return std::nullopt;
  return here_.refuse_unread(head);
}

void ClusterFront::run(net::HttpRequest request, net::Responder responder) {
  gateway::Step step = gateway::plan_request(std::move(request), options_.shards);
  if (auto* const answer = std::get_if<net::HttpResponse>(&step)) {
    return responder.send(std::move(*answer));
  }
  std::make_shared<Errand>(*this, std::move(responder))
      ->start(std::get<gateway::Plan>(std::move(step)));
}

ClusterFront::Abandon ClusterFront::ask(gateway::Part part, Answered answered) {
  if (is_sure_of(part.shard)) {
    if (const auto shard = shards_.find(part.shard)) {
      return ask_here(part.shard, shard, std::move(part.request), std::move(answered));
    }
  } else if (const auto address = node_of(part.shard)) {
    return ask_node(*address, std::move(part), std::move(answered));
  }
  on_stray_();
  answered(http_try_again("no node has shard " + std::to_string(part.shard) + " open just now"));
  return [] {};
}

ClusterFront::Abandon ClusterFront::ask_here(ShardNumber number,
                                             const std::shared_ptr<ServedShard>& shard,
                                             net::HttpRequest request, Answered answered) {
  auto exchange =
      std::make_shared<net::LocalExchange>([this, number, answered = std::move(answered)](
                                               std::optional<net::HttpResponse> answer) mutable {
        if (!answer) return answered(http_problem(500, "the request was dropped"));
        answered(is_sure_of(number) ? *std::move(answer) : not_sure(number));
      });
  const std::weak_ptr<net::LocalExchange> weak = exchange;
  shard->handle(std::move(request), net::Responder(std::move(exchange)));
  // Whom it tells must live so long; not longer, or a shard's own thread might be the last to go.
  return [weak, weak_shard = std::weak_ptr(shard)] {
    const std::shared_ptr<ServedShard> kept = weak_shard.lock();
    if (const auto waiting = weak.lock()) waiting->abandon();
  };
}

ClusterFront::Abandon ClusterFront::ask_node(const std::string& address, gateway::Part part,
                                             Answered answered) {
  Result<net::HttpUrl> url = net::parse_http_url(options_.scheme + "://" + address + "/");
  if (!url) {
    answered(http_try_again("the address of the node that has shard " + std::to_string(part.shard) +
                            " cannot be used: " + url.error().message));
    return [] {};
  }
  net::HttpRequest request = std::move(part.request);
  url->target = request.target;
  const std::string host(request.header("host"));
  drop_headers(request.headers, kOfTheConnection);
  request.headers.emplace_back(kShardHeader, std::to_string(part.shard));
  request.headers.emplace_back(kSecretHeader, options_.secret);
  request.headers.emplace_back(kHostHeader, host);
  request.headers.emplace_back(kPeerHeader, request.peer);
  const auto question = std::make_shared<Question>(part.shard, address, std::move(answered));
  {
    const MutexLock lock(mutex_);
    questions_.push_back(question);
  }
  const auto number =
      caller_.call(*std::move(url), std::move(request), [this, question](net::CallOutcome outcome) {
        if (auto* const answer = std::get_if<net::HttpResponse>(&outcome)) {
          if (answer->status == 503) on_stray_();  // it may have moved since the last look
          drop_headers(answer->headers, kOfTheConnection);
          return question->answer(std::move(*answer));
        }
        on_stray_();
        question->answer(http_try_again("shard " + std::to_string(question->shard) + ": " +
                                        std::get<net::CallFailure>(outcome).message));
      });
  question->number.store(number, std::memory_order_relaxed);
  return [this, number] { caller_.abandon(number); };
}

/// What another node asks of a shard that it believes to be here.
void ClusterFront::answer_peer(net::HttpRequest request, net::Responder responder) {
  if (!is_same(request.header(kSecretHeader), options_.secret)) {
    return responder.send(http_problem(403, "this node is of another cluster"));
  }
  if (request.target == kFiguresTarget) return answer_figures(responder);
  const std::string_view text = request.header(kShardHeader);
  ShardNumber number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || stop != text.data() + text.size()) {
    return responder.send(http_problem(400, "a node says which shard it asks"));
  }
  const std::shared_ptr<ServedShard> shard = is_sure_of(number) ? shards_.find(number) : nullptr;
  if (!shard) {
    on_stray_();
    return responder.send(
        http_try_again("shard " + std::to_string(number) + " is not open at " + options_.node));
  }
  const std::string host(request.header(kHostHeader));
  request.peer = std::string(request.header(kPeerHeader));
  drop_headers(request.headers, kOfNodes);
  std::erase_if(request.headers, [](const auto& header) { return header.first == "host"; });
  request.headers.emplace_back("host", host);
  auto answered = [responder](net::HttpResponse answer) { responder.send(std::move(answer)); };
  Abandon abandon = ask_here(number, shard, std::move(request), std::move(answered));
  responder.on_gone(std::move(abandon));
}

void ClusterFront::answer_figures(const net::Responder& responder) {
  gather_here(std::make_shared<Gathering>([responder](std::optional<ClusterFigures> figures) {
    responder.send({.status = 200,
                    .content_type = "application/octet-stream",
                    .body = encode_figures(*figures)});
  }));
}

void ClusterFront::gather_here(const std::shared_ptr<Gathering>& gathering) {
  for (const auto& shard : shards_.serving()) {
    shard->ask_figures([gathering](const ClusterFigures& figures) { gathering->add(figures); });
  }
}

void ClusterFront::ask_figures(UniqueFunction<void(std::optional<ClusterFigures>)> take) {
  const auto gathering = std::make_shared<Gathering>(std::move(take));
  gather_here(gathering);
  std::vector<std::pair<std::string, net::HttpCaller::CallNumber>> calls;
  for (const std::string& address : other_addresses()) {
    Result<net::HttpUrl> url = net::parse_http_url(options_.scheme + "://" + address + "/");
    if (!url) {
      gathering->fail();
      continue;
    }
    url->target = kFiguresTarget;
    net::HttpRequest request{.method = "GET", .target = url->target, .headers = {}, .body = {}};
    request.headers.emplace_back(kSecretHeader, options_.secret);
    const auto answered = [gathering](const net::CallOutcome& outcome) {
      const auto* const answer = std::get_if<net::HttpResponse>(&outcome);
      if (answer == nullptr || answer->status != 200) return gathering->fail();
      const Result<ClusterFigures> figures = decode_figures(answer->body);
      if (!figures) return gathering->fail();
      gathering->add(*figures);
    };
    calls.emplace_back(address, caller_.call(*std::move(url), std::move(request), answered));
  }
  const MutexLock lock(mutex_);
  figure_calls_ = std::move(calls);
}

/// A scraper asks every node, so each tells of the shards it has.
void ClusterFront::answer_metrics(const net::HttpRequest& request, net::Responder responder) {
  const std::vector<std::shared_ptr<ServedShard>> serving = shards_.serving();
  if (serving.empty()) return here_.handle(request, std::move(responder));
  gateway::Plan plan;
  for (const auto& shard : serving) plan.parts.push_back({shard->lease().shard, request});
  plan.join = [](std::vector<net::HttpResponse> answers) -> gateway::Step {
    return gateway::sum_metrics(std::move(answers));
  };
  std::make_shared<Errand>(*this, std::move(responder))->start(std::move(plan));
}

void ClusterFront::answer_ready(const net::Responder& responder) const {
  if (is_ready()) return responder.send({.status = 200, .body = R"({"status":"ready"})"});
  responder.send(
      http_try_again("this node has shards that are not open yet, or cannot reach the "
                     "database"));
}

void ClusterFront::update(ClusterMap map) {
  std::vector<std::shared_ptr<Question>> in_vain;
  std::vector<net::HttpCaller::CallNumber> to_the_dead;
  {
    const MutexLock lock(mutex_);
    map_ = std::move(map);
    std::erase_if(figure_calls_, [&](const auto& call) DETENT_REQUIRES(mutex_) {
      const auto& [address, number] = call;
      const bool is_alive =
          std::ranges::find(map_.members, address, &Member::address) != map_.members.end();
      if (!is_alive) to_the_dead.push_back(number);
      return !is_alive;
    });
    std::erase_if(questions_, [&](const std::weak_ptr<Question>& weak) DETENT_REQUIRES(mutex_) {
      std::shared_ptr<Question> question = weak.lock();
      if (!question) return true;
      if (address_of(question->shard) == question->address) return false;
      in_vain.push_back(std::move(question));
      return true;
    });
  }
  for (const net::HttpCaller::CallNumber number : to_the_dead) caller_.abandon(number);
  for (const auto& question : in_vain) {
    question->answer(not_sure(question->shard));
    caller_.abandon(question->number.load(std::memory_order_relaxed));
  }
}

bool ClusterFront::is_sure_of(ShardNumber shard) const {
  const MonotonicTime now = clock_.now();
  const MutexLock lock(mutex_);
  const auto it = map_.held_until.find(shard);
  return it != map_.held_until.end() && now < it->second;
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

std::vector<std::string> ClusterFront::other_addresses() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> addresses;
  for (const Member& member : map_.members) {
    if (member.node != options_.node) addresses.push_back(member.address);
  }
  return addresses;
}

bool ClusterFront::is_ready() const {
  const MonotonicTime now = clock_.now();
  const MutexLock lock(mutex_);
  if (map_.members.empty()) return false;  // no step yet
  return std::ranges::all_of(map_.held_until, [&](const auto& held) {
    return now < held.second && shards_.find(held.first) != nullptr;
  });
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
  writer.end_array().name("shards").begin_array();
  for (const ShardOwner& owner : map_.owners) {
    writer.begin_object().name("shard").number(owner.shard);
    writer.name("node").string_or_null(owner.has_run_out ? "" : owner.node);
    writer.name("epoch").number(owner.epoch).end_object();
  }
  writer.end_array().end_object();
  return body;
}

}  // namespace detent::server
