#include "server/operate/webhooks.h"

#include <utility>

#include "delivery/webhook_keys.h"
#include "net/http_client/http_caller.h"

namespace detent::server {
namespace {

DelivererOptions deliverer_options(const WebhookOptions& options) {
  DelivererOptions made{.limits = {.max_all_calls = options.max_calls},
                        .sinks = options.sinks,
                        .tracer = options.tracer};
  if (DeliveryLog* const log = options.log) {
    made.on_sink_turn = [log](const std::string& sink, const Result<void>& state) {
      log->sink_turned(sink, state);
    };
    made.on_called = [log](const WebhookResult& result) { log->webhook_called(result); };
  }
  return made;
}

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
  webhooks->deliverer_ = std::make_unique<Deliverer>(webhooks->source_, std::move(caller), clock,
                                                     std::move(keys), deliverer_options(options));
  return webhooks;
}

Result<void> Webhooks::reload_keys() {
  ASSIGN_OR_RETURN(WebhookKeys keys, load_webhook_keys(keys_file_));
  deliverer_->set_keys(std::move(keys));
  return ok();
}

}  // namespace detent::server
