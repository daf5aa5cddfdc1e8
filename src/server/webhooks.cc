#include "server/webhooks.h"

#include <utility>

#include "base/log/log.h"
#include "delivery/webhook_keys.h"
#include "net/http_caller.h"

namespace detent::server {
namespace {

void log_sink_turn(const std::string& name, const Result<void>& state) {
  if (state) return log_info("a sink takes tasks again", {{"sink", name}});
  log_warning("a sink takes no tasks; its queues wait",
              {{"sink", name}, {"cause", state.error().message}});
}

}  // namespace

Result<std::unique_ptr<Webhooks>> Webhooks::start(const WebhookOptions& options,
                                                  EngineThread& engine, Clock& clock) {
  ASSIGN_OR_RETURN(AddressGuard guard, AddressGuard::parse(options.allow));
  const bool has_own_file = options.keys.empty() && !options.data.empty();
  std::unique_ptr<Webhooks> webhooks(
      new Webhooks(engine, has_own_file ? options.data / "webhook.key" : options.keys));
  const std::filesystem::path& file = webhooks->keys_file_;
  WebhookKeys keys;
  if (has_own_file) {
    ASSIGN_OR_RETURN(keys, load_or_make_webhook_key(file));
  } else if (!file.empty()) {
    ASSIGN_OR_RETURN(keys, load_webhook_keys(file));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<net::HttpCaller> caller,
                   net::HttpCaller::start({}, webhooks->resolver_,
                                          [guard = std::move(guard)](const net::IpAddress& address,
                                                                     std::uint16_t port) {
                                            return guard.check(address, port);
                                          }));
  webhooks->deliverer_ = std::make_unique<Deliverer>(
      webhooks->source_, std::move(caller), clock, std::move(keys),
      DelivererOptions{.sinks = options.sinks, .on_sink_turn = log_sink_turn});
  return webhooks;
}

Result<void> Webhooks::reload_keys() {
  ASSIGN_OR_RETURN(WebhookKeys keys, load_webhook_keys(keys_file_));
  deliverer_->set_keys(std::move(keys));
  return ok();
}

}  // namespace detent::server
