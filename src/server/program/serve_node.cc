#include "server/program/serve_node.h"

#include <atomic>
#include <string>
#include <utility>

#include "base/log/log.h"
#include "base/rng.h"
#include "server/cluster/cluster_node.h"
#include "server/http/http_reply.h"
#include "server/operate/descriptor_plan.h"
#include "server/operate/watchdog.h"
#include "server/program/announce.h"
#include "server/program/listeners.h"
#include "server/program/open_engine.h"
#include "sinks/open_sinks.h"

namespace detent::server {
namespace {

/// How long requests that are under way at a stop may still take.
constexpr std::chrono::seconds kStopGrace{10};

Error cannot(const char* message, const char* field) {
  return {ErrorCode::invalid_argument, message, field};
}

Result<void> check_settings(const cli::ServeOptions& options) {
  if (options.store.empty()) {
    return cannot("a node needs the cluster's database: --store postgres://…", "store");
  }
  if (!options.external.empty()) {
    return cannot(
        "a node keeps its far tasks in the cluster's database: use --external only "
        "for a server without a cluster",
        "external");
  }
  const bool has_alerts = !options.alert_webhook.empty() || options.alert_pending ||
                          options.alert_dead || options.alert_lateness;
  if (has_alerts) {
    return cannot("a node has no alerts: create them in the system that scrapes its /metrics",
                  "alert");
  }
  const bool is_everywhere = options.http_host == "0.0.0.0" || options.http_host == "::";
  if (is_everywhere && options.cluster.address.empty()) {
    return cannot("other nodes need an address of this node: --node-address HOST:PORT",
                  "node-address");
  }
  return ok();
}

/// Requests, to a node that is made after the port is known.
class Door {
 public:
  void open(ClusterNode& node) { node_.store(&node, std::memory_order_release); }
  void handle(net::HttpRequest request, net::Responder responder) const {
    ClusterNode* const node = node_.load(std::memory_order_acquire);
    if (node != nullptr) return node->handle(std::move(request), std::move(responder));
    responder.send(http_problem(503, "the node is starting"));
  }
  std::optional<net::HttpResponse> refuse_unread(const net::HttpRequest& head) const {
    ClusterNode* const node = node_.load(std::memory_order_acquire);
    if (node != nullptr) return node->refuse_unread(head);
    return http_problem(503, "the node is starting");
  }

 private:
  std::atomic<ClusterNode*> node_{nullptr};
};

Result<ClusterNodeOptions> node_options(const cli::ServeOptions& options, const ServeContext& with,
                                        ClusterTable& table, std::uint16_t port) {
  ClusterNodeOptions node;
  const std::string& address = options.cluster.address;
  node.me = {.node = options.cluster.node,
             .address = address.empty() ? address_of(options.http_host, port) : address,
             .incarnation = random_seed()};
  node.secret = std::move(table.secret);
  node.scheme = with.tls ? "https" : "http";
  node.ca_file = options.cluster.ca_file;
  node.open = [&options, &with, shards = table.leases->shards()](const ShardLease& lease,
                                                                 ChangeFeed& changes) {
    return open_shard_engine(options, with.clock, {.lease = lease, .shards = shards}, changes);
  };
  node.routes = {
      .cors_origin = options.cors_origin, .access = with.access, .host_names = options.host_names};
  node.webhooks = {.allow = options.webhook_allow, .keys = options.webhook_keys, .data = {}};
  ASSIGN_OR_RETURN(node.webhooks.sinks, open_sinks(options.sinks));
  node.seed = random_seed();
  return node;
}

}  // namespace

void wait_for_stop(const ServeContext& with, std::function<void()> on_drain) {
  const auto reload = [&with] {
    with.manager.reloading(with.clock.now());
    with.reloads.run();
    with.manager.ready();
  };
  const char* const signal =
      with.stop_signal.wait({.on_drain = std::move(on_drain), .on_reload = reload});
  log_info("stopping", {{"signal", signal}});
  with.manager.stopping();
}

Result<void> serve_as_node(const cli::ServeOptions& options, const ServeContext& with) {
  TRY(check_settings(options));
  ASSIGN_OR_RETURN(ClusterTable table, open_cluster_table(options, with.clock));
  ASSIGN_OR_RETURN(const DescriptorPlan descriptors,
                   take_descriptors(options, table.leases->shards()));
  Door door;
  const auto handle = [&door](net::HttpRequest request, net::Responder responder) {
    door.handle(std::move(request), std::move(responder));
  };
  const auto refuse = [&door](const net::HttpRequest& head) { return door.refuse_unread(head); };
  // The node is made after the port is known, and must outlive the requests that come by it.
  std::unique_ptr<ClusterNode> node;
  ASSIGN_OR_RETURN(const std::unique_ptr<net::HttpServer> http,
                   start_http(options, descriptors, with.tls, {handle, refuse}));
  ASSIGN_OR_RETURN(ClusterNodeOptions with_port, node_options(options, with, table, http->port()));
  with_port.webhooks.max_calls = descriptors.webhook_calls;
  with_port.max_peer_calls = descriptors.peer_calls;
  with_port.http_connections = descriptors.http_connections;
  TRY(join_cluster(*table.leases, with_port.me, with.clock));
  ASSIGN_OR_RETURN(node,
                   ClusterNode::start(std::move(with_port), std::move(table.leases), with.clock));
  if (!options.webhook_keys.empty()) {
    with.reloads.add("the webhook keys in " + options.webhook_keys.string(),
                     [&node] { return node->reload_webhook_keys(); });
  }
  check_again_at_reload(with.reloads, [&node] { node->check_again(); });
  const auto ask = [&node](UniqueFunction<void()> works) {
    node->ask_whether_it_works(std::move(works));
  };
  const Watchdog watchdog(with.manager, ask, with.clock);
  door.open(*node);
  const std::string& host = options.beanstalk_host;
  if (!host.empty()) TRY(node->start_beanstalk(beanstalk_options(options, descriptors)));
  BeanstalkServer* const beanstalk = node->beanstalk();
  announce(options, http->port(), beanstalk != nullptr ? address_of(host, beanstalk->port()) : "");
  with.manager.ready();
  wait_for_stop(with, [beanstalk] { drain(beanstalk); });
  node->end_waits();
  node->stop();  // while it goes on passing requests to those that have its shards by then
  http->stop(kStopGrace);
  log_info("stopped");
  return ok();
}

}  // namespace detent::server
