#include "server/operate/descriptor_plan.h"

#include <sys/resource.h>

#include <string>

#include "base/log/log.h"

namespace detent::server {
namespace {

/// With fewer connections of HTTP the log says how to get more.
constexpr std::size_t kFewConnections = 1'000;

DescriptorNeeds needs_of(const cli::ServeOptions& options, std::size_t shards) {
  return {.has_beanstalk = !options.beanstalk_host.empty(), .shards = shards};
}

void log_plan(const DescriptorPlan& plan, std::size_t before, std::size_t limit) {
  log_info("allocated file descriptors",
           {{"limit", std::to_string(limit)},
            {"limit_before", std::to_string(before)},
            {"http_connections", std::to_string(plan.http_connections)},
            {"beanstalk_connections", std::to_string(plan.beanstalk_connections)},
            {"webhook_calls", std::to_string(plan.webhook_calls)},
            {"peer_calls", std::to_string(plan.peer_calls)},
            {"store_files", std::to_string(plan.store_files)},
            {"others", std::to_string(plan.others)}});
  if (plan.http_connections >= kFewConnections) return;
  log_warning("few connections: raise the hard limit of open files (LimitNOFILE=, ulimit -Hn)",
              {{"limit", std::to_string(limit)},
               {"http_connections", std::to_string(plan.http_connections)}});
}

}  // namespace

Result<DescriptorPlan> take_descriptors(const cli::ServeOptions& options, std::size_t shards) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const rlim_t before = files.rlim_cur;
  files.rlim_cur = files.rlim_max;
  const bool is_raised = ::setrlimit(RLIMIT_NOFILE, &files) == 0;
  const rlim_t limit = is_raised ? files.rlim_cur : before;
  const DescriptorNeeds needs = needs_of(options, shards);
  if (limit < least_descriptors(needs)) {
    return Error{ErrorCode::unavailable,
                 "the limit of open files is " + std::to_string(limit) +
                     ", and the server needs at least " + std::to_string(least_descriptors(needs)) +
                     ": raise the hard limit (LimitNOFILE=, ulimit -Hn)",
                 ""};
  }
  const DescriptorPlan plan = plan_descriptors(limit, needs);
  log_plan(plan, before, limit);
  return plan;
}

DescriptorPlan descriptors_of(const cli::ServeOptions& options) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const DescriptorNeeds needs = needs_of(options, 0);
  return plan_descriptors(std::max<rlim_t>(files.rlim_cur, least_descriptors(needs)), needs);
}

}  // namespace detent::server
