#include "store/store_error.h"

namespace detent {

Error not_stored(Place place) {
  return {ErrorCode::not_found, "read task " + to_string(place.id) + ": no record at its place",
          ""};
}

Error earlier_write_failed() {
  return {ErrorCode::unavailable,
          "write store: an earlier write failed with an unknown outcome; writes fail until the "
          "store is "
          "opened again",
          ""};
}

Error node_name_in_use(const std::string& node, const std::string& address) {
  return {ErrorCode::unavailable, "another node with the name " + node + " is alive at " + address,
          "node"};
}

}  // namespace detent
