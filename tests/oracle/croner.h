// Asks croner through Node and croner.mjs. croner.mjs describes the questions and answers.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "calendar/zone_rule.h"

namespace detent::oracle {

/// A span of time from `begin` up to but not including `end`.
struct Window {
  std::chrono::sys_seconds begin;
  std::chrono::sys_seconds end;
};

/// Asks when `expression` runs in `zone`. The answer has at most `most` times.
struct RunsQuestion {
  std::string expression;
  std::string zone;
  Window window;
  std::size_t most;
};

/// The offsets of a zone. The first entry is the offset at the begin of the window.
struct ZoneAnswer {
  bool is_known = false;
  std::vector<OffsetChange> offsets = {};
};

struct RunsAnswer {
  std::string error;  // empty if there is none
  std::vector<std::chrono::sys_seconds> runs = {};
};

struct Answers {
  std::string tzdata;  // version of the time zone data in Node
  std::vector<ZoneAnswer> zones = {};
  std::vector<RunsAnswer> runs = {};
};

/// Sends all questions to one process and waits for it. The answers are in the order of the
/// questions. Errors: `unavailable` if Node or croner is missing.
Result<Answers> ask_croner(const std::vector<std::string>& zones, Window zone_window,
                           const std::vector<RunsQuestion>& questions);

}  // namespace detent::oracle
