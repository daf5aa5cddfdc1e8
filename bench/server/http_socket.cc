#include "bench/server/http_socket.h"

namespace detent::bench {

void HttpSocket::send_post(std::string_view path, std::string_view body) {
  request_ = "POST ";
  request_ += path;
  request_ += " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size());
  request_ += "\r\n\r\n";
  request_ += body;
  socket_.send(request_);
}

void HttpSocket::send_get(std::string_view path) {
  request_ = "GET ";
  request_ += path;
  request_ += " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  socket_.send(request_);
}

std::string_view HttpSocket::receive() {
  const std::string status(socket_.read_line());
  std::size_t size = 0;
  for (std::string_view line = socket_.read_line(); !line.empty(); line = socket_.read_line()) {
    if (line.size() < 16) continue;
    const bool is_size = line[0] == 'C' && line[8] == 'L' && line.starts_with("Content-Length:");
    if (is_size) size = static_cast<std::size_t>(number_after(line, ":"));
  }
  const std::string_view body = socket_.read(size);
  if (!status.starts_with("HTTP/1.1 2")) {
    throw ServerError(status + " " + std::string(body.substr(0, 200)));
  }
  return body;
}

std::string_view next_string(std::string_view text, std::string_view name, std::size_t& at) {
  at = text.find(name, at);
  if (at == std::string_view::npos) return {};
  at += name.size();
  const std::string_view value = text.substr(at, text.find('"', at) - at);
  at += value.size();
  return value;
}

}  // namespace detent::bench
