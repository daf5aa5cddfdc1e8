// Webhooks and headers as JSON, in requests, answers and dumps: see task/webhook.h.
#pragma once

#include <string>

#include "base/result.h"
#include "protocol/json/json_fields.h"
#include "protocol/json/json_writer.h"
#include "task/task.h"

namespace detent::json {

/// An object whose members are headers, with a string each. What names and values may be is checked
/// by validate_headers(); that there are not too many, here.
Result<TaskHeaders> read_headers(const JsonField& field);
/// A URL alone, or {"url":…,"keys":[…]} with the keys left out or not.
Result<QueueWebhook> read_queue_webhook(const JsonField& field);

/// The members "webhook" and "headers" of a task; each only when it has one.
void write_webhook(JsonWriter& writer, const std::string& webhook, const TaskHeaders& headers);
/// The member "headers" alone, likewise.
void write_headers(JsonWriter& writer, const TaskHeaders& headers);
/// The value {"url":…,"keys":[…]}, with the keys as they are: see redacted().
void write_queue_webhook(JsonWriter& writer, const QueueWebhook& webhook);

}  // namespace detent::json
