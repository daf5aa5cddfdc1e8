// Masks parts of a text that look like a secret, before the text is logged. This is the last line
// of defence. The calling code must not log secrets, but it cannot check the error texts of a
// library and the addresses in them.
#pragma once

#include <string>
#include <string_view>

namespace detent {

/// Returns `text` with *** instead of:
/// - the user and the password of an address ("redis://ada:pw@host");
/// - the token after "Bearer " (RFC 6750), with any case of the letters;
/// - the text after "whsec_" in the key of a webhook.
/// Cost: linear in the text.
std::string redact(std::string_view text);

}  // namespace detent
