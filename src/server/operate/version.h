// The version of this build, set by CMake from project(VERSION).
#pragma once

namespace detent::server {

inline constexpr const char* kVersion = DETENT_VERSION;

}  // namespace detent::server
