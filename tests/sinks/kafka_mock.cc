// librdkafka's mock cluster as a process of its own, with one broker. The cluster lives in the
// memory of its process, so this process goes on while the broker is down.
//
// It prints "at HOST:PORT". Then it answers each line of its standard input:
//
// - "down" and "up" stop and start the broker. The answer is "ok".
// - "refuse" makes the broker refuse the next batch as too large. The answer is "ok".
// - "list" prints one line for each message of the topic "due":
//   {"key":…,"fields":{…},"body":…} with strings in hexadecimal. Then it prints "end".
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <array>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

namespace {

constexpr const char* kTopic = "due";
constexpr int kPatienceMs = 5'000;

std::string hex(const void* data, std::size_t size) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "\"";
  for (const char c : std::string_view(static_cast<const char*>(data), size)) {
    const auto byte = static_cast<unsigned char>(c);
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text + "\"";
}

rd_kafka_t* make(rd_kafka_type_t type, const std::string& brokers) {
  std::array<char, 256> why{};
  rd_kafka_conf_t* const conf = rd_kafka_conf_new();
  if (!brokers.empty()) {
    rd_kafka_conf_set(conf, "bootstrap.servers", brokers.c_str(), why.data(), why.size());
    rd_kafka_conf_set(conf, "group.id", "test", why.data(), why.size());
    rd_kafka_conf_set(conf, "enable.partition.eof", "true", why.data(), why.size());
  }
  return rd_kafka_new(type, conf, why.data(), why.size());
}

void print(const rd_kafka_message_t& message) {
  std::cout << "{\"key\":" << hex(message.key, message.key_len) << ",\"fields\":{";
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR) {
    const char* name = nullptr;
    const void* value = nullptr;
    std::size_t size = 0;
    for (std::size_t i = 0;
         rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
         ++i) {
      std::cout << (i == 0 ? "" : ",") << hex(name, std::string_view(name).size()) << ":"
                << hex(value, size);
    }
  }
  std::cout << "},\"body\":" << hex(message.payload, message.len) << "}\n";
}

/// Prints all messages of the topic, which has one partition.
void list(const std::string& brokers) {
  rd_kafka_t* const consumer = make(RD_KAFKA_CONSUMER, brokers);
  rd_kafka_poll_set_consumer(consumer);
  rd_kafka_topic_partition_list_t* const from = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(from, kTopic, 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
  rd_kafka_assign(consumer, from);
  bool is_over = false;
  while (!is_over) {
    rd_kafka_message_t* const message = rd_kafka_consumer_poll(consumer, kPatienceMs);
    is_over = message == nullptr || message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
    if (message != nullptr && message->err == RD_KAFKA_RESP_ERR_NO_ERROR) print(*message);
    if (message != nullptr) rd_kafka_message_destroy(message);
  }
  rd_kafka_topic_partition_list_destroy(from);
  rd_kafka_consumer_close(consumer);
  rd_kafka_destroy(consumer);
  std::cout << "end" << std::endl;
}

}  // namespace

int main() {
  rd_kafka_t* const owner = make(RD_KAFKA_PRODUCER, "");
  rd_kafka_mock_cluster_t* const cluster = rd_kafka_mock_cluster_new(owner, 1);
  rd_kafka_mock_topic_create(cluster, kTopic, 1, 1);
  const std::string brokers = rd_kafka_mock_cluster_bootstraps(cluster);
  std::cout << "at " << brokers << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "list") {
      list(brokers);
      continue;
    }
    if (line == "down") rd_kafka_mock_broker_set_down(cluster, 1);
    if (line == "up") rd_kafka_mock_broker_set_up(cluster, 1);
    if (line == "refuse") {
      constexpr std::int16_t kProduce = 0;  // the number of this request in Kafka's protocol
      rd_kafka_mock_push_request_errors(cluster, kProduce, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    }
    std::cout << "ok" << std::endl;
  }
  rd_kafka_mock_cluster_destroy(cluster);
  rd_kafka_destroy(owner);
}
