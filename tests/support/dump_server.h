// A server that only dumps and restores, as a Script (scripted_http.h). It stores the lines of
// tasks that it receives, and returns them in pages. For tests of clients.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "protocol/json/dump_codec.h"
#include "tests/support/scripted_http.h"

namespace detent::test {

class DumpServer {
 public:
  /// Makes `script` answer with the responses of this server.
  explicit DumpServer(Script& script) {
    script.respond = [this](const net::HttpRequest& request) -> Result<net::HttpResponse> {
      if (++calls == fail_at_call) return Error{ErrorCode::unavailable, "the line is cut", ""};
      const bool is_dump = request.target.starts_with("/v1/dump");
      return net::HttpResponse{.body = is_dump ? dump(request.target) : restore(request.body)};
    };
  }

  void add(std::uint64_t id) { tasks[id] = Task{.id = TaskId{id}, .queue = "q"}; }

  std::map<std::uint64_t, Task> tasks;
  std::map<std::string, ScheduleRecord> schedules;
  std::size_t tasks_before_schedules = 0;  // stored tasks when the last schedule was restored
  std::size_t page_size = 2;
  std::size_t calls = 0;
  std::size_t fail_at_call = 0;
  std::uint64_t damaged = 0;   // id of a damaged task; 0 if there is none
  std::uint64_t external = 0;  // number of tasks that another system keeps

 private:
  std::string dump(std::string_view target) const {
    std::uint64_t after = 0;
    if (const std::size_t at = target.find('='); at != std::string_view::npos) {
      std::from_chars(target.data() + at + 1, target.data() + target.size(), after);
    }
    std::string body;
    json::LineCounts counts;
    if (after == 0) {
      ++counts.queues;
      json::append_dump_line(body, json::DumpedQueue{"q", {}});
    }
    if (after == 0 && damaged != 0) {
      ++counts.damaged;
      json::append_dump_line(body, json::DamagedTask{{damaged}});
    }
    for (auto it = tasks.upper_bound(after); it != tasks.end(); ++it) {
      if (counts.tasks == page_size) {
        json::append_dump_line(body, json::DumpNext{TaskId{after}, "", counts});
        return body;
      }
      json::append_dump_line(body, it->second);
      after = it->first;
      ++counts.tasks;
    }
    for (const auto& [name, record] : schedules) json::append_dump_line(body, record);
    counts.schedules = schedules.size();
    json::append_dump_line(body, json::DumpEnd{counts, external});
    return body;
  }

  std::string restore(std::string_view body) {
    json::RestoreAnswer answer;
    const auto lines = json::take_numbered_lines(body, body.size());
    for (const json::NumberedLine& text : *lines) {
      const auto line = json::parse_dump_line(text.text);
      if (!line) {
        answer.errors.push_back({text.number, line.error()});
      } else if (const Task* task = std::get_if<Task>(&*line)) {
        ++(tasks.emplace(task->id.value, *task).second ? answer.restored : answer.there);
      } else if (const auto* record = std::get_if<ScheduleRecord>(&*line)) {
        const bool is_new = schedules.emplace(record->schedule.name, *record).second;
        ++(is_new ? answer.schedules : answer.schedules_there);
        tasks_before_schedules = tasks.size();
      } else {
        ++answer.queues;
      }
    }
    return json::render_restored(answer);
  }
};

}  // namespace detent::test
