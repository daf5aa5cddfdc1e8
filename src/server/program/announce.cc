#include "server/program/announce.h"

#include <cstdio>

#include "base/log/log.h"
#include "server/operate/version.h"
#include "server/program/open_engine.h"

namespace detent::server {

std::string address_of(const std::string& host, std::uint16_t port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

void announce(const cli::ServeOptions& options, std::uint16_t port, const std::string& beanstalk) {
  const std::string url =
      (options.tls_cert.empty() ? "http://" : "https://") + address_of(options.http_host, port);
  const std::string place = data_place(options);
  std::printf("Detent %s is ready at %s%s%s, data in %s.\nThe dashboard is at %s/ in a browser.",
              kVersion, url.c_str(), beanstalk.empty() ? "" : ", beanstalk at ", beanstalk.c_str(),
              place.c_str(), url.c_str());
  if (options.auth.empty()) {
    std::printf(
        " Or try:\n"
        "  curl -s %s/v1/tasks -d "
        "'{\"queue\":\"mail\",\"payload\":{\"to\":\"ada\"},\"delay\":\"3s\"}'\n"
        "  curl -s %s/v1/queues/mail/lease -d '{\"wait\":\"20s\"}'\n",
        url.c_str(), url.c_str());
  } else {
    std::printf(" Requests need a token from %s.\n", options.auth.c_str());
  }
  std::fflush(stdout);
  log_info("ready", {{"address", url}, {"beanstalk", beanstalk}, {"data", place}});
}

}  // namespace detent::server
