// Which handler answers which method and path.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace detent::net {

/// The text that percent-escapes stand for; nothing when one is broken ("%4", "%zz").
std::optional<std::string> percent_decode(std::string_view text);

/// What a request's target matched.
template <class Handler>
struct RouteMatch {
  std::string_view pattern;
  const Handler* handler = nullptr;     // none: the path exists, the method does not
  std::vector<std::string> parameters;  // decoded, in the order of the pattern
  std::string allowed;                  // the methods this path has: "GET, HEAD, DELETE"
};

/// Immutable once built. A pattern is a path with {name} for one segment: "/v1/tasks/{id}". Fixed
/// segments win over parameters. Who answers GET answers HEAD, too: the connection leaves the body
/// out. Lookup costs the number of patterns.
template <class Handler>
class RouteTable {
 public:
  void add(std::string_view method, std::string_view pattern, Handler handler) {
    routes_.push_back({method, pattern, std::move(handler)});
  }

  /// Calls `visit(method, pattern, handler)` for each route, in the order in which they were added.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Route& route : routes_) visit(route.method, route.pattern, route.handler);
  }
  /// Nothing when no pattern has this path. `target` may carry a query, which is not looked at.
  std::optional<RouteMatch<Handler>> find(std::string_view method, std::string_view target) const;

 private:
  struct Route {
    std::string_view method;
    std::string_view pattern;
    Handler handler;
  };
  std::vector<Route> routes_;
};

/// Matches a path against a pattern; the decoded parameters, or nothing.
std::optional<std::vector<std::string>> match_path(std::string_view pattern, std::string_view path);

template <class Handler>
std::optional<RouteMatch<Handler>> RouteTable<Handler>::find(std::string_view method,
                                                             std::string_view target) const {
  const std::string_view path = target.substr(0, target.find('?'));
  std::optional<RouteMatch<Handler>> best;
  for (const Route& route : routes_) {
    std::optional<std::vector<std::string>> parameters = match_path(route.pattern, path);
    if (!parameters) continue;
    const bool is_better = !best || parameters->size() < best->parameters.size();
    if (is_better) best = RouteMatch<Handler>{.pattern = route.pattern};
    if (route.pattern != best->pattern) continue;
    const bool is_get = route.method == "GET";
    best->allowed += best->allowed.empty() ? "" : ", ";
    best->allowed += is_get ? std::string_view("GET, HEAD") : route.method;
    best->parameters = *std::move(parameters);
    if (route.method == method || (is_get && method == "HEAD")) best->handler = &route.handler;
  }
  return best;
}

}  // namespace detent::net
