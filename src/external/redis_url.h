// Where far tasks lie in Redis, as a user writes it on the command line.
#pragma once

#include <string_view>

#include "base/result.h"
#include "external/redis_session.h"

namespace detent {

/// Reads "redis://[[USER]:PASSWORD@]HOST:PORT[/DATABASE][?name=NAME]" or
/// "redis+unix:///path/of/socket[?name=NAME]"; in USER and PASSWORD, %40 stands for an "@". Whether
/// the address and the name are right RedisScheduler::create() finds out. Errors: invalid_argument;
/// the message does not repeat the password.
Result<RedisOptions> parse_redis_url(std::string_view url);

}  // namespace detent
