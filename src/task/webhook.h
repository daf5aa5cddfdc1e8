// Where a task is delivered to over HTTP, and what it takes along: a URL, headers, and the keys of
// a queue that sign the requests.
//
// Checked here is what can be told from the text alone; whether an address may be called is the
// deliverer's to decide, when it calls. Only what RFC 3986 allows in a URL passes, so no two
// readers of one can differ about its host; and headers that say how a request is made are refused,
// because the deliverer makes them. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "task/limits.h"

namespace detent {

/// A header of a webhook's request, as it was given. In a task no two have the same name, whatever
/// the case of its letters.
struct TaskHeader {
  std::string name;
  std::string value;

  friend bool operator==(const TaskHeader&, const TaskHeader&) = default;
};
/// In the order given.
using TaskHeaders = std::vector<TaskHeader>;

/// Where the tasks of a queue are delivered to.
struct QueueWebhook {
  std::string url;
  /// Each "whsec_" and base64 of 24 to 64 bytes, as Standard Webhooks writes them. Every one signs
  /// all that is delivered from the queue, so that receivers can change from one to the next; with
  /// none the server's own key signs. Secret: no protocol shows them, see redacted().
  std::vector<std::string> keys = {};

  friend bool operator==(const QueueWebhook&, const QueueWebhook&) = default;
};

/// What is shown for a key.
inline constexpr std::string_view kRedactedWebhookKey = "whsec_…";
/// The same with nothing secret in it: as many keys, none of them told.
QueueWebhook redacted(QueueWebhook webhook);

/// Refuses, naming `webhook`, what is no URL of http or https with a host (and a port), or has user
/// info or a fragment, or is above kMaxWebhookBytes.
Result<void> validate_webhook_url(std::string_view url);
/// Refuses, naming `headers`: more than kMaxHeaders or kMaxHeadersBytes; names that are no token
/// (RFC 9110, 5.6.2), come twice, or are the deliverer's own, as is_delivery_header(); values of
/// other than visible ASCII and spaces between it.
Result<void> validate_headers(const TaskHeaders& headers);
/// Refuses, naming `webhook`: as the URL above; more than kMaxWebhookKeys keys, or one that is
/// none.
Result<void> validate(const QueueWebhook& webhook);

/// Whether the deliverer makes this header itself, in any case of its letters: Host,
/// Content-Length, Content-Type, those of a connection, User-Agent, and all that begin with
/// Webhook-, Detent- or Proxy-.
bool is_delivery_header(std::string_view name);

/// The value of a header of this name, in any case of its letters; null when there is none.
const std::string* find_header(const TaskHeaders& headers, std::string_view name) noexcept;

/// `traceparent` or `tracestate`.
bool is_trace_header(std::string_view name) noexcept;
/// Whether this is a `traceparent` of W3C Trace Context: version 00, or a later one that begins as
/// that does.
bool is_traceparent(std::string_view value) noexcept;
/// Keeps the trace of a request with the task it makes: `traceparent`, when it is well formed and
/// the headers name none, and with it `tracestate`. What would be more than a task may have is left
/// out: a trace is no reason to refuse a task.
void keep_trace(TaskHeaders& headers, std::string_view traceparent, std::string_view tracestate);

}  // namespace detent
