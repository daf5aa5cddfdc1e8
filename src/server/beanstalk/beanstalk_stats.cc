// The figures for beanstalk clients, of the server and of all queues.
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <set>

#include "protocol/beanstalk/reply_writer.h"
#include "protocol/beanstalk/stats_writer.h"
#include "server/beanstalk/beanstalk_hub.h"
#include "server/operate/version.h"
#include "task/task.h"

namespace detent::server {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

microseconds duration_of(const timeval& time) noexcept {
  return seconds{time.tv_sec} + microseconds{time.tv_usec};
}

}  // namespace

std::vector<std::string> queue_names(const BeanstalkHub& hub, const AllJobs& jobs) {
  std::set<std::string> names{"default"};
  names.insert(jobs.queues.begin(), jobs.queues.end());
  for (const auto& [name, use] : hub.queues.all()) {
    if (use.using_it + use.watching > 0) names.insert(name);
  }
  return {names.begin(), names.end()};
}

std::string stats_reply(const BeanstalkHub& hub, const AllJobs& jobs) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  utsname machine{};
  uname(&machine);
  const beanstalk::ServerStats stats{
      .jobs = jobs.counts,
      .commands = hub.commands,
      .timeouts = jobs.timeouts,
      .max_job_bytes = kMaxPayloadBytes,
      .tubes = queue_names(hub, jobs).size(),
      .connections = hub.connections,
      .producers = hub.producers,
      .workers = hub.workers,
      .waiting = hub.waiting,
      .total_connections = hub.total_connections,
      .pid = static_cast<std::uint64_t>(getpid()),
      .version = kVersion,
      .user_time = duration_of(usage.ru_utime),
      .system_time = duration_of(usage.ru_stime),
      .uptime = std::chrono::floor<seconds>(hub.clock.now() - hub.start),
      .is_draining = hub.is_draining.load(std::memory_order_relaxed),
      .id = hub.id,
      .host = std::string_view(&machine.nodename[0]),
      .os = std::string_view(&machine.version[0]),
      .platform = std::string_view(&machine.machine[0])};
  std::string reply;
  beanstalk::write_ok(reply, beanstalk::render_server_stats(stats));
  return reply;
}

std::string list_reply(const BeanstalkHub& hub, const AllJobs& jobs) {
  std::string reply;
  beanstalk::write_ok(reply, beanstalk::render_names(queue_names(hub, jobs)));
  return reply;
}

}  // namespace detent::server
