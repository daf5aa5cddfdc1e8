#include "gateway/batch_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/fan_out.h"
#include "protocol/json/json_fields.h"
#include "protocol/json/json_writer.h"
#include "protocol/json/problem.h"
#include "protocol/json/request_codec.h"

namespace detent::gateway {
namespace {

using Texts = std::vector<std::string_view>;
using Indices = std::vector<std::size_t>;

/// The kind of the elements of a request. The result of a lease always has a status, even if it
/// failed.
enum class Kind : std::uint8_t { tasks, leases };

/// The elements of a request, and the shard of each; no value: the element belongs to no shard.
struct Elements {
  Kind kind = Kind::tasks;
  Texts texts;
  std::vector<std::optional<ShardNumber>> shards;
};

void append_joined(std::string& out, const Texts& texts, char separator) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) out.push_back(separator);
    out.append(texts[i]);
  }
}

/// The result for each element of a part that failed.
std::string element_error(const net::HttpResponse& answer, Kind kind) {
  const Error error =
      is_success(answer)
          ? Error{ErrorCode::internal,
                  "unexpected answer from the node that owns the shard; the request may have "
                  "taken effect",
                  ""}
          : json::parse_problem(answer.status, answer.body);
  std::string problem = json::render_problem(error);
  // The error text of the shard itself, even if this version does not know its other fields.
  const Result<std::string_view> told = json::read_json(answer.body);
  const bool is_problem = answer.content_type == json::kProblemContentType && told &&
                          json::kind_of(*told) == json::JsonKind::object;
  if (is_problem) problem = *told;
  if (kind == Kind::leases) return json::render_lease_error(error, problem);
  return R"({"error":)" + problem + "}";
}

/// Returns true if all parts failed with the same error, so that one failure describes all.
bool is_one_failure(const Answers& answers) noexcept {
  return std::ranges::all_of(answers, [&](const net::HttpResponse& answer) {
    return !is_success(answer) && answer.status == answers.front().status;
  });
}

/// `indices` tells of each answer which elements it is about.
net::HttpResponse put_back(const std::vector<Indices>& indices, Kind kind, Answers answers) {
  if (is_one_failure(answers)) return std::move(answers.front());
  std::size_t count = 0;
  for (const Indices& part : indices) count += part.size();
  std::vector<std::string> failures;
  failures.reserve(answers.size());  // it is pointed into
  Texts results(count);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    json::JsonDocument document;
    const auto list = json::take_list(document, answers[i].body, "results");
    const Texts told = list ? json::texts_in(**list) : Texts();
    const bool is_done = is_success(answers[i]) && list && told.size() == indices[i].size();
    if (!is_done) failures.push_back(element_error(answers[i], kind));
    for (std::size_t j = 0; j < indices[i].size(); ++j) {
      results[indices[i][j]] = is_done ? told[j] : failures.back();
    }
  }
  std::string body = R"({"results":[)";
  append_joined(body, results, ',');
  body += "]}";
  return joined(answers, std::move(body));
}

/// `body_of` makes the body for a shard out of its elements, which lie in the request's body.
Plan take_apart(net::HttpRequest&& request, const Elements& elements,
                const std::function<std::string(const Texts&)>& body_of) {
  const auto known =
      std::ranges::find_if(elements.shards, [](const auto& shard) { return shard.has_value(); });
  const ShardNumber some = known == elements.shards.end() ? 0 : **known;
  std::map<ShardNumber, Indices> by_shard;
  for (std::size_t i = 0; i < elements.texts.size(); ++i) {
    by_shard[elements.shards[i].value_or(some)].push_back(i);
  }
  if (by_shard.size() <= 1) return to_shard(std::move(request), some);
  Plan plan;
  std::vector<Indices> parts;
  for (auto& [shard, indices] : by_shard) {
    Texts texts;
    texts.reserve(indices.size());
    for (const std::size_t i : indices) texts.push_back(elements.texts[i]);
    plan.parts.push_back({.shard = shard, .request = with_body(request, body_of(texts))});
    parts.push_back(std::move(indices));
  }
  plan.join = [parts = std::move(parts), kind = elements.kind](Answers answers) -> Step {
    return put_back(parts, kind, std::move(answers));
  };
  return plan;
}

/// An object with an array of strings that must be divided by shard.
struct NamesBody {
  std::vector<json::JsonValue> others;
  Texts names;
};

/// Returns no value if the body is not of this kind, or if no server would accept it.
std::optional<NamesBody> read_names(std::string_view body, std::string_view list) {
  NamesBody read;
  json::JsonDocument document;
  const Result<const json::JsonValue*> object = document.read(body);
  if (!object || json::kind_of((*object)->text) != json::JsonKind::object) return std::nullopt;
  const json::JsonValue* names = nullptr;
  for (const json::JsonValue& member : **object) {
    if (json::unescape(member.name) != list) {
      read.others.push_back(member);
    } else if (names != nullptr) {
      return std::nullopt;
    } else {
      names = &member;
    }
  }
  if (names == nullptr || !json::count_elements(*names, kMaxBatchTasks)) return std::nullopt;
  read.names = json::texts_in(*names);
  const bool are_strings = std::ranges::all_of(read.names, [](std::string_view name) {
    return json::kind_of(name) == json::JsonKind::string;
  });
  if (!are_strings) return std::nullopt;
  return read;
}

std::string render(const NamesBody& body, std::string_view list, const Texts& names) {
  std::string text = "{";
  for (const json::JsonValue& member : body.others) {
    text.append(member.name).append(":").append(member.text).append(",");
  }
  text.append("\"").append(list).append("\":[");
  append_joined(text, names, ',');
  return text + "]}";
}

constexpr std::string_view kLeases = "leases";

using ShardOfName = std::function<std::optional<ShardNumber>(std::string_view)>;

/// The other members of the object are sent to each shard, so their size is limited.
constexpr std::size_t kMostRepeatedBytes = std::size_t{64} << 10;

std::size_t size_of(const std::vector<json::JsonValue>& members) {
  std::size_t size = 0;
  for (const json::JsonValue& member : members) size += member.name.size() + member.text.size();
  return size;
}

/// Divides `body`, the body of the request, by the `shard_of` of each name.
Step take_names_apart(net::HttpRequest&& request, const NamesBody& body, std::string_view list,
                      const ShardOfName& shard_of) {
  const Kind kind = list == kLeases ? Kind::leases : Kind::tasks;
  Elements elements{.kind = kind, .texts = body.names, .shards = {}};
  elements.shards.reserve(body.names.size());
  for (const std::string_view name : body.names) {
    elements.shards.push_back(shard_of(json::unescape(name)));
  }
  std::set<ShardNumber> several;
  for (const auto& shard : elements.shards) {
    if (shard) several.insert(*shard);
  }
  if (several.size() > 1 && size_of(body.others) > kMostRepeatedBytes) {
    return problem({ErrorCode::too_large,
                    "the other fields than \"" + std::string(list) + "\" must have at most " +
                        std::to_string(kMostRepeatedBytes) +
                        " bytes together, because the request goes to several shards",
                    ""});
  }
  return take_apart(std::move(request), elements,
                    [&](const Texts& names) { return render(body, list, names); });
}

std::optional<ShardNumber> if_there(ShardNumber shard, ShardNumber shards) noexcept {
  return shard < shards ? std::optional(shard) : std::nullopt;
}

}  // namespace

Plan plan_schedule_batch(net::HttpRequest request, const ShardMap& map, std::uint64_t turn) {
  Result<json::BatchElements> batch =
      json::split_schedule_batch(request.body, request.header("content-type"));
  if (!batch) return to_shard(std::move(request), 0);
  Elements elements{.texts = std::move(batch->elements), .shards = {}};
  elements.shards.reserve(elements.texts.size());
  for (const std::string_view task : elements.texts) {
    elements.shards.push_back(place_in(task, map, turn++));
  }
  const bool is_array = batch->framing == json::BatchElements::Framing::array;
  const auto body_of = [is_array](const Texts& tasks) {
    std::string body = is_array ? "[" : "";
    append_joined(body, tasks, is_array ? ',' : '\n');
    return body.append(is_array ? "]" : "\n");
  };
  Plan plan = take_apart(std::move(request), elements, body_of);
  if (is_array || plan.parts.size() == 1) return plan;
  // The first line of a part may not show its kind.
  for (Part& part : plan.parts) {
    net::HttpHeaders& headers = part.request.headers;
    std::erase_if(headers, [](const auto& header) { return header.first == "content-type"; });
    headers.emplace_back("content-type", "application/x-ndjson");
  }
  return plan;
}

Step plan_named_tasks(net::HttpRequest request, const ShardMap& map) {
  const std::optional<NamesBody> body = read_names(request.body, "ids");
  if (body) {
    return take_names_apart(std::move(request), *body, "ids", [&](std::string_view text) {
      const std::optional<TaskId> id = parse_task_id(text);
      return id ? if_there(shard_of_task(*id), map.shards) : std::nullopt;
    });
  }
  const std::optional<std::string> queue = queue_in(request.body);
  const std::optional<NamesBody> keys = read_names(request.body, "keys");
  if (!queue || !keys || map.partitions_of(*queue) == 1) {
    return to_shard(std::move(request), queue ? map.home_of(*queue) : 0);
  }
  return take_names_apart(std::move(request), *keys, "keys", [&](std::string_view text) {
    return std::optional(map.place_of(*queue, text, 0));
  });
}

Step plan_leases(net::HttpRequest request, ShardNumber shards) {
  const std::optional<NamesBody> body = read_names(request.body, kLeases);
  if (!body) return to_shard(std::move(request), 0);
  return take_names_apart(std::move(request), *body, kLeases, [shards](std::string_view text) {
    const std::optional<LeaseToken> lease = parse_lease_token(text);
    return lease ? if_there(shard_of_lease(*lease), shards) : std::nullopt;
  });
}

}  // namespace detent::gateway
