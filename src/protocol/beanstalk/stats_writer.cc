#include "protocol/beanstalk/stats_writer.h"

#include <utility>

#include "protocol/beanstalk/yaml_writer.h"

namespace detent::beanstalk {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

std::uint64_t count_of(seconds duration) { return static_cast<std::uint64_t>(duration.count()); }

/// The duration in seconds, with six decimals.
std::string decimal(microseconds duration) {
  constexpr std::int64_t kSecond = 1'000'000;
  std::string fraction = std::to_string(duration.count() % kSecond);
  fraction.insert(0, 6 - fraction.size(), '0');
  return std::to_string(duration.count() / kSecond) + "." + fraction;
}

void write_counts(YamlWriter& yaml, const JobCounts& jobs) {
  yaml.field("current-jobs-urgent", jobs.urgent);
  yaml.field("current-jobs-ready", jobs.ready);
  yaml.field("current-jobs-reserved", jobs.reserved);
  yaml.field("current-jobs-delayed", jobs.delayed);
  yaml.field("current-jobs-buried", jobs.dead);
}

/// Like beanstalkd, this list leaves out reserve-job, kick-job and quit.
constexpr std::pair<std::string_view, Verb> kCounted[] = {
    {"cmd-put", Verb::put},
    {"cmd-peek", Verb::peek},
    {"cmd-peek-ready", Verb::peek_ready},
    {"cmd-peek-delayed", Verb::peek_delayed},
    {"cmd-peek-buried", Verb::peek_buried},
    {"cmd-reserve", Verb::reserve},
    {"cmd-reserve-with-timeout", Verb::reserve_with_timeout},
    {"cmd-delete", Verb::delete_job},
    {"cmd-release", Verb::release},
    {"cmd-use", Verb::use},
    {"cmd-watch", Verb::watch},
    {"cmd-ignore", Verb::ignore},
    {"cmd-bury", Verb::bury},
    {"cmd-kick", Verb::kick},
    {"cmd-touch", Verb::touch},
    {"cmd-stats", Verb::stats},
    {"cmd-stats-job", Verb::stats_job},
    {"cmd-stats-tube", Verb::stats_tube},
    {"cmd-list-tubes", Verb::list_tubes},
    {"cmd-list-tube-used", Verb::list_tube_used},
    {"cmd-list-tubes-watched", Verb::list_tubes_watched},
    {"cmd-pause-tube", Verb::pause_tube},
};

/// The fields for beanstalkd's log file of jobs. Detent has no such file, so all of them are 0, as
/// in a beanstalkd that runs without the log.
void write_binlog(YamlWriter& yaml) {
  for (const std::string_view key :
       {"binlog-oldest-index", "binlog-current-index", "binlog-records-migrated",
        "binlog-records-written", "binlog-max-size"}) {
    yaml.field(key, 0u);
  }
}

}  // namespace

std::string render_job_stats(const JobStats& stats) {
  YamlWriter yaml;
  yaml.field("id", stats.id);
  yaml.field("tube", stats.queue);
  yaml.field("state", stats.state);
  yaml.field("pri", stats.priority);
  yaml.field("age", count_of(stats.age));
  yaml.field("delay", count_of(stats.delay));
  yaml.field("ttr", count_of(stats.time_to_run));
  yaml.field("time-left", count_of(stats.time_left));
  yaml.field("file", 0u);
  yaml.field("reserves", stats.reserves);
  yaml.field("timeouts", stats.timeouts);
  yaml.field("releases", stats.releases);
  yaml.field("buries", stats.buries);
  yaml.field("kicks", stats.kicks);
  return yaml.text();
}

std::string render_tube_stats(const TubeStats& stats) {
  YamlWriter yaml;
  yaml.field("name", stats.name);
  write_counts(yaml, stats.jobs);
  yaml.field("total-jobs", stats.jobs.total);
  yaml.field("current-using", stats.using_it);
  yaml.field("current-watching", stats.watching);
  yaml.field("current-waiting", stats.waiting);
  yaml.field("cmd-delete", stats.deletes);
  yaml.field("cmd-pause-tube", stats.pauses);
  yaml.field("pause", count_of(stats.pause));
  yaml.field("pause-time-left", count_of(stats.pause_left));
  return yaml.text();
}

std::string render_server_stats(const ServerStats& stats) {
  YamlWriter yaml;
  write_counts(yaml, stats.jobs);
  for (const auto& [key, verb] : kCounted) {
    yaml.field(key, stats.commands[static_cast<std::size_t>(verb)]);
  }
  yaml.field("job-timeouts", stats.timeouts);
  yaml.field("total-jobs", stats.jobs.total);
  yaml.field("max-job-size", stats.max_job_bytes);
  yaml.field("current-tubes", stats.tubes);
  yaml.field("current-connections", stats.connections);
  yaml.field("current-producers", stats.producers);
  yaml.field("current-workers", stats.workers);
  yaml.field("current-waiting", stats.waiting);
  yaml.field("total-connections", stats.total_connections);
  yaml.field("pid", stats.pid);
  yaml.field("version", stats.version);
  yaml.plain_field("rusage-utime", decimal(stats.user_time));
  yaml.plain_field("rusage-stime", decimal(stats.system_time));
  yaml.field("uptime", count_of(stats.uptime));
  write_binlog(yaml);
  yaml.plain_field("draining", stats.is_draining ? "true" : "false");
  yaml.field("id", stats.id);
  yaml.field("hostname", stats.host);
  yaml.field("os", stats.os);
  yaml.field("platform", stats.platform);
  return yaml.text();
}

std::string render_names(std::span<const std::string> names) {
  YamlWriter yaml;
  for (const std::string& name : names) yaml.item(name);
  return yaml.text();
}

}  // namespace detent::beanstalk
