// The limits of a task, in one place. docs/reference/limits.md lists them for users.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace detent {

inline constexpr std::size_t kMaxPayloadBytes = 65'535;
inline constexpr std::size_t kMaxQueueNameBytes = 200;
inline constexpr std::size_t kMaxBatchTasks = 10'000;
inline constexpr std::size_t kMaxLeaseTasks = 1'000;
/// The largest size of a page of a list, and the default.
inline constexpr std::uint64_t kMaxPage = 1'000;
inline constexpr std::uint64_t kDefaultPage = 100;
inline constexpr std::size_t kMaxErrorBytes = 500;
/// The most attempts in the history of a task.
inline constexpr std::size_t kMaxHistory = 10;
inline constexpr std::size_t kMaxKeyBytes = 200;
/// A worker's name is shown to people; the server does not interpret it.
inline constexpr std::size_t kMaxWorkerBytes = 200;
inline constexpr std::uint32_t kMaxAttempts = 1'000'000;
/// The longest delay: 2^32 - 1 seconds, about 136 years.
inline constexpr std::chrono::seconds kMaxDelay{4'294'967'295};
inline constexpr std::chrono::milliseconds kMaxVisibilityTimeout = std::chrono::hours{24 * 30};
inline constexpr std::chrono::milliseconds kMaxLeaseWait{60'000};
/// The longest time for which a queue keeps ended tasks, or their keys.
inline constexpr std::chrono::milliseconds kMaxRetention = std::chrono::hours{24 * 365};
/// The largest values that a queue's limits of tasks per second and of leases may have.
inline constexpr std::uint32_t kMaxRate = 1'000'000;
inline constexpr std::uint32_t kMaxConcurrency = 1'000'000;
/// The most partitions of a queue. It is also the largest possible number of shards.
inline constexpr std::uint32_t kMaxPartitions = 256;
/// Limits of a recurring schedule. The key of its tasks is the name, "@" and the occurrence, so the
/// name must be shorter than a key.
inline constexpr std::size_t kMaxScheduleNameBytes = 150;
inline constexpr std::size_t kMaxCronBytes = 1'000;
inline constexpr std::size_t kMaxTimeZoneBytes = 100;
inline constexpr std::chrono::milliseconds kLeastPeriod{1'000};
inline constexpr std::chrono::milliseconds kMaxJitter = std::chrono::hours{24};
inline constexpr std::uint32_t kMaxMisfires = 1'000;
/// The most occurrences in one back-fill: about two years of hours, or two weeks of minutes.
inline constexpr std::uint64_t kMaxBackfill = 20'000;
/// Limits of webhooks: the URL, the headers of a task, and the keys of a queue.
inline constexpr std::size_t kMaxWebhookBytes = 2'048;
inline constexpr std::size_t kMaxHeaders = 16;
inline constexpr std::size_t kMaxHeaderNameBytes = 64;
inline constexpr std::size_t kMaxHeaderValueBytes = 1'024;
inline constexpr std::size_t kMaxHeadersBytes = 4'096;  // names and values
inline constexpr std::size_t kMaxWebhookKeys = 3;
inline constexpr std::size_t kLeastWebhookKeyBytes = 24;  // decoded
inline constexpr std::size_t kMaxWebhookKeyBytes = 64;
/// Lower is more urgent.
inline constexpr std::uint32_t kDefaultPriority = 1024;

}  // namespace detent
