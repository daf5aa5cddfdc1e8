#include "gateway/metrics_sum.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace detent::gateway {
namespace {

/// Of this the lowest counts.
constexpr std::string_view kLowest = "detent_store_up";
/// Of these the highest counts; all others are added up.
constexpr std::array<std::string_view, 3> kHighest{"detent_build_info", "detent_shard_epoch",
                                                   "detent_oldest_ready_age_seconds"};

/// The sum of several pages. A family consists of the lines below its "# HELP name …" and "# TYPE
/// name …".
class Sum {
 public:
  void add(std::string_view page) {
    while (!page.empty()) {
      const std::size_t end = std::min(page.find('\n'), page.size());
      const std::string_view line = page.substr(0, end);
      if (line.starts_with("# ")) {
        comment(line);
      } else if (!line.empty()) {
        sample(line);
      }
      page.remove_prefix(std::min(end + 1, page.size()));
    }
  }

  std::string render(Families families) const {
    std::string text;
    for (const Family& family : families_) {
      const std::string gauge = "# TYPE " + family.name + " gauge\n";
      const bool is_gauge = family.comments.find(gauge) != std::string::npos;
      if (is_gauge && families == Families::without_gauges) continue;
      text += family.comments;
      for (const Sample& sample : family.samples) {
        text += sample.name + " " + render(sample.value) + "\n";
      }
    }
    return text;
  }

 private:
  struct Sample {
    std::string name;  // with its labels
    double value = 0;
  };
  struct Family {
    std::string name;
    std::string comments;
    std::vector<Sample> samples;
    std::unordered_map<std::string, std::size_t> index;  // in samples, by name
  };

  void comment(std::string_view line) {
    const std::size_t name_at = std::min(line.find(' ', 2) + 1, line.size());
    const std::string name(line.substr(name_at, line.find(' ', name_at) - name_at));
    const auto [known, is_new] = index_.try_emplace(name, families_.size());
    if (is_new) families_.push_back({.name = name});
    current_ = known->second;
    Family& family = families_[current_];
    const std::string text = std::string(line) + "\n";
    if (family.comments.find(text) == std::string::npos) family.comments += text;
  }

  void sample(std::string_view line) {
    const std::size_t space = line.rfind(' ');
    if (space == std::string_view::npos || families_.empty()) return;
    double value = 0;
    std::from_chars(line.data() + space + 1, line.data() + line.size(), value);
    Family& family = families_[current_];
    const std::string name(line.substr(0, space));
    const auto [known, is_new] = family.index.try_emplace(name, family.samples.size());
    if (is_new) return family.samples.push_back({name, value});
    double& sum = family.samples[known->second].value;
    const bool is_highest = std::ranges::find(kHighest, family.name) != kHighest.end();
    if (family.name == kLowest) {
      sum = std::min(sum, value);
    } else {
      sum = is_highest ? std::max(sum, value) : sum + value;
    }
  }

  /// The shortest text that reads back as the same number.
  static std::string render(double value) {
    std::array<char, 32> text{};
    const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
    return {text.data(), end};
  }

  std::vector<Family> families_;
  std::unordered_map<std::string, std::size_t> index_;  // in families_, by name
  std::size_t current_ = 0;
};

}  // namespace

std::string sum_metrics(const std::vector<std::string>& pages, Families families) {
  Sum sum;
  for (const std::string& page : pages) sum.add(page);
  return sum.render(families);
}

}  // namespace detent::gateway
