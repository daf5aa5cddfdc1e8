#include "server/program/listeners.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/log/log.h"
#include "net/message/http_url.h"
#include "server/access/exposure.h"
#include "server/http/http_reply.h"

namespace detent::server {
namespace {

/// The hosts by which clients and other nodes reach the server, as far as the options name them.
std::vector<std::string> hosts_of(const cli::ServeOptions& options) {
  std::vector<std::string> hosts = options.host_names;
  const Result<net::HttpUrl> node = net::parse_http_url("https://" + options.cluster.address + "/");
  if (node) hosts.push_back(node->host);
  return hosts;
}

}  // namespace

Result<std::unique_ptr<Access>> load_access(const cli::ServeOptions& options, Reloads& reloads) {
  if (options.auth.empty()) return std::unique_ptr<Access>();
  ASSIGN_OR_RETURN(std::unique_ptr<Access> access, Access::load(options.auth));
  reloads.add("the tokens in " + options.auth,
              [access = access.get()] { return access->reload(); });
  return access;
}

void check_again_at_reload(Reloads& reloads, std::function<void()> check_again) {
  reloads.add("the access of open event streams and waiting requests",
              [check_again = std::move(check_again)] {
                check_again();
                return ok();
              });
}

Result<std::shared_ptr<net::TlsServer>> load_tls(const cli::ServeOptions& options, Reloads& reloads,
                                                 const Clock& clock) {
  if (options.tls_cert.empty() != options.tls_key.empty()) {
    return Error{ErrorCode::invalid_argument, "--tls-cert and --tls-key must be given together",
                 "tls-cert"};
  }
  if (options.tls_cert.empty()) return std::shared_ptr<net::TlsServer>();
  ASSIGN_OR_RETURN(std::shared_ptr<net::TlsServer> tls,
                   net::TlsServer::load(options.tls_cert, options.tls_key));
  // Returns true if there was no warning.
  const auto warn = [file = options.tls_cert, tls, &clock](const std::vector<std::string>& hosts) {
    const WallTime now = std::chrono::floor<WallTime::duration>(clock.wall_now());
    const std::vector<std::string> faults = tls->faults(now, hosts);
    for (const std::string& fault : faults) {
      log_warning("clients will refuse the certificate", {{"file", file}, {"cause", fault}});
    }
    return faults.empty();
  };
  const std::vector<std::string> hosts = hosts_of(options);
  warn(hosts);
  // `good`: the names of the last certificate without a fault. A reload of the same wrong
  // certificate has the same faults.
  const auto reload = [tls, hosts, warn, good = tls->names()]() mutable -> Result<void> {
    std::vector<std::string> all = hosts;
    for (const std::string& name : good) {
      if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
    }
    TRY(tls->reload());
    if (warn(all)) good = tls->names();
    return ok();
  };
  reloads.add("the certificate in " + options.tls_cert, reload);
  return tls;
}

Error cannot_listen(const std::string& flag, const Error& error) {
  return {error.code,
          flag + ": " + error.message + "; name an address of this machine and a free port with " +
              flag,
          error.field};
}

Result<std::unique_ptr<net::HttpServer>> start_http(const cli::ServeOptions& options,
                                                    const DescriptorPlan& plan,
                                                    std::shared_ptr<net::TlsServer> tls,
                                                    HttpAnswers answers) {
  const std::string& host = options.http_host;
  Result<std::unique_ptr<net::HttpServer>> started = net::HttpServer::start(
      {.address = host,
       .port = options.http_port,
       .max_connections = plan.http_connections,
       .max_connections_of_address = max_connections_of_address(host, plan.http_connections),
       .max_refusals = plan.http_refusals,
       .tls = std::move(tls)},
      std::move(answers.handler), http_problem, std::move(answers.check));
  if (!started) return cannot_listen("--http", started.error());
  return started;
}

net::StreamServerOptions beanstalk_options(const cli::ServeOptions& options,
                                           const DescriptorPlan& plan) {
  const std::string& host = options.beanstalk_host;
  const std::size_t most = plan.beanstalk_connections;
  return {.address = host,
          .port = options.beanstalk_port,
          .max_connections = most,
          .max_connections_of_address = max_connections_of_address(host, most)};
}

void drain(BeanstalkServer* beanstalk) {
  if (beanstalk == nullptr) return;
  beanstalk->drain();
  log_info("draining: beanstalk clients cannot put more jobs");
}

Result<std::unique_ptr<BeanstalkServer>> start_beanstalk(const cli::ServeOptions& options,
                                                         const DescriptorPlan& plan,
                                                         JobShards& shards, const Clock& clock) {
  if (options.beanstalk_host.empty()) return std::unique_ptr<BeanstalkServer>();
  auto started = BeanstalkServer::start(beanstalk_options(options, plan), shards, clock);
  if (!started) return cannot_listen("--beanstalk", started.error());
  return started;
}

}  // namespace detent::server
