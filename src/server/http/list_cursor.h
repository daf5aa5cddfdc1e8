// The position in a list of tasks, as a cursor that the client sends back.
//
// A position names the last task that the server looked at, and the client may have no permission
// to see that task. For a client with limited permissions the cursor is therefore sealed: it is
// encrypted with AES-256-GCM under a key of this process. A sealed cursor reveals no data and
// cannot be forged, and it is valid until the server restarts. A client that may see all tasks gets
// an unsealed cursor, which stays valid after a restart.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "store/store.h"

namespace detent::server {

/// Returns a place in the list as text: its lane, then its numbers. Opaque to clients.
std::string render_cursor(const Place& place);
/// Returns no value if the text did not come from render_cursor().
std::optional<Place> parse_cursor(std::string_view text);

/// Immutable.
class CursorSeal {
 public:
  /// Makes a seal with a new random key.
  CursorSeal();

  /// Returns 153 characters for every place, so the length reveals no information.
  std::string seal(const Place& place) const;
  /// Returns no value if this seal did not make the cursor.
  std::optional<Place> open(std::string_view cursor) const;

 private:
  std::array<unsigned char, 32> key_{};
};

}  // namespace detent::server
