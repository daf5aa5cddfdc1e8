#include "store/meta_format.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "detent/check.h"
#include "store/record_fields.h"
#include "store/record_format.h"

namespace detent {

namespace {

constexpr std::uint8_t kQueueVersion = 1;

// The flags of a queue record: a switch, and which optional settings the record has. All other bits
// must be 0.
constexpr std::uint64_t kPaused = 1u << 0;
constexpr std::uint64_t kHasMaxAttempts = 1u << 1;
constexpr std::uint64_t kHasVisibilityTimeout = 1u << 2;
constexpr std::uint64_t kHasBackoff = 1u << 3;
constexpr std::uint64_t kHasMaxTasks = 1u << 4;
constexpr std::uint64_t kHasMaxBytes = 1u << 5;
constexpr std::uint64_t kHasRate = 1u << 6;
constexpr std::uint64_t kHasConcurrency = 1u << 7;
constexpr std::uint64_t kHasWebhook = 1u << 8;
constexpr std::uint64_t kHasPartitions = 1u << 9;
constexpr std::uint64_t kKnownFlags = (1u << 10) - 1;

Error in_key(std::string_view key, Error error) {
  return with_context("read \"" + std::string(key) + "\"", std::move(error));
}

std::uint64_t flags_of(const QueueSettings& settings) {
  std::uint64_t flags = 0;
  if (settings.paused) flags |= kPaused;
  if (settings.max_attempts) flags |= kHasMaxAttempts;
  if (settings.visibility_timeout) flags |= kHasVisibilityTimeout;
  if (settings.backoff) flags |= kHasBackoff;
  if (settings.max_tasks) flags |= kHasMaxTasks;
  if (settings.max_bytes) flags |= kHasMaxBytes;
  if (settings.rate) flags |= kHasRate;
  if (settings.concurrency) flags |= kHasConcurrency;
  if (settings.webhook) flags |= kHasWebhook;
  if (settings.partitions > 1) flags |= kHasPartitions;
  return flags;
}

void write_webhook(ByteWriter& writer, const QueueWebhook& webhook) {
  writer.string(webhook.url);
  writer.varint(webhook.keys.size());
  for (const std::string& key : webhook.keys) writer.string(key);
}

void write_settings(ByteWriter& writer, const QueueSettings& settings) {
  writer.varint(flags_of(settings));
  write_duration(writer, settings.retention);
  write_duration(writer, settings.key_retention);
  if (settings.max_attempts) writer.varint(*settings.max_attempts);
  if (settings.visibility_timeout) write_duration(writer, *settings.visibility_timeout);
  if (settings.backoff) write_backoff(writer, *settings.backoff);
  if (settings.max_tasks) writer.varint(*settings.max_tasks);
  if (settings.max_bytes) writer.varint(*settings.max_bytes);
  if (settings.rate) writer.varint(*settings.rate);
  if (settings.concurrency) writer.varint(*settings.concurrency);
  if (settings.webhook) write_webhook(writer, *settings.webhook);
  if (settings.partitions > 1) writer.varint(settings.partitions);
}

Result<QueueWebhook> read_webhook(ByteReader& reader) {
  QueueWebhook webhook;
  ASSIGN_OR_RETURN(webhook.url, read_string(reader, kMaxWebhookBytes));
  ASSIGN_OR_RETURN(const std::uint64_t count, reader.varint());
  if (count > kMaxWebhookKeys)
    return damaged_record("its webhook has " + std::to_string(count) + " keys, more than the " +
                          std::to_string(kMaxWebhookKeys) + " allowed");
  webhook.keys.resize(count);
  for (std::string& key : webhook.keys) {
    ASSIGN_OR_RETURN(key, read_string(reader, kMaxWebhookBytes));
  }
  return webhook;
}

Result<QueueSettings> read_settings(ByteReader& reader) {
  QueueSettings settings;
  ASSIGN_OR_RETURN(const std::uint64_t flags, reader.varint());
  if ((flags & ~kKnownFlags) != 0) {
    return damaged_record("a flag is set that version 1 does not have");
  }
  settings.paused = (flags & kPaused) != 0;
  ASSIGN_OR_RETURN(settings.retention, read_duration(reader));
  ASSIGN_OR_RETURN(settings.key_retention, read_duration(reader));
  if (flags & kHasMaxAttempts) {
    ASSIGN_OR_RETURN(settings.max_attempts, read_u32(reader));
  }
  if (flags & kHasVisibilityTimeout) {
    ASSIGN_OR_RETURN(settings.visibility_timeout, read_duration(reader));
  }
  if (flags & kHasBackoff) {
    ASSIGN_OR_RETURN(settings.backoff, read_backoff(reader));
  }
  if (flags & kHasMaxTasks) {
    ASSIGN_OR_RETURN(settings.max_tasks, reader.varint());
  }
  if (flags & kHasMaxBytes) {
    ASSIGN_OR_RETURN(settings.max_bytes, reader.varint());
  }
  if (flags & kHasRate) {
    ASSIGN_OR_RETURN(settings.rate, read_u32(reader));
  }
  if (flags & kHasConcurrency) {
    ASSIGN_OR_RETURN(settings.concurrency, read_u32(reader));
  }
  if (flags & kHasWebhook) {
    ASSIGN_OR_RETURN(settings.webhook, read_webhook(reader));
  }
  if (flags & kHasPartitions) {
    ASSIGN_OR_RETURN(settings.partitions, read_u32(reader));
  }
  return settings;
}

Result<QueueRecord> read_queue(std::string_view key, std::string_view value) {
  ASSIGN_OR_RETURN(const std::string_view bytes, unseal(value, key));
  ByteReader reader(bytes);
  QueueRecord record;
  record.queue = key.substr(kQueuePrefix.size());
  ASSIGN_OR_RETURN(const unsigned version, reader.u8());
  if (version != kQueueVersion) {
    return damaged_record("its version is " + std::to_string(version) +
                          ", this program reads version " + std::to_string(kQueueVersion));
  }
  ASSIGN_OR_RETURN(record.number, read_u32(reader));
  ASSIGN_OR_RETURN(record.waiting, reader.varint());
  ASSIGN_OR_RETURN(record.dead, reader.varint());
  ASSIGN_OR_RETURN(record.bytes, reader.varint());
  ASSIGN_OR_RETURN(record.in_ready_lane, reader.varint());
  ASSIGN_OR_RETURN(record.in_webhook_lane, reader.varint());
  ASSIGN_OR_RETURN(record.settings, read_settings(reader));
  TRY(reader.expect_end());
  return record;
}

/// The client's key in a result of key_key().
std::string name_in(std::string_view key) {
  return std::string(key.substr(std::min<std::size_t>(4, key.size())));
}

Result<KeyRecord> read_key(std::string_view key, std::string_view value) {
  KeyRecord record;
  ByteReader name(key);
  ASSIGN_OR_RETURN(record.queue, name.key_u32());
  record.key = key.substr(name.position());
  ASSIGN_OR_RETURN(const std::string_view bytes, unseal(value, key));
  ByteReader reader(bytes);
  ASSIGN_OR_RETURN(record.id.value, reader.varint());
  ASSIGN_OR_RETURN(record.content, reader.u64());
  if (!reader.at_end()) {
    ASSIGN_OR_RETURN(record.expires_at, read_time(reader));
  }
  TRY(reader.expect_end());
  return record;
}

}  // namespace

std::string meta_value(std::string_view key, std::string bytes) {
  DETENT_CHECK(!key.empty());  // the key is the context of the seal
  seal(bytes, key);
  return bytes;
}

Result<std::string_view> parse_meta_value(std::string_view key, std::string_view value) {
  Result<std::string_view> bytes = unseal(value, key);
  if (bytes) return bytes;
  return in_key(key, std::move(bytes).error());
}

std::string number_bytes(std::uint64_t number) {
  std::string bytes;
  ByteWriter(bytes).u64(number);
  return bytes;
}

Result<std::uint64_t> parse_number_bytes(std::string_view bytes) {
  ByteReader reader(bytes);
  ASSIGN_OR_RETURN(const std::uint64_t number, reader.u64());
  TRY(reader.expect_end());
  return number;
}

std::string queue_key(std::string_view queue) { return std::string(kQueuePrefix).append(queue); }

std::string queue_value(std::string_view key, const QueueRecord& record) {
  std::string value;
  ByteWriter writer(value);
  writer.u8(kQueueVersion);
  writer.varint(record.number);
  writer.varint(record.waiting);
  writer.varint(record.dead);
  writer.varint(record.bytes);
  writer.varint(record.in_ready_lane);
  writer.varint(record.in_webhook_lane);
  write_settings(writer, record.settings);
  std::string sealed = meta_value(key, std::move(value));
  DETENT_DCHECK(parse_queue(key, sealed).value() == record);
  return sealed;
}

Result<QueueRecord> parse_queue(std::string_view key, std::string_view value) {
  Result<QueueRecord> record = read_queue(key, value);
  if (record) return record;
  return in_key(key, std::move(record).error());
}

std::string key_key(std::uint32_t queue, std::string_view key) {
  std::string bytes;
  bytes.reserve(4 + key.size());
  ByteWriter writer(bytes);
  writer.key_u32(queue);
  writer.raw(key);
  return bytes;
}

std::string key_value(std::string_view key, const KeyRecord& record) {
  std::string value;
  ByteWriter writer(value);
  writer.varint(record.id.value);
  writer.u64(record.content);
  if (record.expires_at) write_time(writer, *record.expires_at);
  std::string sealed = meta_value(key, std::move(value));
  DETENT_DCHECK(parse_key_value(key, sealed).value() == record);
  return sealed;
}

Result<KeyRecord> parse_key_value(std::string_view key, std::string_view value) {
  Result<KeyRecord> record = read_key(key, value);
  if (record) return record;
  return with_context("read key \"" + name_in(key) + "\"", std::move(record).error());
}

void add_key_to_page(KeyPage& page, std::size_t limit, std::string_view key,
                     std::string_view value) {
  DETENT_CHECK(!page.read_to);
  DETENT_CHECK(page.records.size() + page.damaged.size() < limit);
  if (Result<KeyRecord> record = parse_key_value(key, value)) {
    page.records.push_back(*std::move(record));
  } else {
    page.damaged.push_back(name_in(key));
  }
  if (page.records.size() + page.damaged.size() == limit) page.read_to = name_in(key);
}

}  // namespace detent
