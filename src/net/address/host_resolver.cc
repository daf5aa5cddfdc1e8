#include "net/address/host_resolver.h"

#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "detent/clock.h"

namespace detent::net {
namespace {

using Addresses = Result<std::vector<IpAddress>>;

/// A name that has waited longer than this is not looked up, because its caller has given up. So
/// dead name servers delay other names by no more than this time.
constexpr std::chrono::seconds kLongestInQueue{5};

/// Returns the address without its port; std::nullopt for a family other than IPv4 and IPv6.
std::optional<IpAddress> address_of(const addrinfo& info) {
  IpAddress::Bytes bytes{};
  if (info.ai_family == AF_INET) {
    const auto* const v4 = reinterpret_cast<const sockaddr_in*>(info.ai_addr);
    std::memcpy(bytes.data(), &v4->sin_addr, sizeof v4->sin_addr);
    return IpAddress(IpAddress::Family::v4, bytes);
  }
  if (info.ai_family == AF_INET6) {
    const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(info.ai_addr);
    std::memcpy(bytes.data(), &v6->sin6_addr, sizeof v6->sin6_addr);
    return IpAddress(IpAddress::Family::v6, bytes);
  }
  return std::nullopt;
}

Addresses look_up(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    const bool is_unknown = error == EAI_NONAME || error == EAI_NODATA;
    return Error{is_unknown ? ErrorCode::not_found : ErrorCode::unavailable, gai_strerror(error),
                 ""};
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  std::vector<IpAddress> addresses;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    if (const auto address = address_of(*info)) addresses.push_back(*address);
  }
  if (addresses.empty()) return Error{ErrorCode::not_found, "the name has no address", ""};
  return addresses;
}

}  // namespace

/// Invariant: a name has an entry in asked_ from its first question until its answer. It is also in
/// queue_ until a thread takes it.
class SystemResolver::LookUps {
 public:
  /// Returns true if the caller must start another thread.
  bool ask(const std::string& host, Resolved done) {
    const MutexLock lock(mutex_);
    std::vector<Resolved>& asking = asked_[host];
    asking.push_back(std::move(done));
    if (asking.size() > 1) return false;
    queue_.push_back({host, clock_.now()});
    if (threads_ == kMaxLookUps) return false;
    ++threads_;
    return true;
  }

  /// The work of a thread: looks up the names in the queue until it is empty.
  void run() {
    while (const std::optional<Question> question = next()) {
      const bool is_too_late = clock_.now() - question->since > kLongestInQueue;
      const Addresses addresses =
          is_too_late
              ? Addresses(Error{ErrorCode::unavailable, "too many names wait for a look-up", ""})
              : look_up(question->host);
      for (Resolved& done : take(question->host)) done(addresses);
    }
  }

  /// A thread could not be started. If no other thread runs, answers all names in the queue.
  void fail_thread() {
    std::vector<Resolved> failed;
    {
      const MutexLock lock(mutex_);
      --threads_;
      if (threads_ > 0) return;  // another thread will work on the queue
      for (const Question& question : queue_) {
        std::vector<Resolved> asking = std::move(asked_.extract(question.host).mapped());
        std::move(asking.begin(), asking.end(), std::back_inserter(failed));
      }
      queue_.clear();
    }
    for (Resolved& done : failed)
      done(Error{ErrorCode::unavailable, "the system is out of threads", ""});
  }

  void stop() {
    std::map<std::string, std::vector<Resolved>> dropped;
    const MutexLock lock(mutex_);
    queue_.clear();
    dropped.swap(asked_);
  }

 private:
  struct Question {
    std::string host;
    MonotonicTime since;
  };

  std::optional<Question> next() {
    const MutexLock lock(mutex_);
    if (queue_.empty()) {
      --threads_;
      return std::nullopt;
    }
    Question question = std::move(queue_.front());
    queue_.pop_front();
    return question;
  }

  /// Removes and returns the callbacks for this name. After stop() there are none.
  std::vector<Resolved> take(const std::string& host) {
    const MutexLock lock(mutex_);
    auto asked = asked_.extract(host);
    return asked.empty() ? std::vector<Resolved>{} : std::move(asked.mapped());
  }

  Mutex mutex_;
  std::map<std::string, std::vector<Resolved>> asked_ DETENT_GUARDED_BY(mutex_);
  const SystemClock clock_{};
  std::deque<Question> queue_ DETENT_GUARDED_BY(mutex_);
  std::size_t threads_ DETENT_GUARDED_BY(mutex_) = 0;
};

SystemResolver::SystemResolver() : look_ups_(std::make_shared<LookUps>()) {}
SystemResolver::~SystemResolver() { look_ups_->stop(); }

void SystemResolver::resolve(const std::string& host, Resolved done) {
  if (!look_ups_->ask(host, std::move(done))) return;
  try {
    // Detached, because a look-up cannot be interrupted, and the destructor must not wait for it.
    std::thread([look_ups = look_ups_] { look_ups->run(); }).detach();
  } catch (const std::system_error&) {
    look_ups_->fail_thread();
  }
}

}  // namespace detent::net
