#include "server/peer_calls.h"

#include <algorithm>
#include <span>
#include <variant>
#include <vector>

#include "base/rng.h"
#include "protocol/json/answer_parser.h"
#include "protocol/json/json_writer.h"
#include "server/exposure.h"
#include "server/http_reply.h"
#include "server/shard_jobs.h"

namespace detent::server {
namespace {

/// What a shard reads of a client's headers. The others stay here: with those of nodes added, a
/// head that just fits would not.
constexpr std::array<std::string_view, 9> kForShards{"access-control-request-method",
                                                     "authorization",
                                                     "content-type",
                                                     "if-match",
                                                     "if-none-match",
                                                     "last-event-id",
                                                     "origin",
                                                     "traceparent",
                                                     "tracestate"};
constexpr std::array<std::string_view, 5> kOfTheConnection{
    "connection", "content-length", "keep-alive", "trailer", "transfer-encoding"};

/// Ends of waits that have not come are remembered for so many: they are some milliseconds apart.
constexpr std::size_t kMostEnded = 128;

/// How many calls a node takes from this one: a tenth of its connections is left for what nodes ask
/// besides.
std::size_t most_calls_to(const std::string& host) {
  return max_connections_of_address(host) / 10 * 9;
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
                        " is about to change hands: what was asked may have been done");
}

/// Thread-safe.
class PeerCalls::Question {
 public:
  Question(ShardNumber of, std::string at, Answered answered)
      : shard(of), address(std::move(at)), answered_(std::move(answered)) {}

  /// The first answer counts. False: nobody took this one.
  bool answer(net::HttpResponse response) {
    Answered answered = take();
    return answered && answered(std::move(response));
  }
  /// Nobody waits for the answer any more. False: that is known.
  bool let_go() { return static_cast<bool>(take()); }

  const ShardNumber shard;
  const std::string address;
  // Set before it is asked.
  std::uint64_t number = 0;
  bool may_wait = false;
  bool is_of_jobs = false;     // of a beanstalk client
  std::string wait = {};       // the name of a request for leases; empty: it is none
  net::HttpRequest head = {};  // of a request for leases: who asked
  std::atomic<net::HttpCaller::CallNumber> call{0};  // relaxed; 0 until the call has one

 private:
  Answered take() {
    const MutexLock lock(mutex_);
    return std::move(answered_);
  }

  Mutex mutex_;
  Answered answered_ DETENT_GUARDED_BY(mutex_);  // empty once it is answered
};

PeerCalls::PeerCalls(PeerCallsOptions options, const PeerLink& link, std::function<void()> on_stray,
                     std::function<void(gateway::Part)> send_part)
    : options_(std::move(options)),
      run_(Rng(random_seed()).next()),
      link_(link),
      on_stray_(std::move(on_stray)),
      send_part_(std::move(send_part)) {}

PeerCalls::Abandon PeerCalls::ask(const std::string& address, gateway::Part part,
                                  Answered answered) {
  const auto question = std::make_shared<Question>(part.shard, address, std::move(answered));
  Result<net::HttpUrl> url = link_.url_of(address);
  if (!url) {
    question->answer(http_try_again("the address of the node that has shard " +
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
  question->may_wait = part.may_wait || is_for_leases;
  question->is_of_jobs = request.target == kJobsTarget;
  if (!begin(question, std::min(options_.max_calls, most_calls_to(url->host)))) {
    question->answer(http_try_again("the node that has shard " + std::to_string(part.shard) +
                                    " is asked by as many requests of this node already as may be" +
                                    (question->may_wait ? " that wait for tasks" : "")));
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
  return [this, weak = std::weak_ptr(question)] {
    const std::shared_ptr<Question> kept = weak.lock();
    if (kept && kept->let_go()) abandon(*kept);
  };
}

/// False: it is one too many.
bool PeerCalls::begin(const std::shared_ptr<Question>& question, std::size_t max_calls) {
  const MutexLock lock(mutex_);
  Load& load = loads_[question->address];
  if (load.calls >= max_calls) return false;
  if (question->may_wait && load.waits >= max_calls / 2) return false;
  ++load.calls;
  if (question->may_wait) ++load.waits;
  question->number = ++last_number_;
  open_[{question->address, question->shard}].emplace(question->number, question);
  return true;
}

void PeerCalls::call(const std::shared_ptr<Question>& question, net::HttpUrl url,
                     net::HttpRequest request) {
  const auto number = link_.call(
      std::move(url), std::move(request),
      [this, question](net::CallOutcome outcome) { take(question, std::move(outcome)); });
  question->call.store(number, std::memory_order_relaxed);
}

void PeerCalls::take(const std::shared_ptr<Question>& question, net::CallOutcome outcome) {
  end(*question);
  if (auto* const answer = std::get_if<net::HttpResponse>(&outcome)) {
    if (answer->status == 503) on_stray_();  // it may have moved since the last look
    drop_headers(answer->headers, kOfTheConnection);
    const net::HttpResponse copy =
        question->wait.empty() ? net::HttpResponse{} : *answer;  // it may have to be given back
    if (!question->answer(std::move(*answer))) give_back(*question, copy);
    return;
  }
  on_stray_();
  question->answer(http_try_again("shard " + std::to_string(question->shard) + ": " +
                                  std::get<net::CallFailure>(outcome).message));
}

/// It is not under way any more.
void PeerCalls::end(Question& question) {
  std::shared_ptr<Question> dropped;
  const MutexLock lock(mutex_);
  const auto questions = open_.find({question.address, question.shard});
  if (questions == open_.end()) return;
  const auto it = questions->second.find(question.number);
  if (it == questions->second.end()) return;
  dropped = std::move(it->second);
  questions->second.erase(it);
  if (questions->second.empty()) open_.erase(questions);
  const auto load = loads_.find(question.address);
  if (question.may_wait) --load->second.waits;
  if (--load->second.calls == 0) loads_.erase(load);
}

/// Nobody waits for the answer.
void PeerCalls::abandon(Question& question) {
  if (question.wait.empty()) {
    end(question);
    return link_.abandon(question.call.load(std::memory_order_relaxed));
  }
  net::HttpRequest end{
      .method = "POST", .target = std::string(kEndWaitTarget), .headers = {}, .body = {}};
  end.headers.emplace_back(kCallHeader, question.wait);
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
    for (const auto& [target, questions] : open_) {
      const auto& [address, shard] = target;
      if (has_shard(shard, address)) continue;
      const bool is_dead = !is_member(address);
      for (const auto& [number, question] : questions) {
        if (is_dead || !question->is_of_jobs) in_vain.push_back(question);
      }
    }
  }
  for (const auto& question : in_vain) {
    question->answer(not_sure(question->shard));
    if (!question->wait.empty()) continue;  // its leases, if it gets any, are given back
    end(*question);
    link_.abandon(question->call.load(std::memory_order_relaxed));
  }
}

void PeerWaits::keep(std::string name, UniqueFunction<void()> end) {
  {
    const MutexLock lock(mutex_);
    if (std::erase(ended_, name) == 0) {
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
    if (it == ends_.end()) {  // it has not come, or is over
      ended_.push_back(name);
      if (ended_.size() > kMostEnded) ended_.pop_front();
      return;
    }
    end = std::move(it->second);
    ends_.erase(it);
  }
  end();
}

}  // namespace detent::server
