#include "base/log/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <utility>

#include "base/log/log_line.h"
#include "base/wall_time.h"

namespace detent {

namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

/// The logger of spdlog, with the format and the clock that rendering needs. spdlog filters by
/// level and writes whole lines.
class EventLogger final : public spdlog::logger {
 public:
  EventLogger(spdlog::sink_ptr sink, const LogOptions& options)
      : spdlog::logger("detent", std::move(sink)), format_(options.format), clock_(options.clock) {
    set_level(to_spdlog(options.level));
    flush_on(spdlog::level::debug);
    set_formatter(std::make_unique<spdlog::pattern_formatter>("%v"));
  }

  LogFormat format() const noexcept { return format_; }
  WallTime now() const noexcept {
    const SystemClock machine;
    return ceil_to_ms((clock_ != nullptr ? *clock_ : machine).wall_now());
  }

 private:
  const LogFormat format_;
  const Clock* const clock_;
};

/// The logger that configure_log() set last. Before the first call, spdlog has its own default
/// logger; the first event then replaces it.
EventLogger& event_logger() {
  auto* logger = dynamic_cast<EventLogger*>(spdlog::default_logger_raw());
  if (logger != nullptr) return *logger;
  static const bool configured = (configure_log({}), true);
  static_cast<void>(configured);
  return dynamic_cast<EventLogger&>(*spdlog::default_logger_raw());
}

}  // namespace

void configure_log(const LogOptions& options) {
  spdlog::sink_ptr sink;
  if (options.out != nullptr) {
    sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(*options.out);
  } else {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  }
  // Shared by spdlog's registry and by the threads that are logging while it is replaced.
  spdlog::set_default_logger(std::make_shared<EventLogger>(std::move(sink), options));
}

void set_log_level(LogLevel level) { event_logger().set_level(to_spdlog(level)); }

void log_event(LogLevel level, std::string_view message, LogFields fields) {
  EventLogger& logger = event_logger();
  if (!logger.should_log(to_spdlog(level))) return;
  const LogEvent event{.time = logger.now(), .level = level, .message = message, .fields = fields};
  const std::string line = render_log_line(logger.format(), event);
  logger.log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace detent
