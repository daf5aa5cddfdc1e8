// A server of delayed tasks as the workloads see it: what it promises, how it is started, and a
// connection that schedules, takes and finishes tasks in the fastest form that its protocol has.
//
// A payload is 100 bytes of letters and digits in no order. It begins with when the task is due
// (microseconds since 1970, 16 digits), so that lateness can be told for servers that do not state
// the due time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/server_process.h"

namespace detent::bench {

/// What is safe once the server has answered.
enum class Promise : std::uint8_t {
  memory,    ///< lost in a crash
  interval,  ///< on disk up to seconds later
  synced,    ///< on disk
};

const char* name_of(Promise promise);

/// A task that a worker holds: `handle` finishes it.
struct TakenTask {
  std::string handle;
  std::int64_t due_us;
};

struct TakenTasks {
  std::int64_t received_us = 0;  ///< when the answer was there; microseconds since 1970
  std::vector<TakenTask> tasks;
};

/// One connection. Every call throws ServerError when the server refuses. Thread-compatible.
class ServerClient {
 public:
  virtual ~ServerClient() = default;

  /// Becomes readable when the answer to send_put arrives.
  virtual int descriptor() const = 0;

  /// Schedules a task for each delay (milliseconds), in one request where the protocol has that,
  /// else pipelined. Requires: the put before was received.
  virtual void send_put(std::span<const std::int64_t> delays_ms) = 0;
  /// Returns: how many of them were accepted.
  virtual std::size_t receive_put() = 0;
  std::size_t put(std::span<const std::int64_t> delays_ms) {
    send_put(delays_ms);
    return receive_put();
  }

  /// Takes up to `max` tasks that are due; if there is none, waits for one, `wait_ms` at most.
  virtual TakenTasks take(std::size_t max, int wait_ms) = 0;
  /// Returns: how many of them are done for good.
  virtual std::size_t finish(const std::vector<TakenTask>& tasks) = 0;

  /// How many tasks the server holds, in any state.
  virtual std::uint64_t count() = 0;
};

/// What a server can take part in, besides the accept and full life workloads.
struct Abilities {
  bool delays = true;  ///< holds tasks back until they are due
  bool drains = true;  ///< accepts 20 k/s beside a drain
  bool waits = true;   ///< takes part in memory, disk and ready
  bool fires = true;   ///< takes part in lateness
  /// Its memory can be told: what PostgreSQL shares counts only while a connection looks at it.
  bool counts_memory = true;
  bool survives = true;  ///< holds its tasks after kill -9
};

struct PeerTraits {
  std::string name;
  std::string form;  ///< how a batch is put and how it waits for due tasks
  Promise promise;
  std::size_t batch;  ///< tasks in its best put
  Abilities can;
  std::string missing;  ///< why it cannot take part; empty if it can
};

struct ServerPlace {
  std::filesystem::path folder;
  std::uint16_t port;
};

/// Whether syncing may be left out because only the state after it matters: a million tasks with
/// one sync each would take an hour.
enum class Loading : std::uint8_t { as_promised, unsynced };

class ServerPeer {
 public:
  explicit ServerPeer(PeerTraits traits) : traits_(std::move(traits)) {}
  virtual ~ServerPeer() = default;
  ServerPeer(const ServerPeer&) = delete;
  ServerPeer& operator=(const ServerPeer&) = delete;

  const PeerTraits& traits() const { return traits_; }

  /// Makes what the server wants to find in an empty folder.
  virtual void prepare(const ServerPlace& /*place*/) {}
  virtual std::vector<std::string> command(const ServerPlace& place, Loading loading) const = 0;
  virtual Account account() const;

  /// Throws ServerError while the server is not ready.
  virtual std::unique_ptr<ServerClient> connect(std::uint16_t port) = 0;

 private:
  const PeerTraits traits_;
};

using ServerPeers = std::vector<std::unique_ptr<ServerPeer>>;

std::unique_ptr<ServerPeer> detent_server(const std::filesystem::path& program,
                                          const std::string& sync);
/// By the beanstalk protocol, synced.
std::unique_ptr<ServerPeer> detent_by_beanstalk(const std::filesystem::path& program);
std::unique_ptr<ServerPeer> beanstalkd_server(Promise promise);
std::unique_ptr<ServerPeer> redis_server(Promise promise);
std::unique_ptr<ServerPeer> postgres_server();
std::unique_ptr<ServerPeer> nats_server();

/// Microseconds since 1970.
std::int64_t wall_us();

/// Appends the payload of a task due then; 16 to 100 bytes.
void append_payload(std::string& text, std::int64_t due_us, std::size_t size = 100);
std::int64_t due_of_payload(std::string_view payload);

void pause_for_poll();

/// Asks `poll` every millisecond until it finds something or `wait_ms` are over: for servers that
/// cannot let a worker wait.
template <class Poll>
TakenTasks poll_until_due(int wait_ms, Poll poll) {
  for (const std::int64_t end = wall_us() + wait_ms * std::int64_t{1'000};;) {
    TakenTasks taken = poll();
    if (!taken.tasks.empty() || wall_us() >= end) return taken;
    pause_for_poll();
  }
}

}  // namespace detent::bench
