// Field tables of the counts and settings of a queue, for answers, requests, statistics and dumps.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>

#include "protocol/json/field_table.h"
#include "protocol/json/queue_codec.h"
#include "protocol/json/task_fields.h"
#include "task/queue_settings.h"
#include "task/task_stats.h"

namespace detent::json {

/// The number of tasks in each state.
using TaskCountFields =
    Table<Required<"scheduled", &QueueStats::scheduled>, Required<"ready", &QueueStats::ready>,
          Required<"leased", &QueueStats::leased>, Required<"dead", &QueueStats::dead>>;
/// The counts of one queue.
using QueueStatsFields =
    Table<Required<"queue", &QueueStats::queue>, TaskCountFields,
          Nullable<"oldest_ready_age_ms", &QueueStats::oldest_ready_age>,
          Nullable<"last_handed_out_age_ms", &QueueStats::last_handed_out_age>>;

/// A setting: `One` is its field in QueueSettings, which a dump has. `kPatch` is the member with
/// its new value.
template <class One, auto kSetting, auto kPatch>
struct Setting : One {
  using One::read;
  using One::write;

  /// Null means the default.
  static Result<void> read(auto form, const JsonField* slots, QueuePatch& patch) {
    const auto given = std::count_if(slots, slots + One::kSlots, std::mem_fn(&JsonField::given));
    const auto is_null = [](const JsonField& slot) { return slot.is(JsonKind::null); };
    if (given == 0) return ok();
    QueueSettings settings;
    if (given > 1 || std::none_of(slots, slots + One::kSlots, is_null)) {
      TRY((One::read(form, slots, settings)));
    }
    (patch.*kPatch).emplace(std::move(settings.*kSetting));
    return ok();
  }
  static void write(auto form, JsonWriter& writer, const QueuePatch& patch) {
    if (!(patch.*kPatch)) return;
    writer.name(One::template kNames<Form::dump>.back());
    write_value<typename One::ValueCodec>(form, writer, *(patch.*kPatch));
  }
  static void apply(const QueuePatch& patch, QueueSettings& settings) {
    if (patch.*kPatch) settings.*kSetting = *(patch.*kPatch);
  }
  static void add_to(QueuePatch& patch, const QueueSettings& settings) {
    (patch.*kPatch).emplace(settings.*kSetting);
  }
};
template <FixedText kName, auto kSetting, auto kPatch, class C = void>
using Plain = Setting<Sparse<kName, kSetting, C>, kSetting, kPatch>;
template <FixedText kName, auto kSetting, auto kPatch, const auto& kLongest, Presences kPresences>
using Length = Setting<Duration<kName, kSetting, kLongest, kPresences>, kSetting, kPatch>;

/// A setting that QueueSettings keeps as a webhook.
struct SinkSetting : Sparse<"sink", &QueuePatch::sink> {
  template <Form kForm>
  static constexpr std::array<std::string_view, kSlots> kNames{kForm == Form::dump ? "" : "sink"};
  static Result<void> read(auto form, const JsonField* slot, QueuePatch& patch) {
    if (!slot->is(JsonKind::null)) return Field::read(form, slot, patch);
    patch.sink.emplace();
    return ok();
  }
  static Result<void> read(auto /*form*/, const JsonField* /*slot*/, QueueSettings& /*settings*/) {
    return ok();
  }
  static void write(auto form, JsonWriter& writer, const QueuePatch& patch) {
    Field::write(form, writer, patch);
  }
  static void write(auto /*form*/, JsonWriter& /*writer*/, const QueueSettings& /*settings*/) {}
  static void apply(const QueuePatch& /*patch*/, QueueSettings& /*settings*/) {}
  static void add_to(QueuePatch& /*patch*/, const QueueSettings& /*settings*/) {}
};

using SettingFields =
    RequestBody<QueuePatch,
                Setting<Required<"paused", &QueueSettings::paused>, &QueueSettings::paused,
                        &QueuePatch::paused>,
                Plain<"max_attempts", &QueueSettings::max_attempts, &QueuePatch::max_attempts,
                      Range<1, kMaxAttempts>>,
                Length<"visibility_timeout", &QueueSettings::visibility_timeout,
                       &QueuePatch::visibility_timeout, kMaxVisibilityTimeout, kSparse>,
                Plain<"backoff", &QueueSettings::backoff, &QueuePatch::backoff>,
                Length<"retention", &QueueSettings::retention, &QueuePatch::retention,
                       kMaxRetention, kRequired>,
                Length<"key_retention", &QueueSettings::key_retention, &QueuePatch::key_retention,
                       kMaxRetention, kRequired>,
                Plain<"max_tasks", &QueueSettings::max_tasks, &QueuePatch::max_tasks>,
                Plain<"max_bytes", &QueueSettings::max_bytes, &QueuePatch::max_bytes>,
                Plain<"rate", &QueueSettings::rate, &QueuePatch::rate, Range<1, kMaxRate>>,
                Plain<"concurrency", &QueueSettings::concurrency, &QueuePatch::concurrency,
                      Range<1, kMaxConcurrency>>,
                Plain<"webhook", &QueueSettings::webhook, &QueuePatch::webhook>, SinkSetting,
                Plain<"partitions", &QueueSettings::partitions, &QueuePatch::partitions,
                      Range<1, kMaxPartitions>>>;

}  // namespace detent::json
