// Masks parts of a text that look like a secret, before it is logged. This is the last line of
// defence: the calling code must not log secrets. But an error text of a library, or an address in
// it, is not checked before.
#pragma once

#include <string>
#include <string_view>

namespace detent {

/// `text` with *** in the place of: user and password of an address ("redis://ada:pw@host"), the
/// token behind "Bearer " (RFC 6750; in any case), and what follows "whsec_" in a webhook's key.
/// Cost: linear.
std::string redact(std::string_view text);

}  // namespace detent
