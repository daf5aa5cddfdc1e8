// The commands of `detent schedule` as values (arguments.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "detent/client.h"
#include "detent/clock.h"

namespace detent::cli {

struct PutScheduleCommand {
  std::string name;
  client::NewSchedule schedule;        // without its payload
  std::optional<std::string> payload;  // as in PutCommand
  bool bytes = false;
};
struct ListSchedulesCommand {};
struct GetScheduleCommand {
  std::string name;
};
struct NextOccurrencesCommand {
  std::string name;
  std::size_t count = 10;
};
/// A command that takes only a name.
struct ChangeScheduleCommand {
  enum class Verb : std::uint8_t { pause, resume, trigger, remove };
  Verb verb = Verb::pause;
  std::string name;
};
struct BackfillCommand {
  std::string name;
  WallTime from{};
  WallTime to{};
};

using ScheduleCommand =
    std::variant<ListSchedulesCommand, PutScheduleCommand, GetScheduleCommand,
                 NextOccurrencesCommand, ChangeScheduleCommand, BackfillCommand>;

}  // namespace detent::cli
