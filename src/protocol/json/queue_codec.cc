#include "protocol/json/queue_codec.h"

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "protocol/json/field_table.h"
#include "protocol/json/queue_fields.h"
#include "task/sink_name.h"

namespace detent::json {

namespace {

constexpr std::size_t kQueueBytes = 400;  // the approximate size of a queue in an answer

using CountFields = AnswerBody<std::uint64_t, Required<"count", std::identity{}>>;

/// The patch that turns any settings into `settings`. The keys of a webhook are hidden.
QueuePatch patch_to(const QueueSettings& settings) {
  QueuePatch patch;
  SettingFields::each([&]<class One>(One) { One::type::add_to(patch, settings); });
  patch.sink.emplace();
  if (!settings.webhook) return patch;
  if (const auto sink = sink_of(settings.webhook->url); !sink.empty()) {
    patch.sink->emplace(sink);
    patch.webhook->reset();
  } else {
    patch.webhook->emplace(redacted(*settings.webhook));
  }
  return patch;
}

/// The settings of a queue, in an answer.
struct SettingsField : Required<"settings", &QueueView::settings> {
  static Result<void> read(auto /*form*/, const JsonField* slot, QueueView& view) {
    if (!slot->given()) return missing_field(*slot);
    QueuePatch patch;
    TRY((read_into<SettingFields>(kRequest, patch, *slot->value, UnknownFields::skip)));
    view.settings = patch.applied_to({});
    return ok();
  }
  static void write(auto /*form*/, JsonWriter& writer, const QueueView& view) {
    write_object<SettingFields>(kRequest, writer.name("settings"), patch_to(view.settings));
  }
};
using QueueFields = AnswerBody<QueueView, Part<&QueueView::stats, QueueStatsFields>,
                               Required<"bytes", &QueueView::bytes>, SettingsField>;

}  // namespace

QueueSettings QueuePatch::applied_to(QueueSettings settings) const {
  std::optional<QueueWebhook> kept = settings.webhook;
  SettingFields::each([&]<class One>(One) { One::type::apply(*this, settings); });
  const bool has_sink = kept && !sink_of(kept->url).empty();
  // `"webhook":null` removes only an HTTP webhook, and `"sink":null` only a sink. A client that
  // does not know sinks can therefore not remove one by mistake.
  if (webhook && !*webhook && has_sink) settings.webhook = std::move(kept);
  if (sink && *sink) {
    settings.webhook = QueueWebhook{.url = std::string(kSinkScheme) + **sink};
  } else if (sink && has_sink && !(webhook && *webhook)) {
    settings.webhook.reset();
  }
  return settings;
}

Result<QueuePatch> parse_queue_patch(std::string_view body) {
  ASSIGN_OR_RETURN(QueuePatch patch, SettingFields::parse(body));
  const bool has_webhook = patch.webhook && *patch.webhook;
  if (has_webhook && (*patch.webhook)->url.starts_with(kSinkScheme)) {
    return Error{ErrorCode::invalid_argument, "use the field sink for a sink, not a URL",
                 "webhook"};
  }
  if (has_webhook && patch.sink && *patch.sink) {
    return Error{ErrorCode::invalid_argument, "a queue has a webhook or a sink, not both", "sink"};
  }
  return patch;
}

std::string render_queue_patch(const QueuePatch& patch) { return SettingFields::render(patch); }

Result<void> parse_nothing(std::string_view body) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) return ok();
  JsonDocument document;
  return take_fields(document, body, {}, UnknownFields::refuse);
}

std::string render_queue(const QueueView& view) { return QueueFields::render(view); }

Result<QueueView> parse_queue(std::string_view body) { return QueueFields::parse(body); }

std::string render_queues(std::span<const QueueView> views,
                          const std::optional<std::string>& cursor) {
  std::string body;
  body.reserve(views.size() * kQueueBytes);
  JsonWriter writer(body);
  Objects<QueueFields>::write(kAnswer, writer.begin_object().name("queues"), views);
  if (cursor) writer.name("cursor").string_or_null(*cursor);
  writer.end_object();
  return body;
}

Result<std::vector<QueueView>> parse_queues(std::string_view body) {
  using Views = std::vector<QueueView>;
  return AnswerBody<Views, Required<"queues", std::identity{}, Objects<QueueFields>>>::parse(body);
}

Result<QueueListAnswer> parse_queue_page(std::string_view body) {
  return AnswerBody<QueueListAnswer,
                    Required<"queues", &QueueListAnswer::queues, Objects<QueueFields>>,
                    Required<"cursor", &QueueListAnswer::cursor, Cursor>>::parse(body);
}

std::string render_removed_queue(std::string_view name) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object().name("queue").string(name).name("removed").raw("true").end_object();
  return body;
}

std::string render_count(std::uint64_t count) { return CountFields::render(count); }

Result<std::uint64_t> parse_count(std::string_view body) { return CountFields::parse(body); }

}  // namespace detent::json
