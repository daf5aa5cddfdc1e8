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
  // Owned by this function, which outlives the engines of all shards.
  node.open = [&options, &with, shards = table.leases->shards(),
               counted = std::make_shared<CountedQueues>()](const ShardLease& lease,
                                                            ChangeFeed& changes) {
    return open_shard_engine(options, with.clock,
                             {.lease = lease, .shards = shards, .counted = counted.get()}, changes);
  };
  node.routes = {.cors_origin = options.cors_origin,
                 .access = with.access,
                 .host_names = options.host_names,
                 .tracer = with.tracer};
  node.webhooks = {.allow = options.webhook_allow,
                   .keys = options.webhook_keys,
                   .data = {},
                   .tracer = with.tracer};
  ASSIGN_OR_RETURN(node.webhooks.sinks, open_sinks(options.sinks));
  node.memory_bytes = options.memory_bytes;
  node.seed = random_seed();
  return node;
}

}  // namespace

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
  with_port.webhooks.log = &with.deliveries;
  with_port.max_peer_calls = descriptors.peer_calls;
  with_port.http_connections = descriptors.http_connections;
  TRY(join_cluster(*table.leases, with_port.me, with.clock));
  ASSIGN_OR_RETURN(node,
                   ClusterNode::start(std::move(with_port), std::move(table.leases), with.clock));
  const AlertSource figures{
      .ask = [&node](auto take) { return node->ask_figures_for_alerts(std::move(take)); },
      .is_ours = [&node] { return node->sends_alerts(); }};
  ASSIGN_OR_RETURN(const std::unique_ptr<Alerts> alerts,
                   start_alerts(options, options.webhook_keys, figures, with.clock));
  reload_webhook_keys(
      with.reloads, options.webhook_keys, [&node] { return node->reload_webhook_keys(); },
      alerts.get());
  check_again_at_reload(with.reloads, [&node] { node->check_again(); });
  const auto ask = [&node](UniqueFunction<void()> works) {
    node->ask_whether_it_works(std::move(works));
  };
  const Watchdog watchdog(with.manager, ask, with.clock);
  door.open(*node);
  if (!options.beanstalk_host.empty()) {
    const Result<void> started = node->start_beanstalk(beanstalk_options(options, descriptors));
    if (!started) return cannot_listen("--beanstalk", started.error());
  }
  run_until_stopped(options, with, *http, node->beanstalk());
  node->end_waits();
  node->stop();  // while it goes on passing requests to those that have its shards by then
  http->stop(kStopGrace);
  log_info("stopped");
  return ok();
}

}  // namespace detent::server
