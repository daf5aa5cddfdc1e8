// An acknowledgement is the answer to a request (ADR-1 of nats-architecture-and-design: the JSON
// API of JetStream). Each message therefore names its own subject for the answer: an inbox and a
// number.
#include "sinks/nats_sink.h"

#include <nats/nats.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "sinks/pending_sends.h"

namespace detent {
namespace {

constexpr std::int64_t kReconnectWaitMs = 250;
/// How long a server that does not read may block a send; libnats then connects again.
constexpr std::int64_t kWriteDeadlineMs = 2'000;

/// Errors of JetStream about the message itself (errors.json of nats-server): the message or its
/// headers are larger than the stream allows.
constexpr std::array<std::int64_t, 2> kRefusals{10'054, 10'097};

Error unavailable(std::string message) { return {ErrorCode::unavailable, std::move(message), ""}; }

template <class T, void (*Free)(T*)>
struct Freed {
  void operator()(T* it) const noexcept { Free(it); }
};
template <class T, void (*Free)(T*)>
using Owned = std::unique_ptr<T, Freed<T, Free>>;
using Options = Owned<natsOptions, natsOptions_Destroy>;
using Connection = Owned<natsConnection, natsConnection_Destroy>;
using Subscription = Owned<natsSubscription, natsSubscription_Destroy>;
using Message = Owned<natsMsg, natsMsg_Destroy>;
using Inbox = Owned<natsInbox, natsInbox_Destroy>;

Result<void> check(natsStatus status) {
  if (status == NATS_OK) return ok();
  return Error{ErrorCode::internal, std::string("libnats: ") + natsStatus_GetText(status), ""};
}

/// Returns the number of the member `name` in the JSON answer of a stream, {"stream":…,"seq":…} or
/// {"error":{"code":…,…}}; 0 if it is missing. No other member has such a name, and no string of
/// the answer comes from a client.
std::int64_t number_of(std::string_view json, std::string_view name) {
  const std::size_t at = json.find(name);
  if (at == std::string_view::npos) return 0;
  json.remove_prefix(at + name.size());
  json.remove_prefix(std::min(json.find_first_not_of(' '), json.size()));
  std::int64_t number = 0;
  std::from_chars(json.data(), json.data() + json.size(), number);
  return number;
}

Result<void> read_answer(std::string_view json) {
  if (json.find("\"error\":") == std::string_view::npos) {
    if (number_of(json, "\"seq\":") > 0) return ok();
    return unavailable("the answer does not come from a JetStream stream");
  }
  const std::int64_t number = number_of(json, "\"err_code\":");
  const bool is_refusal = std::ranges::find(kRefusals, number) != kRefusals.end();
  return Error{is_refusal ? ErrorCode::invalid_argument : ErrorCode::unavailable,
               "the stream answers: " + std::string(json), ""};
}

/// Headers with this name are commands to the stream, for example to remove all its messages
/// (Nats-Rollup). A client that schedules a task must not send such commands.
bool is_command(std::string_view name) {
  constexpr std::string_view kPrefix = "nats-";
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(name.substr(0, kPrefix.size()), kPrefix, {}, lower);
}

class NatsSink final : public Sink {
 public:
  explicit NatsSink(std::string subject) : subject_(std::move(subject)) {}
  ~NatsSink() override {
    if (acks_) natsSubscription_Unsubscribe(acks_.get());
    if (connection_) natsConnection_Close(connection_.get());
    await_last_callback();
  }
  NatsSink(const NatsSink&) = delete;
  NatsSink& operator=(const NatsSink&) = delete;

  Result<void> start(const SinkAddress& address) {
    ASSIGN_OR_RETURN(const Options options, make_options(address));
    natsConnection* raw = nullptr;
    const natsStatus status = natsConnection_Connect(&raw, options.get());
    connection_.reset(raw);
    if (connection_) begin_callbacks();
    if (status != NATS_NOT_YET_CONNECTED) TRY(check(status));
    natsInbox* inbox = nullptr;
    TRY(check(natsInbox_Create(&inbox)));
    inbox_ = std::string(Inbox(inbox).get()) + ".";
    natsSubscription* acks = nullptr;
    TRY(check(natsConnection_Subscribe(
        &acks, connection_.get(), (inbox_ + "*").c_str(),
        [](natsConnection*, natsSubscription*, natsMsg* message, void* self) {
          static_cast<NatsSink*>(self)->note_answer(Message(message).get());
        },
        this)));
    acks_.reset(acks);
    const auto on_complete = [](void* self) { static_cast<NatsSink*>(self)->end_callbacks(); };
    TRY(check(natsSubscription_SetOnCompleteCB(acks, on_complete, this)));
    begin_callbacks();
    // As many answers as messages are under way: libnats is not to drop any.
    return check(natsSubscription_SetPendingLimits(acks, -1, -1));
  }

  void send(SinkMessage message, Done done) override {
    if (natsConnection_Status(connection_.get()) != NATS_CONN_STATUS_CONNECTED) {
      return done(unavailable("there is no connection to NATS"));
    }
    const std::uint64_t number = sends_.add(std::move(done));
    if (auto sent = publish(message, inbox_ + std::to_string(number)); !sent) {
      sends_.finish(number, std::move(sent));
    }
  }

 private:
  Result<Options> make_options(const SinkAddress& address) {
    natsOptions* raw = nullptr;
    TRY(check(natsOptions_Create(&raw)));
    Options options(raw);
    std::vector<std::string> urls;
    for (const std::string& broker : address.brokers) urls.push_back("nats://" + broker);
    std::vector<const char*> servers;
    servers.reserve(urls.size());
    for (const std::string& url : urls) servers.push_back(url.c_str());
    TRY(check(natsOptions_SetServers(raw, servers.data(), static_cast<int>(servers.size()))));
    if (!address.password.empty()) {
      TRY(check(natsOptions_SetUserInfo(raw, address.user.c_str(), address.password.c_str())));
    }
    TRY(check(natsOptions_SetName(raw, "detent")));
    TRY(check(natsOptions_SetAllowReconnect(raw, true)));
    TRY(check(natsOptions_SetMaxReconnect(raw, -1)));
    TRY(check(natsOptions_SetReconnectWait(raw, kReconnectWaitMs)));
    TRY(check(natsOptions_SetWriteDeadline(raw, kWriteDeadlineMs)));
    const auto ignore = [](natsConnection*, void*) {};
    TRY(check(natsOptions_SetRetryOnFailedConnect(raw, true, ignore, nullptr)));
    const auto on_lost = [](natsConnection*, void* self) {
      static_cast<NatsSink*>(self)->sends_.fail_all(unavailable("the connection to NATS is lost"));
    };
    TRY(check(natsOptions_SetDisconnectedCB(raw, on_lost, this)));
    const auto on_closed = [](natsConnection*, void* self) {
      static_cast<NatsSink*>(self)->end_callbacks();
    };
    TRY(check(natsOptions_SetClosedCB(raw, on_closed, this)));
    return options;
  }

  Result<void> publish(const SinkMessage& message, const std::string& reply) {
    natsMsg* raw = nullptr;
    TRY(check(natsMsg_Create(&raw, subject_.c_str(), reply.c_str(), message.body.data(),
                             static_cast<int>(message.body.size()))));
    const Message owned(raw);
    // "NATS/1.0", a line each, and an empty one.
    std::size_t size = message.body.size() + 12;
    const auto set = [raw, &size](const std::string& name, const std::string& value) {
      size += name.size() + value.size() + 4;
      return check(natsMsgHeader_Set(raw, name.c_str(), value.c_str()));
    };
    TRY(set("Nats-Msg-Id", message.id));
    for (const auto& [name, value] : message.fields) {
      if (!is_command(name)) TRY(set(name, value));
    }
    // libnats counts the body only; the server would close the connection for the headers' bytes.
    const std::int64_t most = natsConnection_GetMaxPayload(connection_.get());
    if (most > 0 && size > static_cast<std::size_t>(most)) {
      return Error{ErrorCode::too_large,
                   "the message has " + std::to_string(size) + " bytes; NATS accepts at most " +
                       std::to_string(most) + " bytes",
                   ""};
    }
    const natsStatus status = natsConnection_PublishMsg(connection_.get(), raw);
    if (status == NATS_OK) return ok();
    return unavailable(std::string("libnats: ") + natsStatus_GetText(status));
  }

  void note_answer(natsMsg* message) {
    std::string_view number_text = natsMsg_GetSubject(message);
    number_text.remove_prefix(std::min(inbox_.size(), number_text.size()));
    std::uint64_t number = 0;
    std::from_chars(number_text.data(), number_text.data() + number_text.size(), number);
    if (natsMsg_IsNoResponders(message)) {
      return sends_.finish(number, unavailable("no JetStream stream has the subject " + subject_));
    }
    const auto size = static_cast<std::size_t>(natsMsg_GetDataLength(message));
    sends_.finish(number, read_answer({natsMsg_GetData(message), size}));
  }

  // The threads of libnats that call this: of the connection and of the subscription. Each says
  // when it has called for the last time.
  void begin_callbacks() {
    const MutexLock lock(mutex_);
    ++callers_;
  }
  void end_callbacks() {
    const MutexLock lock(mutex_);
    --callers_;
    changed_.notify_all();
  }
  void await_last_callback() {
    const MutexLock lock(mutex_);
    while (callers_ > 0) changed_.wait(mutex_);
  }

  const std::string subject_;
  std::string inbox_;  // set by start()

  PendingSends sends_;

  Mutex mutex_;
  CondVar changed_;
  int callers_ DETENT_GUARDED_BY(mutex_) = 0;

  Connection connection_;
  Subscription acks_;
};

}  // namespace

Result<std::unique_ptr<Sink>> make_nats_sink(const SinkAddress& address) {
  auto sink = std::make_unique<NatsSink>(address.target);
  TRY(sink->start(address));
  return std::unique_ptr<Sink>(std::move(sink));
}

}  // namespace detent
