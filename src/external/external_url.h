// Where far tasks lie, as a user writes it on the command line.
#pragma once

#include <string_view>
#include <variant>

#include "base/result.h"
#include "external/redis_session.h"
#include "external/remote_detent_scheduler.h"

namespace detent {

using ExternalOptions = std::variant<RedisOptions, RemoteDetentOptions>;

/// Reads "redis://[[USER]:PASSWORD@]HOST:PORT[/DATABASE][?name=NAME]",
/// "redis+unix:///path/of/socket[?name=NAME]" or "http[s]://[TOKEN@]HOST[:PORT][?queue=NAME]
/// [&ca=FILE]"; in USER and PASSWORD, %40 stands for an "@". Whether address and name are right the
/// create() of the one or the other finds out. Errors: invalid_argument; the message does not
/// repeat password or token.
Result<ExternalOptions> parse_external_url(std::string_view url);

}  // namespace detent
