#include "sinks/redis_sink.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "base/thread.h"
#include "redis/redis_connection.h"

namespace detent {
namespace {

/// The most entries that are sent before the first reply is read. Redis must buffer the replies
/// while this thread is writing.
constexpr std::size_t kMaxBatch = 256;

/// All that Redis says of an entry is that its key is no stream; the rest is about Redis.
Result<void> read_reply(const RedisReply& reply) {
  if (reply.kind != RedisReply::Kind::error) return ok();
  const bool is_refusal = reply.text.starts_with("WRONGTYPE ");
  return Error{is_refusal ? ErrorCode::invalid_argument : ErrorCode::unavailable,
               "Redis answers: " + reply.text, ""};
}

/// Redis would store a second field with this name, and a reader would use the last field.
bool is_own_field(std::string_view name) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  const auto is = [&](std::string_view own) { return std::ranges::equal(name, own, {}, lower); };
  return is("id") || is("payload");
}

class RedisSink final : public Sink {
 public:
  RedisSink(const SinkAddress& address, RedisAddress server)
      : stream_(address.target),
        user_(address.user),
        password_(address.password),
        max_length_(address.settings.empty() ? "" : address.settings.back().second),
        server_(std::move(server)),
        thread_([this] { run(); }) {}
  ~RedisSink() override {
    {
      const MutexLock lock(mutex_);
      is_ending_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }
  RedisSink(const RedisSink&) = delete;
  RedisSink& operator=(const RedisSink&) = delete;

  void send(SinkMessage message, Done done) override {
    const MutexLock lock(mutex_);
    waiting_.push_back({std::move(message), std::move(done)});
    changed_.notify_all();
  }

 private:
  struct Entry {
    SinkMessage message;
    Done done;
  };

  void run() {
    while (true) {
      std::vector<Entry> batch = take();
      if (batch.empty()) return;
      send_batch(batch);
    }
  }

  /// Waits for entries. Returns no entries when the sink is stopping.
  std::vector<Entry> take() {
    const MutexLock lock(mutex_);
    while (waiting_.empty() && !is_ending_) changed_.wait(mutex_);
    if (is_ending_) return {};
    const auto count = static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kMaxBatch));
    std::vector<Entry> batch(std::make_move_iterator(waiting_.begin()),
                             std::make_move_iterator(waiting_.begin() + count));
    waiting_.erase(waiting_.begin(), waiting_.begin() + count);
    return batch;
  }

  void send_batch(std::vector<Entry>& batch) {
    // Detects a connection that Redis closed while it was idle, before a message is lost with it.
    if (connection_ && !connection_->is_open()) connection_.reset();
    std::size_t answered = 0;
    if (const Result<void> sent = exchange(batch, answered); !sent) {
      connection_.reset();
      const Error error{ErrorCode::unavailable, sent.error().message, ""};
      for (; answered < batch.size(); ++answered) batch[answered].done(error);
      fail_waiting(error);
    }
  }

  /// Messages that arrived in the meantime must not wait for their own time-out.
  void fail_waiting(const Error& error) {
    std::vector<Entry> waiting;
    {
      const MutexLock lock(mutex_);
      if (!is_ending_) waiting.swap(waiting_);
    }
    for (Entry& entry : waiting) entry.done(error);
  }

  /// Counts in `answered` those that have got their answer when it fails.
  Result<void> exchange(std::vector<Entry>& batch, std::size_t& answered) {
    if (!connection_) TRY(connect());
    for (const Entry& entry : batch) TRY(add(entry.message));
    for (Entry& entry : batch) {
      ASSIGN_OR_RETURN(const RedisReply reply, connection_->receive());
      ++answered;
      entry.done(read_reply(reply));
    }
    return ok();
  }

  Result<void> connect() {
    ASSIGN_OR_RETURN(connection_, RedisConnection::open(server_, {}));
    if (password_.empty()) return ok();
    std::vector<std::string_view> command{"AUTH"};
    if (!user_.empty()) command.push_back(user_);
    command.push_back(password_);
    TRY(connection_->send(command));
    ASSIGN_OR_RETURN(const RedisReply reply, connection_->receive());
    if (reply.kind != RedisReply::Kind::error) return ok();
    return Error{ErrorCode::unavailable, "Redis refuses the log-in: " + reply.text, ""};
  }

  Result<void> add(const SinkMessage& message) {
    std::vector<std::string_view> command{"XADD", stream_};
    if (!max_length_.empty()) command.insert(command.end(), {"MAXLEN", "~", max_length_});
    command.insert(command.end(), {"*", "id", message.id, "payload", message.body});
    for (const auto& [name, value] : message.fields) {
      if (is_own_field(name)) continue;
      command.push_back(name);
      command.push_back(value);
    }
    return connection_->send(command);
  }

  // Constant after construction.
  const std::string stream_;
  const std::string user_;
  const std::string password_;
  const std::string max_length_;  // "": no limit
  const RedisAddress server_;

  Mutex mutex_;
  CondVar changed_;
  std::vector<Entry> waiting_ DETENT_GUARDED_BY(mutex_);
  bool is_ending_ DETENT_GUARDED_BY(mutex_) = false;

  // Touched only by the thread.
  std::unique_ptr<RedisConnection> connection_;

  Thread thread_;
};

}  // namespace

Result<std::unique_ptr<Sink>> make_redis_sink(const SinkAddress& address) {
  ASSIGN_OR_RETURN(RedisAddress server, parse_redis_address(address.brokers.front()));
  return std::unique_ptr<Sink>(std::make_unique<RedisSink>(address, std::move(server)));
}

}  // namespace detent
