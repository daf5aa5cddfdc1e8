// Maps a method and a path to a handler.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace detent::net {

/// The match of a request's target.
template <class Handler>
struct RouteMatch {
  std::string_view pattern;
  const Handler* handler = nullptr;     // null: the path exists, but not with this method
  std::vector<std::string> parameters;  // decoded, in the order of the pattern
  std::string allowed;                  // the methods this path has: "GET, HEAD, DELETE"
};

/// Immutable once built. A pattern is a path with {name} for one segment: "/v1/tasks/{id}". Fixed
/// segments win over parameters. A GET handler also answers HEAD; the connection omits the body.
/// Lookup costs the number of patterns.
template <class Handler>
class RouteTable {
 public:
  void add(std::string_view method, std::string_view pattern, Handler handler) {
    routes_.push_back({method, pattern, std::move(handler)});
  }

  /// Calls `visit(method, pattern, handler)` for each route, in insertion order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Route& route : routes_) visit(route.method, route.pattern, route.handler);
  }
  /// Returns no value if no pattern has this path. `target` may have a query, which is ignored.
  std::optional<RouteMatch<Handler>> find(std::string_view method, std::string_view target) const;

 private:
  struct Route {
    std::string_view method;
    std::string_view pattern;
    Handler handler;
  };
  std::vector<Route> routes_;
};

/// Matches a path against a pattern. Returns the decoded parameters, or no value if it does not
/// match.
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
