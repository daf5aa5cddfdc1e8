#include "server/program/announce.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

#include "base/log/log.h"
#include "server/operate/version.h"
#include "server/program/open_engine.h"
#include "store/backup.h"

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

void tell_restored(const std::filesystem::path& data) {
  if (data.empty()) return;
  const std::filesystem::path file = data / kRestoredFile;
  std::ifstream in(file);
  std::map<std::string, std::string> values;
  for (std::string line; std::getline(in, line);) {
    const std::size_t equal = std::min(line.find('='), line.size());
    values[line.substr(0, equal)] = line.substr(std::min(equal + 1, line.size()));
  }
  if (values.empty()) return;
  log_warning(
      "this data folder was restored from a backup; tasks that ended after the backup are handed "
      "out again, and tasks that came after it are missing",
      {{"made_at", values["made_at"]},
       {"backup", values["backup"]},
       {"backup_folder", values["backup_folder"]},
       {"data_of", values["of"]},
       {"restored_at", values["restored_at"]},
       {"action", "send the missing tasks again, if their producers still have them"}});
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
}

}  // namespace detent::server
