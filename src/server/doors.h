// The ways into the server, made as the options ask: who is let in, HTTP with or without TLS, and
// beanstalk.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "cli/serve_options.h"
#include "detent/clock.h"
#include "engine/engine_thread.h"
#include "net/http_server.h"
#include "net/stream_server.h"
#include "net/tls_server.h"
#include "server/access.h"
#include "server/beanstalk_server.h"
#include "server/descriptor_plan.h"
#include "server/reloads.h"
#include "server/routes.h"

namespace detent::server {

/// The tokens of --auth, read again with each reload, which must not outlive them; null without it.
/// Errors: as Access::load().
Result<std::unique_ptr<Access>> load_access(const cli::ServeOptions& options, Reloads& reloads);

/// Has each reload call `check_again`, which ends the streams and waits of those who may go on no
/// more. After load_access(), so that it goes by the tokens just read.
void check_again_at_reload(Reloads& reloads, std::function<void()> check_again);

/// The certificate, read again with each reload; null where plain HTTP was asked for. What clients
/// will object to in it is warned of: that it is not valid now, or is not for a host that the
/// options, or the certificate before it, name. `clock` must outlive the reloads. Errors: as
/// TlsServer::load(); invalid_argument when one of the two files is missing.
Result<std::shared_ptr<net::TlsServer>> load_tls(const cli::ServeOptions& options, Reloads& reloads,
                                                 const Clock& clock);

/// What answers requests.
struct HttpAnswers {
  net::HttpHandler handler;
  net::HeadCheck check;
};
/// Listens from now on. Errors: as HttpServer::start().
Result<std::unique_ptr<net::HttpServer>> start_http(const cli::ServeOptions& options,
                                                    const DescriptorPlan& plan,
                                                    std::shared_ptr<net::TlsServer> tls,
                                                    HttpAnswers answers);

/// Where it listens. Requires: it is not off.
net::StreamServerOptions beanstalk_options(const cli::ServeOptions& options,
                                           const DescriptorPlan& plan);
/// Has its clients put no more; null: there are none.
void drain(BeanstalkServer* beanstalk);

/// Null where it is off. Both must outlive it. Errors: as BeanstalkServer::start().
Result<std::unique_ptr<BeanstalkServer>> start_beanstalk(const cli::ServeOptions& options,
                                                         const DescriptorPlan& plan,
                                                         EngineThread& engine_thread,
                                                         const Clock& clock);

}  // namespace detent::server
