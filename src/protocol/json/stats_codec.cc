#include "protocol/json/stats_codec.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "protocol/json/field_table.h"
#include "protocol/json/queue_fields.h"
#include "protocol/json/task_fields.h"

namespace detent::json {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMostBuckets = 64;

using CounterFields =
    Table<Required<"scheduled", &TaskCounters::scheduled>, Required<"fired", &TaskCounters::fired>,
          Required<"leased", &TaskCounters::leased>,
          Required<"completed", &TaskCounters::completed>,
          Required<"failed", &TaskCounters::failed>,
          Required<"cancelled", &TaskCounters::cancelled>, Required<"dead", &TaskCounters::dead>,
          Required<"leases_expired", &TaskCounters::leases_expired>,
          Required<"conflicts", &TaskCounters::conflicts>,
          Required<"quarantined", &TaskCounters::quarantined>>;
using LateFields = Table<Required<"tasks", &LateCounts::tasks>, Optional<"ms", &LateCounts::time>>;

/// The tasks of the external scheduler, if there is one.
struct ExternalField : Sparse<"external", &ServerStats::away> {
  using Fields = Table<Required<"tasks", &ServerStats::away>,
                       Optional<"lost", &ServerStats::is_away_lost, IsTrue>>;
  static Result<void> read(auto form, const JsonField* slot, ServerStats& stats) {
    return slot->given() ? Object<Fields>::read(form, *slot, stats) : ok();
  }
  static void write(auto form, JsonWriter& writer, const ServerStats& stats) {
    if (stats.away) write_object<Fields>(form, writer.name("external"), stats);
  }
};

/// The figures of the whole server. An access token for some queues does not see them. Older
/// servers do not send all of them.
using ServerTable =
    Table<Optional<"loaded", &ServerStats::loaded>,
          Optional<"waiting_workers", &ServerStats::waiting_workers>,
          Optional<"schedules", &ServerStats::schedules>, ExternalField,
          Sparse<"data_free_bytes", &ServerStats::data_free_bytes, Count>,
          Sparse<"data_min_free_bytes", &ServerStats::data_min_free_bytes, Count>,
          Optional<"refuses_tasks", &ServerStats::refuses_tasks, IsTrue>,
          Optional<"counters", &ServerStats::counters, Object<CounterFields>>,
          Optional<"lateness_counts", &ServerStats::lateness, Array<void, kMostBuckets>>,
          Optional<"late", &ServerStats::late, Object<LateFields>>>;
struct ServerFields : ServerTable {
  static Result<void> read(auto form, const JsonField* slots, ServerStats& stats) {
    const std::span all(slots, kSlots);
    const auto counters = std::ranges::find(all, "counters", &JsonField::name);
    stats.scope = counters->given() ? StatsScope::server : StatsScope::some_queues;
    return ServerTable::read(form, slots, stats);
  }
  static void write(auto form, JsonWriter& writer, const ServerStats& stats) {
    if (stats.scope == StatsScope::server) ServerTable::write(form, writer, stats);
  }
};
using StatsFields = AnswerBody<ServerStats, Required<"version", &ServerStats::version>,
                               Required<"uptime_ms", &ServerStats::uptime>, ServerFields,
                               Optional<"tasks", &ServerStats::all, Object<TaskCountFields>>,
                               Optional<"queue_count", &ServerStats::queue_count>,
                               Required<"queues", &ServerStats::queues, Objects<QueueStatsFields>>>;

using ForecastFields = AnswerBody<
    Forecast, Required<"from", &Forecast::from>,
    Required<"bin_ms", &Forecast::bin, Range<1, std::uint64_t{kMaxForecastSpan.count()}>>,
    Required<"counts", &Forecast::counts, Array<void, kMaxForecastBins>>,
    Required<"overdue", &Forecast::overdue>, Required<"later", &Forecast::later>,
    Required<"coarse", &Forecast::coarse>, Sparse<"counted_to", &Forecast::counted_to>>;

using Slot = WheelView::Slot;
using SlotFields = Table<Required<"slot", &Slot::index>, Required<"from", &Slot::from>,
                         Required<"until", &Slot::until>, Required<"count", &Slot::count, Count>>;
struct Level {
  unsigned level = 0;
  milliseconds width{0};
  std::vector<Slot> slots;
};
using LevelFields = Table<OnlyWritten<Required<"level", &Level::level>>,
                          OnlyWritten<Required<"slot_ms", &Level::width>>,
                          Required<"slots", &Level::slots, Objects<SlotFields>>>;

/// The levels of a wheel, each with the slots that hold timers.
struct LevelsField : Required<"levels", std::identity{}> {
  static Result<void> read(auto form, const JsonField* slot, WheelView& wheel) {
    std::vector<Level> levels;
    TRY(Objects<LevelFields>::read(form, *slot, levels));
    for (Level& level : levels) {
      for (Slot& one : level.slots) {
        one.level = wheel.level_count;
        wheel.slots.push_back(one);
      }
      ++wheel.level_count;
    }
    return ok();
  }
  static void write(auto form, JsonWriter& writer, const WheelView& wheel) {
    std::vector<Level> levels;
    milliseconds width = wheel.tick;
    for (unsigned i = 0; i < wheel.level_count; ++i, width *= wheel.slots_per_level) {
      levels.push_back({.level = i, .width = width, .slots = {}});
    }
    for (const Slot& slot : wheel.slots) {
      if (slot.level < levels.size()) levels[slot.level].slots.push_back(slot);
    }
    Objects<LevelFields>::write(form, writer.name("levels"), levels);
  }
};
using WheelFields = AnswerBody<WheelView, Required<"now", &WheelView::now>,
                               Required<"tick_ms", &WheelView::tick, Range<1, kMaxInt64>>,
                               Required<"slots_per_level", &WheelView::slots_per_level,
                                        Range<1, std::numeric_limits<unsigned>::max()>>,
                               Required<"timers", &WheelView::timers, Count>, LevelsField>;

}  // namespace

std::string render_stats(const ServerStats& stats) { return StatsFields::render(stats); }

Result<ServerStats> parse_stats(std::string_view body) { return StatsFields::parse(body); }

std::string render_forecast(const Forecast& forecast) { return ForecastFields::render(forecast); }

Result<Forecast> parse_forecast(std::string_view body) { return ForecastFields::parse(body); }

std::string render_wheel(const WheelView& wheel) { return WheelFields::render(wheel); }

Result<WheelView> parse_wheel(std::string_view body) { return WheelFields::parse(body); }

}  // namespace detent::json
