// json_bench: our JSON reader compared with simdjson and RapidJSON.
//
//     json_bench [--documents small,lease] [--reps 15] [--box 0.01] [--mutations 20k] [--csv FILE]
//
// Each parser reads the same documents into the same struct, and keeps the bytes of payloads:
//
//  - small    a schedule request of about 120 bytes: queue, delay and payload
//  - full     a schedule request with all fields
//  - batch    an array of 100 small requests
//  - large    a schedule request with a payload of 64 KiB
//  - lease    a lease answer with 100 tasks
//
// "detent-scan" is one scan by our reader, which records and fills nothing.
//
// First prints the checks of our reader that a parser lacks, and how often both disagree about
// documents with random changes. Then measures "ns" and "MB/s" of each
// document: medians of thread CPU time, over interleaved repetitions. The column "timers" of the
// CSV file is the number of tasks in the document.
//
// To count instructions, which do not depend on the load of the machine, let bench/wheel/
// count_instructions run this program. The parser "null" reads nothing; it is subtracted.
#include <valgrind/callgrind.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "bench/arguments.h"
#include "bench/json/json_contender.h"
#include "bench/json/json_documents.h"
#include "bench/machine.h"
#include "bench/results.h"
#include "bench/stopwatch.h"
#include "detent/check.h"

namespace detent::bench {

#if !DETENT_BENCH_SIMDJSON
void add_simdjson(std::vector<NamedContender>& /*contenders*/) {
  std::puts("without simdjson: it was not installed when this was built");
}
#endif
#if !DETENT_BENCH_RAPIDJSON
void add_rapidjson(std::vector<NamedContender>& /*contenders*/) {
  std::puts("without rapidjson: it was not installed when this was built");
}
#endif

namespace {

struct Options {
  std::set<std::string> documents;
  std::uint32_t repetitions = 15;
  std::uint32_t mutations = 20'000;
  double box_seconds = 0.01;
  std::string csv = "json_bench.csv";
};

/// Longer documents are not mutated, because reading them so often takes too long.
constexpr std::size_t kMostMutatedBytes = 30'000;

class NullReader final : public JsonContender {
 public:
  bool read(std::string_view /*text*/, Shape /*shape*/, std::vector<Item>& /*items*/) override {
    return true;
  }
};

bool read_request(JsonContender& reader, const CheckedRequest& request, std::vector<Item>& items) {
  std::string text = request.text;
  text.reserve(text.size() + kPaddingBytes);
  items.clear();
  return reader.read(text, Shape::request, items);
}

/// A copy of the document with one to three bytes changed, removed or repeated.
std::string mutated(std::string text, Rng& random) {
  constexpr std::string_view kBytes = "{}[]\",:\\ 0123456789.-+eEtfnu\n\x01\x7F\xC3\xA9\xED\xFF";
  for (std::uint64_t changes = 1 + random.below(3); changes > 0 && !text.empty(); --changes) {
    const std::size_t place = random.below(static_cast<std::uint32_t>(text.size()));
    switch (random.below(3)) {
      case 0:
        text[place] = kBytes[random.below(std::uint32_t{kBytes.size()})];
        break;
      case 1:
        text.erase(place, 1 + random.below(3));
        break;
      default:
        text.insert(place, text.substr(place, 1 + random.below(3)));
    }
  }
  return text;
}

/// Reads mutated documents and prints how often the parser and ours disagree.
void print_disagreements(const NamedContender& contender, JsonContender& ours,
                         const std::vector<JsonDocument>& documents, std::uint32_t mutations) {
  Rng random(1);
  std::uint32_t accepted = 0;
  std::uint32_t wrongly_accepted = 0;
  std::uint32_t wrongly_refused = 0;
  std::uint32_t different = 0;
  std::vector<Item> items;
  std::vector<Item> expected;
  for (std::uint32_t i = 0; i < mutations; ++i) {
    const JsonDocument& document = documents[i % documents.size()];
    std::string text = mutated(document.text, random);
    text.reserve(text.size() + kPaddingBytes);
    items.clear();
    expected.clear();
    const bool is_valid = ours.read(text, document.shape, expected);
    const bool accepts = contender.reader->read(text, document.shape, items);
    accepted += is_valid ? 1U : 0U;
    wrongly_accepted += accepts && !is_valid ? 1U : 0U;
    wrongly_refused += !accepts && is_valid ? 1U : 0U;
    different += accepts && is_valid && items != expected ? 1U : 0U;
  }
  std::printf(
      "%-16s of %u mutated documents (detent accepts %u): accepts %u more, refuses %u, "
      "reads %u differently\n",
      "", mutations, accepted, wrongly_accepted, wrongly_refused, different);
}

/// Prints the requests that the parser accepts although it must not, and those that it does not
/// keep. Our reader must have none.
void print_missing_checks(const NamedContender& contender, JsonContender& ours) {
  std::vector<Item> items;
  std::vector<Item> expected;
  std::string missing;
  for (const CheckedRequest& request : refused_requests()) {
    DETENT_CHECK(!read_request(ours, request, expected));
    if (read_request(*contender.reader, request, items)) missing += ", accepts " + request.name;
  }
  for (const CheckedRequest& request : kept_requests()) {
    DETENT_CHECK(read_request(ours, request, expected));
    DETENT_CHECK(expected.front().payload == request.payload);
    if (!read_request(*contender.reader, request, items)) {
      missing += ", refuses " + request.name;
    } else if (items != expected) {
      missing += ", changes " + request.name;
    }
  }
  std::printf("%-16s %s\n", contender.name.c_str(),
              missing.empty() ? "checks what detent checks" : missing.c_str() + 2);
}

/// Reads the document `count` times.
void read_repeatedly(JsonContender& reader, const JsonDocument& document, std::uint32_t count,
                     std::vector<Item>& items) {
  for (std::uint32_t i = 0; i < count; ++i) {
    items.clear();
    DETENT_CHECK(reader.read(document.text, document.shape, items));
  }
}

void check_items(const NamedContender& contender, JsonContender& ours,
                 const JsonDocument& document) {
  std::vector<Item> expected;
  std::vector<Item> items;
  read_repeatedly(ours, document, 1, expected);
  read_repeatedly(*contender.reader, document, 1, items);
  DETENT_CHECK(expected.size() == document.item_count);
  DETENT_CHECK(items == expected);
}

/// Counts the instructions of each parser in dumps for bench/wheel/count_instructions.
void count_instructions(std::vector<NamedContender>& contenders,
                        const std::vector<JsonDocument>& documents) {
  constexpr std::uint32_t kReads = 20;
  contenders.push_back({"null", std::make_unique<NullReader>()});
  std::vector<Item> items;
  for (const NamedContender& contender : contenders) {
    for (const JsonDocument& document : documents) {
      read_repeatedly(*contender.reader, document, 2, items);  // allocates the parser's buffers
      CALLGRIND_ZERO_STATS;
      read_repeatedly(*contender.reader, document, kReads, items);
      const std::string phase = contender.name + " " + document.name + " " + std::to_string(kReads);
      CALLGRIND_DUMP_STATS_AT(phase.c_str());
    }
  }
}

/// The number of reads that take about `box_seconds`.
std::uint32_t reads_in_box(JsonContender& reader, const JsonDocument& document,
                           double box_seconds) {
  std::vector<Item> items;
  std::uint32_t count = 1;
  while (true) {
    const Stopwatch watch;
    read_repeatedly(reader, document, count, items);
    const double seconds = watch.seconds();
    if (seconds >= box_seconds / 2 || count >= 1'000'000) return count;
    count *= 2;
  }
}

void measure(const std::vector<NamedContender>& contenders,
             const std::vector<JsonDocument>& documents, const Options& options) {
  Results results(options.csv);
  std::vector<Item> items;
  std::vector<std::string> names;
  for (const NamedContender& contender : contenders) names.push_back(contender.name);
  for (const JsonDocument& document : documents) {
    std::vector<std::uint32_t> counts;
    for (const NamedContender& contender : contenders) {
      counts.push_back(reads_in_box(*contender.reader, document, options.box_seconds));
    }
    for (std::uint32_t repetition = 0; repetition < options.repetitions; ++repetition) {
      for (std::size_t i = 0; i < contenders.size(); ++i) {
        const Stopwatch watch;
        read_repeatedly(*contenders[i].reader, document, counts[i], items);
        const double each = watch.nanoseconds_each(counts[i]);
        const double rate = static_cast<double>(document.text.size()) * 1e3 / each;
        results.add({document.item_count, names[i], document.name + " ns", repetition, each});
        results.add({document.item_count, names[i], document.name + " MB/s", repetition, rate});
      }
    }
    std::printf("%s: %zu bytes\n", document.name.c_str(), document.text.size());
    results.print(document.item_count, names, document.name + " ");
  }
}

int run(const std::vector<std::string>& arguments) {
  Options options;
  const bool understood = read_arguments(arguments, {},
                                         {{"--documents", into(options.documents)},
                                          {"--reps", repetitions_into(options.repetitions)},
                                          {"--box", into(options.box_seconds)},
                                          {"--mutations", into(options.mutations)},
                                          {"--csv", into(options.csv)}});
  std::vector<JsonDocument> documents = measured_documents();
  std::erase_if(documents, [&options](const JsonDocument& document) {
    return !options.documents.empty() && !options.documents.contains(document.name);
  });
  if (!understood || documents.empty()) {
    std::fputs(
        "usage: json_bench [--documents small,full,batch,large,lease] [--reps 15] [--box 0.01]\n"
        "         [--mutations 20k] [--csv FILE]\n",
        stderr);
    return 2;
  }
  std::vector<NamedContender> contenders;
  add_detent(contenders);
  add_simdjson(contenders);
  add_rapidjson(contenders);
  JsonContender& ours = *contenders.front().reader;
  std::vector<JsonDocument> short_documents = documents;
  std::erase_if(short_documents, [](const JsonDocument& document) {
    return document.text.size() > kMostMutatedBytes;
  });
  for (const NamedContender& contender : contenders) {
    for (const JsonDocument& document : documents) check_items(contender, ours, document);
  }
  if (RUNNING_ON_VALGRIND != 0) {
    add_scan(contenders);
    count_instructions(contenders, documents);
    return 0;
  }
  for (const NamedContender& contender : contenders) {
    print_missing_checks(contender, ours);
    if (contender.reader.get() == &ours || short_documents.empty()) continue;
    print_disagreements(contender, ours, short_documents, options.mutations);
  }
  add_scan(contenders);
  pin_to_one_core();
  measure(contenders, documents, options);
  return 0;
}

}  // namespace
}  // namespace detent::bench

int main(int argc, char** argv) { return detent::bench::run({argv + 1, argv + argc}); }
