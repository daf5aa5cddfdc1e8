// Asks croner, by way of Node and croner.mjs, which says what is asked and answered.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "calendar/zone_rule.h"

namespace detent::oracle {

/// A stretch of time, from `begin` on and before `end`.
struct Window {
  std::chrono::sys_seconds begin;
  std::chrono::sys_seconds end;
};

/// When does `expression` run in `zone`? At most `most` times are told.
struct RunsQuestion {
  std::string expression;
  std::string zone;
  Window window;
  std::size_t most;
};

/// The first entry is the offset at the window's begin.
struct ZoneAnswer {
  bool is_known = false;
  std::vector<OffsetChange> offsets = {};
};

struct RunsAnswer {
  std::string error;  // empty: none
  std::vector<std::chrono::sys_seconds> runs = {};
};

struct Answers {
  std::string tzdata;  // the version of the time zones that Node has
  std::vector<ZoneAnswer> zones = {};
  std::vector<RunsAnswer> runs = {};
};

/// Puts all questions to one process and waits for it. The answers are in the questions' order.
/// Errors: `unavailable`: there is no Node, or no croner for it.
Result<Answers> ask_croner(const std::vector<std::string>& zones, Window zone_window,
                           const std::vector<RunsQuestion>& questions);

}  // namespace detent::oracle
