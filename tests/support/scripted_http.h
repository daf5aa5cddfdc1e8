// An HTTP connection to nowhere: notes what it was asked and answers what the test says. For tests
// of whoever speaks HTTP.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "net/http_client.h"

namespace detent::test {

/// What one scripted connection was asked, and what it answers next.
struct Script {
  std::vector<net::HttpRequest> asked;
  Result<net::HttpResponse> answer = net::HttpResponse{};
  /// Makes the answers instead, where there is one.
  std::function<Result<net::HttpResponse>(const net::HttpRequest&)> respond = {};
};

/// `script` must outlive it.
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

}  // namespace detent::test
