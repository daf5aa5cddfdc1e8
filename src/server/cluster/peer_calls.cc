#include "server/cluster/peer_calls.h"

#include <algorithm>
#include <span>
#include <variant>
#include <vector>

#include "base/log/log.h"
#include "base/rng.h"
#include "protocol/json/answer_codec.h"
#include "protocol/json/json_writer.h"
#include "server/access/exposure.h"
#include "server/cluster/shard_jobs.h"
#include "server/http/http_reply.h"

namespace detent::server {
namespace {

/// The client headers that a shard reads. Other headers are not forwarded, because a large head
/// with the headers of nodes added could exceed the size limit.
constexpr std::array<std::string_view, 10> kForShards{"access-control-request-method",
                                                      "authorization",
                                                      "content-type",
                                                      "if-match",
                                                      "if-none-match",
                                                      "if-unmodified-since",
                                                      "last-event-id",
                                                      "origin",
                                                      "traceparent",
                                                      "tracestate"};
constexpr std::array<std::string_view, 5> kOfTheConnection{
    "connection", "content-length", "keep-alive", "trailer", "transfer-encoding"};

/// The most calls of this node to another node. A tenth of the connections per address stays free
/// for other questions between nodes.
std::size_t most_calls_to(const std::string& host, std::size_t connections) {
  return std::max<std::size_t>(max_connections_of_address(host, connections) / 10 * 9, 2);
}

bool asks_for_leases(const net::HttpRequest& request) {
  const std::string_view path =
      std::string_view(request.target).substr(0, request.target.find('?'));
  return request.method == "POST" && path.starts_with("/v1/queues/") && path.ends_with("/lease");
}

std::string release_body(const std::vector<json::LeasedTaskAnswer>& tasks) {
  std::string body;
  json::JsonWriter writer(body);
  writer.begin_object().name("leases").begin_array();
  for (const json::LeasedTaskAnswer& task : tasks) writer.string(task.lease);
  writer.end_array().end_object();
  return body;
}

}  // namespace

void drop_headers(net::HttpHeaders& headers, std::span<const std::string_view> names) {
  std::erase_if(headers, [names](const auto& header) {
    return std::ranges::find(names, header.first) != names.end();
  });
}

net::HttpResponse not_sure(ShardNumber shard) {
  return http_try_again("shard " + std::to_string(shard) +
                        " may have another owner now: the request may have taken effect");
}

/// Thread-safe.
class PeerCalls::Question {
 public:
  Question(ShardNumber of, std::string at, Answered answered, WhenSlow slow)
      : shard(of),
        address(std::move(at)),
        has_alternative(static_cast<bool>(slow)),
        answered_(std::move(answered)),
        slow_(std::move(slow)) {}

  /// Passes the first answer on. Returns false if there was an answer before, or if the client no
  /// longer waits for it.
  bool answer(net::HttpResponse response) {
    Answered answered = take();
    return answered && answered(std::move(response));
  }
  /// Ends the wait for the answer. Returns false if it had already ended.
  bool let_go() { return static_cast<bool>(take()); }
  /// Tells the caller that the answer is slow, if the caller still waits and asked to be told.
  void tell_slow() {
    WhenSlow slow;
    {
      const MutexLock lock(mutex_);
      if (!answered_) return;
      slow = std::move(slow_);
    }
    if (slow) slow();
  }

  const ShardNumber shard;
  const std::string address;
  const bool has_alternative;  // it has an alternative: the caller is told when the answer is slow
  // Set before the question is sent.
  std::uint64_t number = 0;
  bool may_wait = false;
  bool is_of_jobs = false;     // of a beanstalk client
  std::string wait = {};       // the name of a request for leases; empty for other requests
  net::HttpRequest head = {};  // of a request for leases: the request's head
  std::atomic<net::HttpCaller::CallNumber> call{0};  // relaxed; 0 until the call has one

 private:
  Answered take() {
    WhenSlow dropped;
    const MutexLock lock(mutex_);
    dropped = std::move(slow_);
    return std::move(answered_);
  }

  Mutex mutex_;
  Answered answered_ DETENT_GUARDED_BY(mutex_);  // empty after the answer
  WhenSlow slow_ DETENT_GUARDED_BY(mutex_);      // empty after it ran, and after the answer
};

PeerCalls::PeerCalls(PeerCallsOptions options, const PeerLink& link, const Clock& clock,
                     std::function<void()> on_stray, std::function<void(gateway::Part)> send_part)
    : options_(std::move(options)),
      run_(Rng(random_seed()).next()),
      link_(link),
      clock_(clock),
      on_stray_(std::move(on_stray)),
      send_part_(std::move(send_part)) {}

PeerCalls::Abandon PeerCalls::ask(const std::string& address, gateway::Part part, Answered answered,
                                  WhenSlow slow) {
  const auto question =
      std::make_shared<Question>(part.shard, address, std::move(answered), std::move(slow));
  Result<net::HttpUrl> url = link_.url_of(address);
  if (!url) {
    question->answer(http_try_again("the address of the node that owns shard " +
                                    std::to_string(part.shard) +
                                    " cannot be used: " + url.error().message));
    return [] {};
  }
  net::HttpRequest request = std::move(part.request);
  const std::string host(request.header("host"));
  std::erase_if(request.headers, [](const auto& header) {
    return std::ranges::find(kForShards, header.first) == kForShards.end();
  });
  const bool is_for_leases = asks_for_leases(request);
  question->may_wait = part.may_wait || (is_for_leases && !question->has_alternative);
  question->is_of_jobs = request.target == kJobsTarget;
  const Begun begun = begin(
      question, std::min(options_.max_calls, most_calls_to(url->host, options_.node_connections)));
  if (begun == Begun::too_many || begun == Begun::in_vain) {
    question->answer(not_asked(*question, begun));
    return [] {};
  }
  if (is_for_leases) {
    question->wait =
        options_.node + "-" + std::to_string(run_) + "-" + std::to_string(question->number);
    question->head = {.method = "POST",
                      .target = "/v1/leases/release",
                      .headers = request.headers,
                      .body = {},
                      .peer = request.peer};
    question->head.headers.emplace_back("host", host);
    request.headers.emplace_back(kCallHeader, question->wait);
  }
  request.headers.emplace_back(kShardHeader, std::to_string(part.shard));
  request.headers.emplace_back(kHostHeader, host);
  request.headers.emplace_back(kPeerHeader, request.peer);
  call(question, *std::move(url), std::move(request));
  if (begun == Begun::suspect) question->tell_slow();
  return [this, weak = std::weak_ptr(question)] {
    const std::shared_ptr<Question> kept = weak.lock();
    if (kept && kept->let_go()) abandon(*kept);
  };
}

PeerCalls::Begun PeerCalls::begin(const std::shared_ptr<Question>& question,
                                  std::size_t max_calls) {
  const MutexLock lock(mutex_);
  if (calls_ >= options_.max_all_calls) return Begun::too_many;
  Load& load = loads_[question->address];
  if (load.calls >= max_calls) return Begun::too_many;
  const bool has_room_to_wait = load.waits < max_calls / 2 && waits_ < options_.max_all_calls / 2;
  if (question->may_wait && !has_room_to_wait) return Begun::too_many;
  const Target target{question->address, question->shard};
  const bool is_slow = question->has_alternative && is_suspect(target);
  if (const auto open = open_.find(target); is_slow && open != open_.end()) {
    if (open->second.with_alternative > 0) return Begun::in_vain;
  }
  ++load.calls;
  ++calls_;
  if (question->may_wait) {
    ++load.waits;
    ++waits_;
  }
  question->number = ++last_number_;
  Questions& questions = open_[target];
  questions.by_number.emplace(question->number, question);
  if (question->has_alternative) ++questions.with_alternative;
  return is_slow ? Begun::suspect : Begun::ok;
}

bool PeerCalls::is_suspect(const Target& target) const {
  const auto slow = slow_peers_.find(target.first);
  if (slow == slow_peers_.end()) return false;
  return slow->second.is_of_all || slow->second.shards.contains(target.second);
}

net::HttpResponse PeerCalls::not_asked(const Question& question, Begun why) {
  const std::string node = "the node that owns shard " + std::to_string(question.shard);
  if (why == Begun::in_vain) return http_try_again(node + " does not answer at present");
  return http_try_again(node + " has reached the limit of requests from this node" +
                        (question.may_wait ? " that wait for tasks" : ""));
}

void PeerCalls::call(const std::shared_ptr<Question>& question, net::HttpUrl url,
                     net::HttpRequest request) {
  PeerLink::WhenSlow slow;
  if (question->has_alternative)
    slow = {options_.patience, [this, question] { be_slow(*question); }};
  const auto number = link_.call(
      std::move(url), std::move(request),
      [this, question](net::CallOutcome outcome) { take(question, std::move(outcome)); },
      std::move(slow));
  question->call.store(number, std::memory_order_relaxed);
}

/// If the shard was not slow before, the whole node may hang, so all its shards become suspect. If
/// the shard was slow before, this says nothing new about the node.
void PeerCalls::be_slow(Question& question) {
  bool is_worth_a_line = false;
  {
    const MutexLock lock(mutex_);
    const auto questions = open_.find({question.address, question.shard});
    if (questions == open_.end()) return;
    if (!questions->second.by_number.contains(question.number)) return;
    SlowPeer& slow = slow_peers_[question.address];
    if (slow.shards.insert(question.shard).second) slow.is_of_all = true;
    is_worth_a_line = !slow.is_logged && slow.pace.is_worth_a_line("slow", clock_.now());
    if (is_worth_a_line) slow.is_logged = true;
  }
  if (is_worth_a_line) {
    log_warning("a node is slow to answer",
                {{"address", question.address},
                 {"shard", std::to_string(question.shard)},
                 {"action", "check the load of this node, and the network to it"}});
  }
  question.tell_slow();
}

/// Called when an answer to the question arrives, with any status.
void PeerCalls::trust(const Question& question) {
  {
    const MutexLock lock(mutex_);
    const auto found = slow_peers_.find(question.address);
    if (found == slow_peers_.end()) return;
    SlowPeer& slow = found->second;
    slow.is_of_all = false;
    slow.shards.erase(question.shard);
    if (!slow.shards.empty() || !std::exchange(slow.is_logged, false)) return;
  }
  log_info("a node answers again", {{"address", question.address}});
}

void PeerCalls::take(const std::shared_ptr<Question>& question, net::CallOutcome outcome) {
  end(*question);
  if (auto* const answer = std::get_if<net::HttpResponse>(&outcome)) {
    trust(*question);
    if (answer->status == 503) on_stray_();  // the shard may have another owner
    drop_headers(answer->headers, kOfTheConnection);
    // The leases in the answer must be released if the client has gone.
    const net::HttpResponse copy = question->wait.empty() ? net::HttpResponse{} : *answer;
    if (!question->answer(std::move(*answer))) give_back(*question, copy);
    return;
  }
  on_stray_();
  question->answer(http_try_again("shard " + std::to_string(question->shard) + ": " +
                                  std::get<net::CallFailure>(outcome).message));
}

/// Removes the question from the open questions.
void PeerCalls::end(Question& question) {
  std::shared_ptr<Question> dropped;
  const MutexLock lock(mutex_);
  const auto questions = open_.find({question.address, question.shard});
  if (questions == open_.end()) return;
  auto& [by_number, with_alternative] = questions->second;
  const auto it = by_number.find(question.number);
  if (it == by_number.end()) return;
  dropped = std::move(it->second);
  by_number.erase(it);
  if (question.has_alternative) --with_alternative;
  if (by_number.empty()) open_.erase(questions);
  const auto load = loads_.find(question.address);
  if (question.may_wait) {
    --load->second.waits;
    --waits_;
  }
  --calls_;
  if (--load->second.calls == 0) loads_.erase(load);
}

/// The client no longer waits for the answer.
void PeerCalls::abandon(Question& question) {
  // This request for leases does not wait, so its answer comes soon. take() releases the leases.
  if (question.has_alternative && !question.wait.empty()) return;
  if (question.wait.empty()) {
    end(question);
    return link_.abandon(question.call.load(std::memory_order_relaxed));
  }
  net::HttpRequest end{
      .method = "POST", .target = std::string(kEndWaitTarget), .headers = {}, .body = {}};
  end.headers.emplace_back(kCallHeader, question.wait);
  // If this call fails, the wait ends at its own limit.
  (void)link_.call(question.address, std::move(end), [](const net::CallOutcome&) {});
}

void PeerCalls::give_back(const Question& question, const net::HttpResponse& answer) {
  if (question.wait.empty() || answer.status != 200) return;
  const auto tasks = json::parse_leased_tasks(answer.body);
  if (!tasks || tasks->empty()) return;
  net::HttpRequest release = question.head;
  release.body = release_body(*tasks);
  send_part_({question.shard, std::move(release)});
}

void PeerCalls::update(const HasShard& has_shard, const IsMember& is_member) {
  std::vector<std::shared_ptr<Question>> in_vain;
  {
    const MutexLock lock(mutex_);
    std::erase_if(slow_peers_, [&](const auto& of_node) { return !is_member(of_node.first); });
    for (auto& [address, slow] : slow_peers_) {
      std::erase_if(slow.shards,
                    [&, &at = address](ShardNumber shard) { return !has_shard(shard, at); });
    }
    for (const auto& [target, questions] : open_) {
      const auto& [address, shard] = target;
      if (has_shard(shard, address)) continue;
      const bool is_dead = !is_member(address);
      for (const auto& [number, question] : questions.by_number) {
        if (is_dead || !question->is_of_jobs) in_vain.push_back(question);
      }
    }
  }
  for (const auto& question : in_vain) {
    question->answer(not_sure(question->shard));
    if (!question->wait.empty()) continue;  // take() releases the leases of a later answer
    end(*question);
    link_.abandon(question->call.load(std::memory_order_relaxed));
  }
}

void PeerWaits::keep(std::string name, UniqueFunction<void()> end) {
  {
    const MutexLock lock(mutex_);
    if (!ended_.take(name)) {
      ends_.insert_or_assign(std::move(name), std::move(end));
      return;
    }
  }
  end();
}

void PeerWaits::forget(const std::string& name) {
  UniqueFunction<void()> dropped;
  const MutexLock lock(mutex_);
  const auto it = ends_.find(name);
  if (it == ends_.end()) return;
  dropped = std::move(it->second);
  ends_.erase(it);
}

void PeerWaits::end(const std::string& name) {
  UniqueFunction<void()> end;
  {
    const MutexLock lock(mutex_);
    const auto it = ends_.find(name);
    if (it == ends_.end()) {  // the request has not arrived yet, or its wait is over
      ended_.add(name);
      return;
    }
    end = std::move(it->second);
    ends_.erase(it);
  }
  end();
}

}  // namespace detent::server
