// The destination of a task over HTTP: a URL, headers, and the keys of a queue that sign the
// requests.
//
// This file checks only the text. Before each call, the deliverer decides whether the address may
// be called. URLs may contain only the bytes that RFC 3986 allows, so all parsers agree on the
// host. Headers that define how a request is sent are rejected, because the deliverer sets them.
// Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "task/limits.h"

namespace detent {

/// A header of a webhook's request, unchanged. The names in the headers of a task must differ in
/// more than the case of letters.
struct TaskHeader {
  std::string name;
  std::string value;

  friend bool operator==(const TaskHeader&, const TaskHeader&) = default;
};
/// Headers, in the order that the client gave.
using TaskHeaders = std::vector<TaskHeader>;

/// The destination of the tasks of a queue.
struct QueueWebhook {
  std::string url;
  /// Each key is "whsec_" and base64 of 24 to 64 bytes, as in Standard Webhooks. Every key signs
  /// each delivery of the queue, so that receivers can change from one key to another. Without
  /// keys, the server's own key signs. Secret: protocols show keys only through redacted().
  std::vector<std::string> keys = {};

  friend bool operator==(const QueueWebhook&, const QueueWebhook&) = default;
};

/// The text shown instead of a key.
inline constexpr std::string_view kRedactedWebhookKey = "whsec_…";
/// The same webhook with each key replaced by kRedactedWebhookKey.
QueueWebhook redacted(QueueWebhook webhook);

/// Rejects an invalid URL, and names `webhook`. A valid URL has the scheme http or https, a host,
/// and perhaps a port. It has no user info and no fragment, and at most kMaxWebhookBytes.
Result<void> validate_webhook_url(std::string_view url);
/// Rejects invalid headers, and names `headers`. There may be at most kMaxHeaders, with at most
/// kMaxHeadersBytes. Each name must be a token (RFC 9110, 5.6.2), must come once, and must not be a
/// header of the deliverer (is_delivery_header()). A value must be visible ASCII with spaces only
/// inside.
Result<void> validate_headers(const TaskHeaders& headers);
/// Rejects an invalid URL as above, more than kMaxWebhookKeys keys, or an invalid key, and names
/// `webhook`.
Result<void> validate(const QueueWebhook& webhook);

/// True if the deliverer sets this header itself: Host, Content-Length, Content-Type, headers of
/// the connection, User-Agent, and all headers that begin with Webhook-, Detent- or Proxy-. Ignores
/// the case of letters.
bool is_delivery_header(std::string_view name);

/// The value of a header, or null if there is none. Ignores the case of letters in the name.
const std::string* find_header(const TaskHeaders& headers, std::string_view name) noexcept;

/// True for `traceparent` and `tracestate`.
bool is_trace_header(std::string_view name) noexcept;
/// True if this is a `traceparent` of W3C Trace Context: version 00, or a later version with the
/// same beginning.
bool is_traceparent(std::string_view value) noexcept;
/// Adds the trace of a request to the task that it creates: `traceparent`, if it is well formed and
/// the headers have none, and then `tracestate`. A trace that would exceed the limits of a task is
/// left out, because a trace must not cause a rejection.
void keep_trace(TaskHeaders& headers, std::string_view traceparent, std::string_view tracestate);

}  // namespace detent
