// Takes out of a text what looks like a secret, before it is logged. The last line of defence: who
// logs knows what must not be, but an error of a library, or an address in it, is not read first.
#pragma once

#include <string>
#include <string_view>

namespace detent {

/// `text` with *** in the place of: user and password of an address ("redis://ada:pw@host"), the
/// token behind "Bearer " (RFC 6750; in any case), and what follows "whsec_" in a webhook's key.
/// Cost: linear.
std::string redact(std::string_view text);

}  // namespace detent
