#include "bench/server/server_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace detent::bench {
namespace {

constexpr std::uint32_t kMillion = 1'000'000;

/// The targets are for two cores that clients and server share, and a disk that syncs in 0.1 ms.
std::vector<Measure> all_measures() {
  using enum Better;
  using enum Rivals;
  return {
      {"accept 1", "accept, 1 connection, tasks/s", more, same_promise, {}},
      {"accept fdatasync", "  bare fdatasync beside it, /s", more, same_promise, {}},
      {"accept of disk", "  accepted in % of it", more, same_promise, 75},
      {"accept 32", "accept, 32 connections, tasks/s", more, same_promise, 70'000},
      {"accept batches", "accept, 2 conn. batches, tasks/s", more, same_promise, 300'000},
      {"accept batches", "  the same, on disk later", more, same_promise, 400'000, 0,
       "detent interval"},
      {"life", "accept, lease, complete, tasks/s", more, same_promise, 120'000},
      {"drain", "drain overdue backlog, tasks/s", more, same_promise, 150'000},
      {"drain accepts", "  accepted meanwhile, tasks/s", more, same_promise, 19'000},
      {"load", "fill with n waiting, tasks/s", more, same_promise, {}},
      {"late p50", "lateness p50, n waiting, ms", less, with_delays, 0.5, kMillion},
      {"late p99", "lateness p99, ms", less, with_delays, 2, kMillion},
      {"late max", "lateness max, ms", less, with_delays, 10, kMillion},
      {"memory", "memory, n waiting, MB", less, with_delays, 500, 10 * kMillion},
      {"disk", "disk, B a waiting task", less, with_delays, 150},
      {"ready", "ready after kill -9, s", less, with_delays, 2, kMillion},
  };
}

bool is_of(const std::string& measure, const std::string& workload) {
  if (measure.starts_with(workload)) return true;
  static constexpr const char* kWaiting[] = {"load", "late", "memory", "disk", "ready"};
  return workload == "waiting" &&
         std::ranges::any_of(kWaiting, [&](const char* each) { return measure.starts_with(each); });
}

std::string short_number(std::optional<double> value) {
  if (!value) return "-";
  char text[32];
  if (*value >= 10'000) {
    std::snprintf(text, sizeof(text), "%.0fk", *value / 1e3);
  } else {
    std::snprintf(text, sizeof(text), "%.*f", *value >= 100 ? 0 : *value >= 10 ? 1 : 2, *value);
  }
  return text;
}

std::string json_number(std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return "null";
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", *value);
  return text;
}

std::string json_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return quoted + '"';
}

}  // namespace

ServerReport::ServerReport(std::vector<Column> columns, std::uint32_t waiting)
    : columns_(std::move(columns)), waiting_(waiting), measures_(all_measures()) {}

void ServerReport::add(const std::string& measure, const std::string& server, double value) {
  values_[{measure, server}].push_back(value);
}

void ServerReport::add_error(const std::string& workload, const std::string& server,
                             const std::string& what) {
  errors_.push_back({workload, server, what});
}

const Column* ServerReport::judged_column(const Measure& measure) const {
  const auto found = std::ranges::find(columns_, measure.judged, &Column::name);
  return found == columns_.end() ? nullptr : &*found;
}

bool ServerReport::has_failed(const std::string& measure, const std::string& server) const {
  return std::ranges::any_of(errors_, [&](const Failure& each) {
    return each.server == server && is_of(measure, each.workload);
  });
}

std::optional<double> ServerReport::median(const std::string& measure,
                                           const std::string& server) const {
  const auto found = values_.find({measure, server});
  if (found == values_.end() || has_failed(measure, server)) return std::nullopt;
  std::vector<double> values = found->second;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Verdict ServerReport::judge(const Measure& measure) const {
  const bool is_more = measure.better == Better::more;
  Verdict verdict;
  const Column* const judged = judged_column(measure);
  if (judged == nullptr) return verdict;
  verdict.ours = median(measure.name, judged->name);
  std::optional<double> best;
  for (const Column& column : columns_) {
    const bool is_ours = column.name.starts_with("detent");
    const bool is_rival =
        measure.rivals == Rivals::same_promise ? column.promise >= judged->promise : column.delays;
    if (is_ours || !is_rival) continue;
    const std::optional<double> value = median(measure.name, column.name);
    if (!value || (best && (is_more ? *value <= *best : *value >= *best))) continue;
    best = value;
    verdict.best_rival = column.name;
  }
  if (!verdict.ours) return verdict;
  if (best) verdict.ratio = is_more ? *verdict.ours / *best : *best / *verdict.ours;
  if (measure.target && waiting_ >= measure.target_from) {
    verdict.is_met = is_more ? *verdict.ours >= *measure.target : *verdict.ours <= *measure.target;
  }
  return verdict;
}

void ServerReport::print_row(const Measure& measure) const {
  const bool is_wanted = std::ranges::any_of(columns_, [&](const Column& column) {
    return values_.contains({measure.name, column.name}) || has_failed(measure.name, column.name);
  });
  const bool is_extra = measure.judged != "detent" && judged_column(measure) == nullptr;
  if (!is_wanted || is_extra) return;
  const Verdict verdict = judge(measure);
  std::printf("%-33s", measure.title.c_str());
  for (const Column& column : columns_) {
    const bool failed = has_failed(measure.name, column.name);
    const std::string value = short_number(median(measure.name, column.name));
    std::printf(" %14s", failed ? "error" : value.c_str());
  }
  std::string ratio = short_number(verdict.ratio);
  if (verdict.ratio) ratio += " x " + verdict.best_rival;
  const char* sign = !measure.target ? "" : measure.better == Better::more ? ">= " : "<= ";
  const std::string target = sign + short_number(measure.target);
  const char* met = !verdict.is_met ? "not judged" : *verdict.is_met ? "met" : "missed";
  std::printf("  %-21s %-8s %s\n", ratio.c_str(), target.c_str(), measure.target ? met : "");
}

void ServerReport::print() const {
  std::printf("\n%-33s", "medians");
  for (const Column& column : columns_) std::printf(" %14s", column.name.c_str());
  std::printf("  %-21s target\n%-33s", "ours to best rival", "an acknowledged task is");
  for (const Column& column : columns_) std::printf(" %14s", name_of(column.promise));
  std::printf("\n");
  for (const Measure& measure : measures_) print_row(measure);
  std::printf(
      "A ratio above 1 is better than the best rival: for rates the best with the same promise, "
      "else the best that knows delays.\n\"not judged\": the target is for more waiting tasks than "
      "here.\n");
  for (const Failure& error : errors_) {
    std::printf("error: %s, %s: %s\n", error.server.c_str(), error.workload.c_str(),
                error.what.c_str());
  }
}

bool ServerReport::write_json(const std::string& path, const std::string& head) const {
  std::string text = "{\n" + head + "  \"measures\": [";
  for (const Measure& measure : measures_) {
    const Verdict verdict = judge(measure);
    text += "\n    {\"measure\": " + json_text(measure.name);
    text += ", \"title\": " + json_text(measure.title) + ",\n     \"servers\": {";
    for (const Column& column : columns_) {
      text += json_text(column.name) + ": {\"median\": ";
      text += json_number(median(measure.name, column.name)) + ", \"values\": [";
      const auto found = values_.find({measure.name, column.name});
      const bool has_values = found != values_.end() && !has_failed(measure.name, column.name);
      for (std::size_t i = 0; has_values && i < found->second.size(); ++i) {
        text += (i > 0 ? ", " : "") + json_number(found->second[i]);
      }
      text += "]}, ";
    }
    text.resize(text.size() - 2);
    text += "},\n     \"judged\": " + json_text(measure.judged) +
            ", \"target\": " + json_number(measure.target);
    text += ", \"best_rival\": " + json_text(verdict.best_rival);
    text += ", \"ratio\": " + json_number(verdict.ratio) + ", \"is_met\": ";
    text += !verdict.is_met ? "null" : *verdict.is_met ? "true" : "false";
    text += "},";
  }
  text.pop_back();
  text += "\n  ],\n  \"errors\": [";
  for (const Failure& error : errors_) {
    text += "\n    {\"server\": " + json_text(error.server) +
            ", \"workload\": " + json_text(error.workload) +
            ", \"what\": " + json_text(error.what) + "},";
  }
  if (!errors_.empty()) text.pop_back();
  text += "\n  ]\n}\n";
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return false;
  const bool is_written = std::fputs(text.c_str(), file) >= 0;
  return std::fclose(file) == 0 && is_written;
}

}  // namespace detent::bench
