// Tasks and the bytes of their records, for the tests of the record formats.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "store/record_format.h"
#include "store/store.h"
#include "task/task.h"

namespace detent {

/// A task whose fields all differ from their defaults.
inline Task full_task() {
  Task task;
  task.id = TaskId{0x1234567};
  task.queue = "mail.out";
  task.payload = {Payload::Kind::bytes, std::string("\x00\xFF payload", 10)};
  task.rules = {.priority = 7,
                .max_attempts = 3,
                .visibility_timeout = std::chrono::milliseconds{90'000},
                .backoff = Backoff{std::chrono::milliseconds{10}, std::chrono::milliseconds{70}}};
  task.due_at = WallTime{std::chrono::milliseconds{1'700'000'000'123}};
  task.created_at = WallTime{std::chrono::milliseconds{1'600'000'000'456}};
  task.attempts = 2;
  task.standing = Standing::dead;
  task.key = "order 7";
  add_attempt(task, {.started_at = WallTime{std::chrono::milliseconds{1'700'000'000'200}},
                     .ended_at = WallTime{std::chrono::milliseconds{1'700'000'060'300}},
                     .error = "the lease ran out"});
  add_attempt(task, {.started_at = WallTime{std::chrono::milliseconds{1'700'000'070'400}},
                     .ended_at = WallTime{std::chrono::milliseconds{1'700'000'070'500}},
                     .worker = "host-1",
                     .error = "connection refused"});
  return task;
}

inline Task plain_task() {
  Task task;
  task.id = TaskId{256};
  task.queue = "q";
  return task;
}

inline std::string unhex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

/// A small task. Tests compare its record with fixed bytes.
inline Task example_task() {
  Task task = plain_task();
  task.payload = {Payload::Kind::json, "{}"};
  task.due_at = WallTime{std::chrono::milliseconds{300}};
  task.created_at = WallTime{std::chrono::milliseconds{5}};
  task.rules.max_attempts = 9;
  return task;
}

/// Seals `bytes` as the record of the task with this id.
inline std::string sealed(TaskId id, std::string bytes) {
  std::string context;
  ByteWriter(context).u64(id.value);
  seal(bytes, context);
  return bytes;
}

/// The parts of a record, which a test can make invalid one by one.
struct RawRecord {
  unsigned flags = 0;
  std::string queue = "q";
  std::string rest;  // the bytes between queue and payload
  std::string payload = "{}";
  std::string after;  // the bytes after the payload

  Result<Task> read() const {
    std::string bytes;
    ByteWriter writer(bytes);
    writer.u8(kRecordVersion);
    writer.varint(flags);
    for (int i = 0; i < 4; ++i) writer.varint(0);  // due_at, created_at, priority, attempts
    writer.string(queue);
    writer.raw(rest);
    writer.string(payload);
    writer.raw(after);
    return decode_record(TaskId{1}, sealed(TaskId{1}, bytes));
  }
};

}  // namespace detent
