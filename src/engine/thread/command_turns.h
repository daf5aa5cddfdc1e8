// Commands that wait for a later turn of the engine, grouped by queue.
//
// One command of each queue is taken in rotation: the round robin of Nagle's fair queueing (RFC
// 970). So thousands of commands for one queue delay a command of another queue by one command at
// most. The rotation counts commands, not work. A batch over HTTP with thousands of tasks is one
// command, so a client that sends batches gets more work done in a turn. The commands of one queue
// run in the order of their arrival. Thread-compatible. O(1) per command, plus a search among the
// waiting queues.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "detent/check.h"
#include "detent/unique_function.h"

namespace detent {

class Engine;

class CommandTurns {
 public:
  using Command = UniqueFunction<void(Engine&)>;

  /// Use "" as the queue of all commands that have no queue.
  void add(const std::string& queue, Command command) {
    const auto [it, is_new] = waiting_.try_emplace(queue);
    it->second.push_back(std::move(command));
    if (is_new) ring_.push_back(it);
    ++size_;
  }
  /// Requires: !empty().
  Command take() {
    DETENT_CHECK(!empty());
    const auto next = ring_.front();
    ring_.pop_front();
    DETENT_CHECK(!next->second.empty());
    Command command = std::move(next->second.front());
    next->second.pop_front();
    if (next->second.empty()) {
      waiting_.erase(next);
    } else {
      ring_.push_back(next);
    }
    --size_;
    return command;
  }

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  std::size_t queues() const noexcept { return waiting_.size(); }

 private:
  using Waiting = std::map<std::string, std::deque<Command>>;

  Waiting waiting_;                     // every group has a command
  std::deque<Waiting::iterator> ring_;  // each group once; the first is next
  std::size_t size_ = 0;
};

}  // namespace detent
