// Reads the URL of an external scheduler, as the operator writes it in --external.
#pragma once

#include <string_view>
#include <variant>

#include "base/result.h"
#include "external/redis_session.h"
#include "external/remote_detent_scheduler.h"

namespace detent {

using ExternalOptions = std::variant<RedisOptions, RemoteDetentOptions>;

/// Reads one of these forms:
///  - redis://[[USER]:PASSWORD@]HOST:PORT[/DATABASE][?name=NAME]
///  - redis+unix:///path/of/socket[?name=NAME]
///  - http[s]://[TOKEN@]HOST[:PORT][?queue=NAME][&ca=FILE]
/// In USER and PASSWORD, "%40" means "@". This function checks only the form. RedisScheduler and
/// RemoteDetentScheduler check the address and the name in their create() functions. Errors:
/// invalid_argument; the message does not contain the password or the token.
Result<ExternalOptions> parse_external_url(std::string_view url);

}  // namespace detent
