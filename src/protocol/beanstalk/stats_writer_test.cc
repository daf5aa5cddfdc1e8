// Checks the whole YAML of every stats reply. beanstalkd 1.12 answers these fields in this order.
#include "protocol/beanstalk/stats_writer.h"

#include <gtest/gtest.h>

#include <vector>

namespace detent::beanstalk {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

TEST(StatsWriter, WritesAJob) {
  EXPECT_EQ(render_job_stats({.id = 256,
                              .queue = "123",
                              .state = "reserved",
                              .priority = 4'294'967'295,
                              .age = 2s,
                              .delay = 3s,
                              .time_to_run = 4s,
                              .time_left = 5s,
                              .reserves = 6,
                              .timeouts = 7,
                              .releases = 8,
                              .buries = 9,
                              .kicks = 10}),
            "---\nid: 256\ntube: \"123\"\nstate: reserved\npri: 4294967295\nage: 2\ndelay: 3\n"
            "ttr: 4\ntime-left: 5\nfile: 0\nreserves: 6\ntimeouts: 7\nreleases: 8\nburies: 9\n"
            "kicks: 10\n");
}

TEST(StatsWriter, WritesATube) {
  EXPECT_EQ(
      render_tube_stats(
          {.name = "a",
           .jobs = {.urgent = 1, .ready = 2, .reserved = 3, .delayed = 4, .dead = 5, .total = 6},
           .using_it = 7,
           .watching = 8,
           .waiting = 9,
           .deletes = 10,
           .pauses = 11,
           .pause = 12s,
           .pause_left = 13s}),
      "---\nname: a\ncurrent-jobs-urgent: 1\ncurrent-jobs-ready: 2\n"
      "current-jobs-reserved: 3\ncurrent-jobs-delayed: 4\ncurrent-jobs-buried: 5\n"
      "total-jobs: 6\ncurrent-using: 7\ncurrent-watching: 8\ncurrent-waiting: 9\n"
      "cmd-delete: 10\ncmd-pause-tube: 11\npause: 12\npause-time-left: 13\n");
}

TEST(StatsWriter, WritesTheServer) {
  ServerStats stats{
      .jobs = {.urgent = 1, .ready = 2, .reserved = 3, .delayed = 4, .dead = 5, .total = 6},
      .timeouts = 7,
      .max_job_bytes = 8,
      .tubes = 9,
      .connections = 10,
      .producers = 11,
      .workers = 12,
      .waiting = 13,
      .total_connections = 14,
      .pid = 15,
      .version = "0.1.0",
      .user_time = 16'000'017us,
      .system_time = 18us,
      .uptime = 19s,
      .is_draining = true,
      .id = "828ff5aa5f3512f0",
      .host = "vm",
      .os = "#1 SMP",
      .platform = "x86_64"};
  for (std::size_t i = 0; i < kVerbs; ++i) stats.commands[i] = 100 + i;
  EXPECT_EQ(render_server_stats(stats),
            "---\ncurrent-jobs-urgent: 1\ncurrent-jobs-ready: 2\ncurrent-jobs-reserved: 3\n"
            "current-jobs-delayed: 4\ncurrent-jobs-buried: 5\ncmd-put: 100\ncmd-peek: 101\n"
            "cmd-peek-ready: 102\ncmd-peek-delayed: 103\ncmd-peek-buried: 104\ncmd-reserve: 105\n"
            "cmd-reserve-with-timeout: 106\ncmd-delete: 108\ncmd-release: 109\ncmd-use: 110\n"
            "cmd-watch: 111\ncmd-ignore: 112\ncmd-bury: 113\ncmd-kick: 114\ncmd-touch: 116\n"
            "cmd-stats: 117\ncmd-stats-job: 118\ncmd-stats-tube: 119\ncmd-list-tubes: 120\n"
            "cmd-list-tube-used: 121\ncmd-list-tubes-watched: 122\ncmd-pause-tube: 123\n"
            "job-timeouts: 7\ntotal-jobs: 6\nmax-job-size: 8\ncurrent-tubes: 9\n"
            "current-connections: 10\ncurrent-producers: 11\ncurrent-workers: 12\n"
            "current-waiting: 13\ntotal-connections: 14\npid: 15\nversion: \"0.1.0\"\n"
            "rusage-utime: 16.000017\nrusage-stime: 0.000018\nuptime: 19\nbinlog-oldest-index: 0\n"
            "binlog-current-index: 0\nbinlog-records-migrated: 0\nbinlog-records-written: 0\n"
            "binlog-max-size: 0\ndraining: true\nid: \"828ff5aa5f3512f0\"\nhostname: vm\n"
            "os: \"#1 SMP\"\nplatform: x86_64\n");
}

TEST(StatsWriter, WritesNames) {
  EXPECT_EQ(render_names({}), "---\n");
  const std::vector<std::string> names{"default", "true"};
  EXPECT_EQ(render_names(names), "---\n- default\n- \"true\"\n");
}

}  // namespace
}  // namespace detent::beanstalk
