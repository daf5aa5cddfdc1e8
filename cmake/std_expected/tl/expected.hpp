// Stands in for the header of libexpected-dev where that is not installed: the same names, from the
// standard library of C++23. cmake/DetentExpected.cmake puts this folder on the way then, and only
// then. What is installed does not show which of the two it was built with.
#pragma once

#include <expected>

namespace tl {

using std::expected;
using std::unexpect;

}  // namespace tl
