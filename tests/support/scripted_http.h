// An HTTP connection without a server. It notes the requests, and answers as the test says. For
// tests of HTTP clients.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "client/client_impl.h"
#include "net/http_client/http_client.h"

namespace detent::test {

/// The requests that a scripted connection has received, and its next answer.
struct Script {
  std::vector<net::HttpRequest> asked;
  Result<net::HttpResponse> answer = net::HttpResponse{};
  /// If it is set, this function makes the answers.
  std::function<Result<net::HttpResponse>(const net::HttpRequest&)> respond = {};
};

/// `script` must outlive this object.
class ScriptedHttp final : public net::HttpClient {
 public:
  explicit ScriptedHttp(Script& script) : script_(script) {}
  Result<net::HttpResponse> send(const net::HttpRequest& request) override {
    script_.asked.push_back(request);
    return script_.respond ? script_.respond(request) : script_.answer;
  }
  Result<std::vector<net::HttpResponse>> send_all(const std::vector<net::HttpRequest>&) override {
    return Error{ErrorCode::internal, "not scripted", ""};
  }

 private:
  Script& script_;
};

/// A client that does not repeat calls. `script` must outlive it.
inline Client scripted_client(Script& script) {
  return ClientInternals::over(std::make_unique<ScriptedHttp>(script),
                               std::make_unique<ScriptedHttp>(script));
}

}  // namespace detent::test
