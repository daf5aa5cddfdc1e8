#include "server/beanstalk/cluster_jobs.h"

#include <array>
#include <utility>

#include "base/bytes.h"

namespace detent::server {
namespace {

using beanstalk::Command;
using beanstalk::Verb;
using std::chrono::milliseconds;

/// In front: another version of this format has another.
constexpr std::uint8_t kFormatVersion = 1;
/// No list of more is sent: a batch of commands has less, as has a client's watch list.
constexpr std::uint64_t kMost = 1'000'000;

Error damaged(const char* what) { return {ErrorCode::data_loss, what, ""}; }

template <class Duration>
void write_time(ByteWriter& writer, Duration time) {
  writer.varint(static_cast<std::uint64_t>(time.count()));
}

template <class Duration>
Result<Duration> decode_time(ByteReader& reader) {
  ASSIGN_OR_RETURN(const std::uint64_t count, reader.varint());
  return Duration{static_cast<std::int64_t>(count)};
}

template <class Enum>
Result<Enum> read_enum(ByteReader& reader, Enum last) {
  ASSIGN_OR_RETURN(const std::uint8_t value, reader.u8());
  if (value > static_cast<std::uint8_t>(last)) return damaged("jobs: unknown value");
  return static_cast<Enum>(value);
}

Result<std::string> read_text(ByteReader& reader) {
  ASSIGN_OR_RETURN(const std::string_view text, reader.string());
  return std::string(text);
}

/// Reads the number of following items, each at least one byte long.
Result<std::uint64_t> read_count(ByteReader& reader) {
  ASSIGN_OR_RETURN(const std::uint64_t count, reader.varint());
  if (count > kMost || count > reader.remaining()) return damaged("jobs: a list is cut off");
  return count;
}

void write_token(ByteWriter& writer, LeaseToken token) {
  writer.varint(token.epoch);
  writer.varint(token.number);
}

Result<LeaseToken> read_token(ByteReader& reader) {
  LeaseToken token;
  ASSIGN_OR_RETURN(token.epoch, reader.varint());
  ASSIGN_OR_RETURN(token.number, reader.varint());
  return token;
}

std::array<std::uint64_t*, 5> numbers_of(QueueUse& use) {
  return {&use.using_it, &use.watching, &use.waiting, &use.deletes, &use.pauses};
}

std::array<std::uint64_t*, 7> numbers_of(AllJobs& all) {
  return {&all.counts.urgent, &all.counts.ready, &all.counts.reserved, &all.counts.delayed,
          &all.counts.dead,   &all.counts.total, &all.timeouts};
}

template <class Numbers>
void write_numbers(ByteWriter& writer, Numbers of) {
  for (const std::uint64_t* const number : numbers_of(of)) writer.varint(*number);
}

template <class Numbers>
Result<void> read_numbers(ByteReader& reader, Numbers& of) {
  for (std::uint64_t* const number : numbers_of(of)) {
    ASSIGN_OR_RETURN(*number, reader.varint());
  }
  return ok();
}

void write_call(ByteWriter& writer, const JobCall& call) {
  const Command& command = call.command;
  writer.u8(static_cast<std::uint8_t>(command.verb));
  writer.varint(command.id);
  writer.varint(command.bound);
  writer.u32(command.priority);
  write_time(writer, command.delay);
  write_time(writer, command.time_out);
  writer.string(command.body);
  writer.string(call.queue);
  writer.u8(call.lease ? 1 : 0);
  if (call.lease) write_token(writer, *call.lease);
  write_time(writer, call.length);
  write_numbers(writer, call.use);
}

Result<JobCall> read_call(ByteReader& reader) {
  JobCall call;
  Command& command = call.command;
  ASSIGN_OR_RETURN(command.verb, read_enum(reader, Verb::quit));
  if (concern_of(command.verb) == Concern::other) return damaged("jobs: unknown call");
  ASSIGN_OR_RETURN(command.id, reader.varint());
  ASSIGN_OR_RETURN(command.bound, reader.varint());
  ASSIGN_OR_RETURN(command.priority, reader.u32());
  ASSIGN_OR_RETURN(command.delay, decode_time<std::chrono::seconds>(reader));
  ASSIGN_OR_RETURN(command.time_out, decode_time<std::chrono::seconds>(reader));
  ASSIGN_OR_RETURN(command.body, read_text(reader));
  ASSIGN_OR_RETURN(call.queue, read_text(reader));
  ASSIGN_OR_RETURN(const std::uint8_t has_lease, reader.u8());
  if (has_lease > 0) {
    ASSIGN_OR_RETURN(call.lease, read_token(reader));
  }
  ASSIGN_OR_RETURN(call.length, decode_time<milliseconds>(reader));
  TRY(read_numbers(reader, call.use));
  return call;
}

void write_job_answer(ByteWriter& writer, const JobAnswer& answer) {
  writer.string(answer.reply);
  writer.u8(static_cast<std::uint8_t>(answer.lease));
  writer.string(answer.counted_in);
  if (answer.lease != JobAnswer::Lease::taken) return;
  writer.varint(answer.taken.id);
  write_token(writer, answer.taken.token);
  write_time(writer, answer.taken.length);
  writer.string(answer.taken.queue);
}

Result<JobAnswer> read_job_answer(ByteReader& reader) {
  JobAnswer answer;
  ASSIGN_OR_RETURN(answer.reply, read_text(reader));
  ASSIGN_OR_RETURN(answer.lease, read_enum(reader, JobAnswer::Lease::taken));
  ASSIGN_OR_RETURN(answer.counted_in, read_text(reader));
  if (answer.lease != JobAnswer::Lease::taken) return answer;
  ASSIGN_OR_RETURN(answer.taken.id, reader.varint());
  ASSIGN_OR_RETURN(answer.taken.token, read_token(reader));
  ASSIGN_OR_RETURN(answer.taken.length, decode_time<milliseconds>(reader));
  ASSIGN_OR_RETURN(answer.taken.queue, read_text(reader));
  return answer;
}

Result<void> read_version(ByteReader& reader) {
  ASSIGN_OR_RETURN(const std::uint8_t version, reader.u8());
  return version == kFormatVersion ? ok()
                                   : Result<void>(damaged("jobs: unknown version of the format"));
}

}  // namespace

std::string encode(const ShardAsk& ask) {
  std::string bytes;
  ByteWriter writer(bytes);
  writer.u8(kFormatVersion);
  writer.u8(static_cast<std::uint8_t>(ask.kind));
  writer.varint(ask.calls.size());
  for (const JobCall& call : ask.calls) write_call(writer, call);
  writer.varint(ask.queues.size());
  for (const std::string& queue : ask.queues) writer.string(queue);
  write_time(writer, ask.wait);
  writer.varint(ask.number);
  writer.varint(ask.leases.size());
  for (const LeaseToken lease : ask.leases) write_token(writer, lease);
  return bytes;
}

Result<ShardAsk> decode_ask(std::string_view bytes) {
  ByteReader reader(bytes);
  TRY(read_version(reader));
  ShardAsk ask;
  ASSIGN_OR_RETURN(ask.kind, read_enum(reader, ShardAsk::Kind::all));
  ASSIGN_OR_RETURN(const std::uint64_t calls, read_count(reader));
  for (std::uint64_t i = 0; i < calls; ++i) {
    ASSIGN_OR_RETURN(JobCall call, read_call(reader));
    ask.calls.push_back(std::move(call));
  }
  ASSIGN_OR_RETURN(const std::uint64_t queues, read_count(reader));
  for (std::uint64_t i = 0; i < queues; ++i) {
    ASSIGN_OR_RETURN(std::string queue, read_text(reader));
    ask.queues.push_back(std::move(queue));
  }
  ASSIGN_OR_RETURN(ask.wait, decode_time<milliseconds>(reader));
  ASSIGN_OR_RETURN(ask.number, reader.varint());
  ASSIGN_OR_RETURN(const std::uint64_t leases, read_count(reader));
  if (leases > ShardAsk::kMostLeases) return damaged("jobs: too many leases");
  for (std::uint64_t i = 0; i < leases; ++i) {
    ASSIGN_OR_RETURN(const LeaseToken lease, read_token(reader));
    ask.leases.push_back(lease);
  }
  TRY(reader.expect_end());
  const bool is_of_queues = ask.kind == ShardAsk::Kind::next || ask.kind == ShardAsk::Kind::take;
  if (is_of_queues && ask.queues.empty()) return damaged("jobs: the call names no queue");
  return ask;
}

std::string encode(const ShardAnswer& answer) {
  std::string bytes;
  ByteWriter writer(bytes);
  writer.u8(kFormatVersion);
  writer.varint(answer.answers.size());
  for (const JobAnswer& one : answer.answers) write_job_answer(writer, one);
  writer.u8(answer.head ? 1 : 0);
  if (answer.head) {
    writer.u32(answer.head->priority);
    writer.i64(answer.head->due_at.time_since_epoch().count());
    writer.varint(answer.head->id.value);
  }
  write_numbers(writer, answer.all);
  writer.varint(answer.all.queues.size());
  for (const std::string& queue : answer.all.queues) writer.string(queue);
  return bytes;
}

Result<ShardAnswer> decode_answer(std::string_view bytes) {
  ByteReader reader(bytes);
  TRY(read_version(reader));
  ShardAnswer answer;
  ASSIGN_OR_RETURN(const std::uint64_t answers, read_count(reader));
  for (std::uint64_t i = 0; i < answers; ++i) {
    ASSIGN_OR_RETURN(JobAnswer one, read_job_answer(reader));
    answer.answers.push_back(std::move(one));
  }
  ASSIGN_OR_RETURN(const std::uint8_t has_head, reader.u8());
  if (has_head > 0) {
    ReadyHead head;
    ASSIGN_OR_RETURN(head.priority, reader.u32());
    ASSIGN_OR_RETURN(const std::int64_t due_at, reader.i64());
    head.due_at = WallTime{WallTime::duration{due_at}};
    ASSIGN_OR_RETURN(head.id.value, reader.varint());
    answer.head = head;
  }
  TRY(read_numbers(reader, answer.all));
  ASSIGN_OR_RETURN(const std::uint64_t queues, read_count(reader));
  for (std::uint64_t i = 0; i < queues; ++i) {
    ASSIGN_OR_RETURN(std::string queue, read_text(reader));
    answer.all.queues.push_back(std::move(queue));
  }
  TRY(reader.expect_end());
  return answer;
}

}  // namespace detent::server
