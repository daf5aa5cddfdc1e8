// Creates the POST request for a task: the stored payload, the task's own headers, headers that
// identify the task, and a signature. docs/guides/webhooks.md describes it to receivers.
#pragma once

#include <chrono>

#include "delivery/webhook_signature.h"
#include "delivery/webhook_source.h"
#include "net/message/http_message.h"

namespace detent {

/// The webhook-id of a task. It is the same for every attempt, so that a receiver recognizes
/// repeats.
std::string webhook_id(TaskId id);

/// The request without its target. Headers of the task are left out if the deliverer or the
/// connection sets them, so a task cannot forge them. `now` is the time of the signature.
net::HttpRequest make_webhook_request(const LeasedTask& leased, const WebhookKeys& keys,
                                      std::chrono::sys_seconds now);

}  // namespace detent
