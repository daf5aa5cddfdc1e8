// The interfaces of the server, made from its options: access tokens, HTTP with or without TLS, and
// beanstalk.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "cli/options/serve_options.h"
#include "detent/clock.h"
#include "net/http_server/http_server.h"
#include "net/socket/stream_server.h"
#include "net/socket/tls_server.h"
#include "server/access/access.h"
#include "server/beanstalk/beanstalk_server.h"
#include "server/operate/descriptor_plan.h"
#include "server/operate/reloads.h"
#include "server/routes/routes.h"

namespace detent::server {

/// Loads the tokens of --auth. Each reload reads them again; `reloads` must not outlive them.
/// Returns null without --auth. Errors: as Access::load().
Result<std::unique_ptr<Access>> load_access(const cli::ServeOptions& options, Reloads& reloads);

/// Makes each reload call `check_again`, which ends the streams and waits of callers that have lost
/// their permission. Call it after load_access(), so that it uses the new tokens.
void check_again_at_reload(Reloads& reloads, std::function<void()> check_again);

/// Loads the certificate. Each reload reads it again. Returns null for plain HTTP. A warning is
/// logged if clients will reject the certificate: it is not valid now, or it does not cover a host
/// of the options or of the previous certificate. `clock` must outlive the reloads. Errors: as
/// TlsServer::load(); invalid_argument if one of the two files is missing.
Result<std::shared_ptr<net::TlsServer>> load_tls(const cli::ServeOptions& options, Reloads& reloads,
                                                 const Clock& clock);

/// The error of a server that cannot listen, with the flag that names its address.
Error cannot_listen(const std::string& flag, const Error& error);

/// The functions that answer requests.
struct HttpAnswers {
  net::HttpHandler handler;
  net::HeadCheck check;
};
/// Starts to listen. Errors: as HttpServer::start().
Result<std::unique_ptr<net::HttpServer>> start_http(const cli::ServeOptions& options,
                                                    const DescriptorPlan& plan,
                                                    std::shared_ptr<net::TlsServer> tls,
                                                    HttpAnswers answers);

/// The address and limits of the beanstalk server. Requires: it is not off.
net::StreamServerOptions beanstalk_options(const cli::ServeOptions& options,
                                           const DescriptorPlan& plan);
/// Makes the beanstalk server refuse `put`. Does nothing if `beanstalk` is null.
void drain(BeanstalkServer* beanstalk);

/// Returns null if beanstalk is off. Both objects must outlive it. Errors: as
/// BeanstalkServer::start().
Result<std::unique_ptr<BeanstalkServer>> start_beanstalk(const cli::ServeOptions& options,
                                                         const DescriptorPlan& plan,
                                                         JobShards& shards, const Clock& clock);

}  // namespace detent::server
