// The dashboard: the page at / and its parts at /assets/{name}, from the binary.
//
// For each file, the browser asks whether its copy is still valid (`no-cache`, ETag). This costs a
// few small answers, and after an update of the server a page never mixes old and new files. The
// page may load scripts, styles and data only from this server, and no frame may show it.
#include <string>
#include <string_view>
#include <utility>

#include "server/http/etag.h"
#include "server/routes/dashboard_files.h"
#include "server/routes/routes.h"

namespace detent::server {
namespace {

constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Whether gzip is among the codings that `accept_encoding` names without refusing it (`q=0`).
bool takes_gzip(std::string_view accept_encoding) noexcept {
  const std::size_t at = accept_encoding.find("gzip");
  if (at == std::string_view::npos) return false;
  std::string_view rest = accept_encoding.substr(at, accept_encoding.find(',', at) - at);
  const std::size_t quality = rest.find("q=0");
  return quality == std::string_view::npos ||
         rest.substr(quality + 3).find_first_of("123456789") != std::string_view::npos;
}

/// Each coding has an ETag of its own, or a cache may mix them up.
std::string etag_of(const DashboardFile& file, bool is_gzip) {
  std::string etag(file.etag);
  if (is_gzip) etag.insert(etag.size() - 1, "-gzip");
  return etag;
}

}  // namespace

void Routes::dashboard(const Call& call) {
  const std::string name = call.parameters.empty() ? "index.html" : call.parameters.front();
  const DashboardFile* const file = find_dashboard_file(name);
  if (file == nullptr) {
    return call.reply.send(http_problem(404, "the dashboard has no file " + name));
  }
  const bool is_gzip = takes_gzip(call.request.header("accept-encoding"));
  const std::string etag = etag_of(*file, is_gzip);
  net::HttpResponse answer{.status = 200,
                           .content_type = std::string(file->content_type),
                           .body = std::string(is_gzip ? file->gzip : file->plain),
                           .headers = {{"etag", etag},
                                       {"cache-control", "no-cache"},
                                       {"vary", "accept-encoding"},
                                       {"content-security-policy", std::string(kPolicy)},
                                       {"x-content-type-options", "nosniff"},
                                       {"referrer-policy", "no-referrer"},
                                       {"cross-origin-opener-policy", "same-origin"},
                                       {"cross-origin-resource-policy", "same-origin"}}};
  if (is_gzip) answer.headers.emplace_back("content-encoding", "gzip");
  if (allows(call.request.header("if-none-match"), etag)) {
    answer.status = 304;
    answer.body.clear();
  }
  call.reply.send(std::move(answer));
}

}  // namespace detent::server
