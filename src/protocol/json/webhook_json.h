// Webhooks and headers as JSON in requests, answers and dumps. See task/webhook.h.
#pragma once

#include <string>

#include "base/result.h"
#include "protocol/json/json_fields.h"
#include "protocol/json/json_writer.h"
#include "task/task.h"

namespace detent::json {

/// Reads an object with a string for each header. Checks the number of headers here;
/// validate_headers() checks names and values.
Result<TaskHeaders> read_headers(const JsonField& field);
/// Reads a URL, or {"url":…,"keys":[…]} with optional keys.
Result<QueueWebhook> read_queue_webhook(const JsonField& field);

/// Writes the members "webhook" and "headers" of a task. Leaves out a member without a value.
void write_webhook(JsonWriter& writer, const std::string& webhook, const TaskHeaders& headers);
/// Writes the member "headers". Leaves it out if there are no headers.
void write_headers(JsonWriter& writer, const TaskHeaders& headers);
/// Writes the value {"url":…,"keys":[…]}. The keys are written in plain; hide them with redacted().
void write_queue_webhook(JsonWriter& writer, const QueueWebhook& webhook);

}  // namespace detent::json
