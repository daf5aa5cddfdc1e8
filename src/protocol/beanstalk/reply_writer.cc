#include "protocol/beanstalk/reply_writer.h"

namespace detent::beanstalk {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

std::string_view text_of(Word word) noexcept {
  switch (word) {
    case Word::dead:
      return "BURIED";
    case Word::deadline_soon:
      return "DEADLINE_SOON";
    case Word::deleted:
      return "DELETED";
    case Word::draining:
      return "DRAINING";
    case Word::internal_error:
      return "INTERNAL_ERROR";
    case Word::kicked:
      return "KICKED";
    case Word::not_found:
      return "NOT_FOUND";
    case Word::not_ignored:
      return "NOT_IGNORED";
    case Word::out_of_memory:
      return "OUT_OF_MEMORY";
    case Word::paused:
      return "PAUSED";
    case Word::released:
      return "RELEASED";
    case Word::timed_out:
      return "TIMED_OUT";
    case Word::touched:
      return "TOUCHED";
  }
  return {};
}

std::string_view text_of(Refusal refusal) noexcept {
  switch (refusal) {
    case Refusal::bad_format:
      return "BAD_FORMAT";
    case Refusal::unknown_command:
      return "UNKNOWN_COMMAND";
    case Refusal::expected_crlf:
      return "EXPECTED_CRLF";
    case Refusal::job_too_big:
      return "JOB_TOO_BIG";
  }
  return {};
}

void write_line(std::string& out, std::string_view line) { out.append(line).append(kLineEnd); }

void write_line(std::string& out, std::string_view word, std::uint64_t number) {
  out.append(word).append(" ").append(std::to_string(number)).append(kLineEnd);
}

void write_job(std::string& out, std::string_view word, std::uint64_t id, std::string_view body) {
  out.append(word).append(" ").append(std::to_string(id)).append(" ");
  out.append(std::to_string(body.size())).append(kLineEnd);
  write_line(out, body);
}

}  // namespace

void write_word(std::string& out, Word word) { write_line(out, text_of(word)); }
void write_refusal(std::string& out, Refusal refusal) { write_line(out, text_of(refusal)); }

void write_inserted(std::string& out, std::uint64_t id) { write_line(out, "INSERTED", id); }
void write_using(std::string& out, std::string_view tube) {
  write_line(out.append("USING "), tube);
}
void write_watching(std::string& out, std::size_t count) { write_line(out, "WATCHING", count); }
void write_kicked(std::string& out, std::uint64_t count) { write_line(out, "KICKED", count); }
void write_reserved(std::string& out, std::uint64_t id, std::string_view body) {
  write_job(out, "RESERVED", id, body);
}
void write_found(std::string& out, std::uint64_t id, std::string_view body) {
  write_job(out, "FOUND", id, body);
}
void write_ok(std::string& out, std::string_view yaml) {
  write_line(out, "OK", yaml.size());
  write_line(out, yaml);
}

}  // namespace detent::beanstalk
