#include "server/operate/webhooks.h"

#include <map>
#include <utility>

#include "base/log/log.h"
#include "delivery/webhook_keys.h"
#include "net/http_client/http_caller.h"
#include "server/operate/log_pace.h"

namespace detent::server {
namespace {

/// Logs the state of sinks at a limited rate. A sink can fail and recover repeatedly, for example
/// when one partition of a topic has no leader. A failure is logged at intervals, whatever its
/// reasons. A recovery is logged only if the failure before it was logged.
class SinkLog {
 public:
  explicit SinkLog(Clock& clock) : clock_(clock) {}

  void operator()(const std::string& name, const Result<void>& state) {
    Line& line = lines_[name];
    if (!state && line.pace.is_worth_a_line("down", clock_.now())) {
      line.is_told_down = true;
      log_warning("a sink does not accept tasks; its queues wait",
                  {{"sink", name},
                   {"cause", state.error().message},
                   {"action", "check the broker; the server tries again by itself"}});
    } else if (state && std::exchange(line.is_told_down, false)) {
      log_info("a sink accepts tasks again", {{"sink", name}});
    }
  }

 private:
  struct Line {
    LogPace pace;
    bool is_told_down = false;
  };

  Clock& clock_;
  std::map<std::string, Line> lines_;
};

}  // namespace

Result<std::unique_ptr<Webhooks>> Webhooks::start(const WebhookOptions& options,
                                                  EngineThread& engine, Clock& clock) {
  ASSIGN_OR_RETURN(AddressGuard guard, AddressGuard::parse(options.allow));
  const bool has_own_file = options.keys.empty() && !options.data.empty();
  std::unique_ptr<Webhooks> webhooks(new Webhooks(
      engine, options.tracer, has_own_file ? options.data / "webhook.key" : options.keys));
  const std::filesystem::path& file = webhooks->keys_file_;
  WebhookKeys keys;
  if (has_own_file) {
    ASSIGN_OR_RETURN(keys, load_or_make_webhook_key(file));
  } else if (!file.empty()) {
    Result<WebhookKeys> given = load_webhook_keys(file);
    if (!given) return with_context("--webhook-keys", std::move(given).error());
    keys = *std::move(given);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<net::HttpCaller> caller,
                   net::HttpCaller::start({}, webhooks->resolver_,
                                          [guard = std::move(guard)](const net::IpAddress& address,
                                                                     std::uint16_t port) {
                                            return guard.check(address, port);
                                          }));
  webhooks->deliverer_ =
      std::make_unique<Deliverer>(webhooks->source_, std::move(caller), clock, std::move(keys),
                                  DelivererOptions{.limits = {.max_all_calls = options.max_calls},
                                                   .sinks = options.sinks,
                                                   .on_sink_turn = SinkLog(clock),
                                                   .tracer = options.tracer});
  return webhooks;
}

Result<void> Webhooks::reload_keys() {
  ASSIGN_OR_RETURN(WebhookKeys keys, load_webhook_keys(keys_file_));
  deliverer_->set_keys(std::move(keys));
  return ok();
}

}  // namespace detent::server
