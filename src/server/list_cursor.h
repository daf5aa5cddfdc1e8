// Where a list of tasks goes on, as its cursor tells a client.
//
// A place is that of the last task looked at, which may be one that the client may not see. So for
// whom not all is visible it is sealed (AES-256-GCM under a key of this process): such a cursor
// tells nothing, and none but those given out are accepted, until the server is started again.
// Whoever may see everything gets it in the open; that one holds over a restart.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "store/store.h"

namespace detent::server {

/// A place of the list as text: its lane, then its numbers. Opaque to clients.
std::string render_cursor(const Place& place);
/// Nothing when render_cursor() did not write it.
std::optional<Place> parse_cursor(std::string_view text);

/// Immutable.
class CursorSeal {
 public:
  /// With a key that nobody else has.
  CursorSeal();

  /// 153 characters, whatever the place.
  std::string seal(const Place& place) const;
  /// Nothing when this seal did not make it.
  std::optional<Place> open(std::string_view cursor) const;

 private:
  std::array<unsigned char, 32> key_{};
};

}  // namespace detent::server
