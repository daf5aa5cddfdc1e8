// The interface of a server of delayed tasks for the workloads: its promise, its start, and a
// connection. The connection schedules, takes and finishes tasks in the fastest form of its
// protocol.
//
// A payload is 100 random letters and digits. It begins with the due time (microseconds since 1970,
// 16 digits), because some servers do not report the due time, and the lateness must be known.
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

#include "bench/server/server_process.h"

namespace detent::bench {

/// The durability of a task when the server has answered.
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
  std::int64_t received_us = 0;  ///< when the answer arrived; microseconds since 1970
  std::vector<TakenTask> tasks;
};

/// One connection. Every call throws ServerError if the server refuses. Thread-compatible.
class ServerClient {
 public:
  virtual ~ServerClient() = default;

  /// Becomes readable when the answer to send_put arrives.
  virtual int descriptor() const = 0;

  /// Schedules a task for each delay (milliseconds), in one request if the protocol allows it,
  /// otherwise pipelined. Requires: the answer to the previous put was received.
  virtual void send_put(std::span<const std::int64_t> delays_ms) = 0;
  /// Returns the number of accepted tasks.
  virtual std::size_t receive_put() = 0;
  std::size_t put(std::span<const std::int64_t> delays_ms) {
    send_put(delays_ms);
    return receive_put();
  }

  /// Takes up to `max` due tasks. If no task is due, waits for a task for at most `wait_ms`.
  virtual TakenTasks take(std::size_t max, int wait_ms) = 0;
  /// Returns the number of tasks that are finished permanently.
  virtual std::size_t finish(const std::vector<TakenTask>& tasks) = 0;

  /// The number of tasks of the server, in any state.
  virtual std::uint64_t count() = 0;
};

/// The workloads of a server in addition to accept and full life.
struct Abilities {
  bool delays = true;  ///< keeps tasks until they are due
  bool drains = true;  ///< accepts 20 k/s during a drain
  bool waits = true;   ///< takes part in memory, disk and ready
  bool fires = true;   ///< takes part in lateness
  /// Its memory can be measured. Shared memory of PostgreSQL counts only while a connection uses
  /// it.
  bool counts_memory = true;
  bool survives = true;  ///< still has its tasks after kill -9
};

struct PeerTraits {
  std::string name;
  std::string form;  ///< how it puts a batch and how it waits for due tasks
  Promise promise;
  std::size_t batch;  ///< tasks per put, at its fastest size
  Abilities can;
  std::string missing;  ///< the reason if it cannot take part; otherwise empty
};

struct ServerPlace {
  std::filesystem::path folder;
  std::uint16_t port;
};

/// True if syncs may be left out, because only the state at the end matters. A million tasks with
/// one sync each would take an hour.
enum class Loading : std::uint8_t { as_promised, unsynced };

class ServerPeer {
 public:
  explicit ServerPeer(PeerTraits traits) : traits_(std::move(traits)) {}
  virtual ~ServerPeer() = default;
  ServerPeer(const ServerPeer&) = delete;
  ServerPeer& operator=(const ServerPeer&) = delete;

  const PeerTraits& traits() const { return traits_; }

  /// Creates the files that the server needs in an empty folder.
  virtual void prepare(const ServerPlace& /*place*/) {}
  virtual std::vector<std::string> command(const ServerPlace& place, Loading loading) const = 0;
  virtual Account account() const;

  /// Throws ServerError if the server is not ready yet.
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

/// Appends the payload of a task with this due time; 16 to 100 bytes.
void append_payload(std::string& text, std::int64_t due_us, std::size_t size = 100);
std::int64_t due_of_payload(std::string_view payload);

void pause_for_poll();

/// Calls `poll` every millisecond until it finds tasks or `wait_ms` are over. For servers without a
/// call that waits.
template <class Poll>
TakenTasks poll_until_due(int wait_ms, Poll poll) {
  for (const std::int64_t end = wall_us() + wait_ms * std::int64_t{1'000};;) {
    TakenTasks taken = poll();
    if (!taken.tasks.empty() || wall_us() >= end) return taken;
    pause_for_poll();
  }
}

}  // namespace detent::bench
