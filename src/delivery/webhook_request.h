// What is POSTed for a task: its payload as it is stored, the headers it asks for, who it is, and a
// signature over it. docs/guides/webhooks.md describes it to receivers.
#pragma once

#include <chrono>

#include "delivery/webhook_signature.h"
#include "delivery/webhook_source.h"
#include "net/http_message.h"

namespace detent {

/// The webhook-id of a task: the same at every attempt, so that a receiver knows what it has seen.
std::string webhook_id(TaskId id);

/// The request but for its target. Of the task's headers those are left out that are made here or
/// by the connection: a task cannot forge them. `now` is when it is signed.
net::HttpRequest make_webhook_request(const LeasedTask& leased, const WebhookKeys& keys,
                                      std::chrono::sys_seconds now);

}  // namespace detent
