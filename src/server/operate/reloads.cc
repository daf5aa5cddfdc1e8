#include "server/operate/reloads.h"

#include <algorithm>
#include <utility>

#include "base/log/log.h"

namespace detent::server {
namespace {

constexpr const char* kReloadAgain = "correct the file, then reload again (SIGHUP)";

}  // namespace

Reloads::Reloads(cli::ServeCall call, cli::ReadAgain read_again)
    : call_(std::move(call)), read_again_(std::move(read_again)) {}

void Reloads::add(std::string what, Reload reload) {
  parts_.push_back({std::move(what), std::move(reload)});
}

void Reloads::run() {
  const Result<cli::ServeCall> now = read_again_();
  bool has_failed = !now;
  if (now) {
    compare(*now);
  } else {
    log_error("the settings cannot be reloaded; the old settings stay in force",
              {{"cause", now.error().message}, {"action", kReloadAgain}});
  }
  for (const Part& part : parts_) {
    if (const Result<void> reloaded = part.reload(); reloaded) {
      log_info("reloaded", {{"what", part.what}});
    } else {
      has_failed = true;
      log_error(
          "a file cannot be reloaded; its old values stay in force",
          {{"what", part.what}, {"cause", reloaded.error().message}, {"action", kReloadAgain}});
    }
  }
  if (has_failed) {
    log_warning("the reload is incomplete: see the errors before this line");
  } else {
    log_info("the reload is complete");
  }
}

/// Values are not logged: an address may contain a password.
void Reloads::compare(const cli::ServeCall& now) {
  if (now.options.log_level != call_.options.log_level) {
    set_log_level(now.options.log_level);
    call_.options.log_level = now.options.log_level;
  }
  for (const cli::Setting& setting : now.settings) {
    const auto same = [&](const cli::Setting& old) { return old.name == setting.name; };
    const auto old = std::find_if(call_.settings.begin(), call_.settings.end(), same);
    if (setting.name == "log-level" || old == call_.settings.end() || old->value == setting.value) {
      continue;
    }
    log_warning("a changed setting takes effect at the next start",
                {{"setting", setting.name}, {"from", setting.from}});
  }
}

}  // namespace detent::server
