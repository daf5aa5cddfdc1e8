// The answers of stats, stats-job and stats-tube, as values and as YAML. They have exactly the
// fields that beanstalkd 1.12 publishes, in its order. Pure: no I/O.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "protocol/beanstalk/command.h"

namespace detent::beanstalk {

struct JobStats {
  std::uint64_t id = 0;
  std::string_view queue;
  std::string_view state;  // ready, delayed, reserved or buried
  std::uint32_t priority = 0;
  std::chrono::seconds age{0};
  std::chrono::seconds delay{0};
  std::chrono::seconds time_to_run{0};
  std::chrono::seconds time_left{0};
  std::uint32_t reserves = 0;
  std::uint32_t timeouts = 0;
  std::uint32_t releases = 0;
  std::uint32_t buries = 0;
  std::uint32_t kicks = 0;
};

/// The number of jobs in each state, in one tube or in all tubes.
struct JobCounts {
  std::uint64_t urgent = 0;  // ready jobs with a priority number below the default
  std::uint64_t ready = 0;
  std::uint64_t reserved = 0;
  std::uint64_t delayed = 0;
  std::uint64_t dead = 0;
  std::uint64_t total = 0;  // created since the server started

  friend bool operator==(const JobCounts&, const JobCounts&) = default;
};

struct TubeStats {
  std::string_view name;
  JobCounts jobs = {};
  std::uint64_t using_it = 0;  // connections that put into this tube
  std::uint64_t watching = 0;  // connections that reserve from this tube
  std::uint64_t waiting = 0;   // connections that wait for a job of this tube
  std::uint64_t deletes = 0;   // delete commands
  std::uint64_t pauses = 0;    // pause-tube commands
  std::chrono::seconds pause{0};
  std::chrono::seconds pause_left{0};
};

struct ServerStats {
  JobCounts jobs = {};
  std::array<std::uint64_t, kVerbs> commands = {};  // indexed by Verb
  std::uint64_t timeouts = 0;
  std::uint64_t max_job_bytes = 0;
  std::uint64_t tubes = 0;
  std::uint64_t connections = 0;
  std::uint64_t producers = 0;
  std::uint64_t workers = 0;
  std::uint64_t waiting = 0;
  std::uint64_t total_connections = 0;
  std::uint64_t pid = 0;
  std::string_view version;
  std::chrono::microseconds user_time{0};
  std::chrono::microseconds system_time{0};
  std::chrono::seconds uptime{0};
  bool is_draining = false;
  std::string_view id;
  std::string_view host;
  std::string_view os;
  std::string_view platform;
};

std::string render_job_stats(const JobStats& stats);
std::string render_tube_stats(const TubeStats& stats);
std::string render_server_stats(const ServerStats& stats);
std::string render_names(std::span<const std::string> names);

}  // namespace detent::beanstalk
