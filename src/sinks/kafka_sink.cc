#include "sinks/kafka_sink.h"

#include <librdkafka/rdkafka.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "base/thread.h"
#include "detent/check.h"
#include "sinks/pending_sends.h"

namespace detent {
namespace {

/// How long a call that answers waits for answers; how late it notices the end.
constexpr int kPollMs = 50;

struct FreeConf {
  void operator()(rd_kafka_conf_t* conf) const noexcept { rd_kafka_conf_destroy(conf); }
};
using Conf = std::unique_ptr<rd_kafka_conf_t, FreeConf>;

Result<void> set(rd_kafka_conf_t* conf, const std::string& name, const std::string& value) {
  std::array<char, 256> why{};
  const auto result = rd_kafka_conf_set(conf, name.c_str(), value.c_str(), why.data(), why.size());
  if (result == RD_KAFKA_CONF_OK) return ok();
  // librdkafka's message repeats the value, which may be a secret. An unknown name may be a secret
  // too, for example the part of a password after an "&".
  const bool is_name = result != RD_KAFKA_CONF_UNKNOWN || name.find('.') != std::string::npos;
  return Error{ErrorCode::invalid_argument,
               is_name ? "librdkafka does not accept the setting " + name + " with this value"
                       : "librdkafka does not know a setting; write an & in a password as %26",
               "sinks"};
}

/// A message must be given up before the deliverer does, which waits 60 s.
Result<void> check_timeout(rd_kafka_conf_t* conf) {
  constexpr int kLongestMs = 50'000;
  std::array<char, 32> text{};
  std::size_t size = text.size();
  int timeout_ms = 0;
  if (rd_kafka_conf_get(conf, "message.timeout.ms", text.data(), &size) == RD_KAFKA_CONF_OK) {
    std::from_chars(text.data(), text.data() + text.size(), timeout_ms);
  }
  if (timeout_ms >= 1 && timeout_ms <= kLongestMs) return ok();
  return Error{ErrorCode::invalid_argument,
               "message.timeout.ms (delivery.timeout.ms) must be between 1 and " +
                   std::to_string(kLongestMs),
               "sinks"};
}

/// Returns true if the broker's error is about the message, not about the broker. "Too large" is
/// not included, because a broker says it of a whole batch, and the other messages of the batch are
/// valid.
bool is_refusal(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE || error == RD_KAFKA_RESP_ERR_INVALID_MSG ||
         error == RD_KAFKA_RESP_ERR_INVALID_RECORD;
}

/// A send's number as librdkafka carries it.
void* to_opaque(std::uint64_t number) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number));  // NOLINT
}
std::uint64_t from_opaque(const void* opaque) { return reinterpret_cast<std::uintptr_t>(opaque); }

class KafkaSink final : public Sink {
 public:
  explicit KafkaSink(std::string topic) : topic_(std::move(topic)) {}
  ~KafkaSink() override {
    is_ending_.store(true, std::memory_order_relaxed);
    thread_.join();
    sends_.clear();
    if (producer_ == nullptr) return;
    rd_kafka_purge(producer_, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_destroy(producer_);
  }
  KafkaSink(const KafkaSink&) = delete;
  KafkaSink& operator=(const KafkaSink&) = delete;

  /// Takes over the settings.
  Result<void> start(Conf conf) {
    rd_kafka_conf_set_opaque(conf.get(), this);
    rd_kafka_conf_set_dr_msg_cb(conf.get(),
                                [](rd_kafka_t*, const rd_kafka_message_t* message, void* self) {
                                  static_cast<KafkaSink*>(self)->note_report(*message);
                                });
    rd_kafka_conf_set_error_cb(conf.get(), [](rd_kafka_t*, int, const char* reason, void* self) {
      static_cast<KafkaSink*>(self)->note_error(reason);
    });
    // By default librdkafka logs to stderr; tasks and the log of deliveries already report the
    // errors.
    rd_kafka_conf_set_log_cb(conf.get(), [](const rd_kafka_t*, int, const char*, const char*) {});
    std::array<char, 256> why{};
    producer_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf.get(), why.data(), why.size());
    if (producer_ == nullptr) {
      return Error{ErrorCode::invalid_argument, "librdkafka: " + std::string(why.data()), "sinks"};
    }
    (void)conf.release();  // the producer's now
    thread_ = Thread([this] { run(); });
    return ok();
  }

  void send(SinkMessage message, Done done) override {
    const std::uint64_t number = sends_.add(std::move(done));
    rd_kafka_headers_t* const headers = rd_kafka_headers_new(message.fields.size());
    for (const auto& [name, value] : message.fields) {
      rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()), value.data(),
                          static_cast<ssize_t>(value.size()));
    }
    const rd_kafka_resp_err_t error = produce(message, headers, number);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return;
    rd_kafka_headers_destroy(headers);
    // If librdkafka itself reports this error, it concerns only this message: with key and headers
    // it is larger than message.max.bytes.
    if (error == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE) {
      return sends_.finish(number, Error{ErrorCode::too_large, rd_kafka_err2str(error), ""});
    }
    sends_.finish(number, to_error(error));
  }

 private:
  /// Takes `headers` only when there is no error. An array, because the macros of the call with any
  /// number of arguments are not standard C++.
  rd_kafka_resp_err_t produce(SinkMessage& message, rd_kafka_headers_t* headers,
                              std::uint64_t number) {
    std::array<rd_kafka_vu_t, 6> values{};
    values[0].vtype = RD_KAFKA_VTYPE_TOPIC;
    values[0].u.cstr = topic_.c_str();
    values[1].vtype = RD_KAFKA_VTYPE_KEY;
    values[1].u.mem = {message.id.data(), message.id.size()};
    values[2].vtype = RD_KAFKA_VTYPE_VALUE;
    values[2].u.mem = {message.body.data(), message.body.size()};
    values[3].vtype = RD_KAFKA_VTYPE_HEADERS;
    values[3].u.headers = headers;
    values[4].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
    values[4].u.i = RD_KAFKA_MSG_F_COPY;
    values[5].vtype = RD_KAFKA_VTYPE_OPAQUE;
    values[5].u.ptr = to_opaque(number);
    rd_kafka_error_t* const error = rd_kafka_produceva(producer_, values.data(), values.size());
    const rd_kafka_resp_err_t code = rd_kafka_error_code(error);  // of null: no error
    rd_kafka_error_destroy(error);
    return code;
  }

  void run() {
    while (!is_ending_.load(std::memory_order_relaxed)) rd_kafka_poll(producer_, kPollMs);
  }

  void note_report(const rd_kafka_message_t& message) {
    const std::uint64_t number = from_opaque(message._private);
    if (message.err == RD_KAFKA_RESP_ERR_NO_ERROR) return sends_.finish(number, ok());
    sends_.finish(number, to_error(message.err));
  }

  void note_error(std::string_view reason) {
    const MutexLock lock(mutex_);
    last_error_ = reason;
  }

  Error to_error(rd_kafka_resp_err_t error) const {
    std::string message = rd_kafka_err2str(error);
    if (is_refusal(error)) return {ErrorCode::invalid_argument, std::move(message), ""};
    const MutexLock lock(mutex_);
    if (!last_error_.empty()) message += "; last error: " + last_error_;
    return {ErrorCode::unavailable, std::move(message), ""};
  }

  const std::string topic_;
  rd_kafka_t* producer_ = nullptr;  // set by start()

  PendingSends sends_;
  std::atomic<bool> is_ending_{false};  // set by the destructor; orders no other data

  mutable Mutex mutex_;
  std::string last_error_ DETENT_GUARDED_BY(mutex_);

  Thread thread_;
};

}  // namespace

Result<std::unique_ptr<Sink>> make_kafka_sink(const SinkAddress& address) {
  const Conf conf(rd_kafka_conf_new());
  DETENT_CHECK(conf != nullptr);
  std::string brokers;
  for (const std::string& broker : address.brokers) {
    brokers += (brokers.empty() ? "" : ",") + broker;
  }
  TRY(set(conf.get(), "client.id", "detent"));
  TRY(set(conf.get(), "message.timeout.ms", "30000"));
  for (const auto& [name, value] : address.settings) TRY(set(conf.get(), name, value));
  TRY(set(conf.get(), "bootstrap.servers", brokers));
  // The delivery promise depends on this setting.
  TRY(set(conf.get(), "acks", "all"));
  TRY(set(conf.get(), "delivery.report.only.error", "false"));
  TRY(check_timeout(conf.get()));
  auto sink = std::make_unique<KafkaSink>(address.target);
  TRY(sink->start(Conf(rd_kafka_conf_dup(conf.get()))));
  return std::unique_ptr<Sink>(std::move(sink));
}

}  // namespace detent
