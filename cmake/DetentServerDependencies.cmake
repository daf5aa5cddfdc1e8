# What the durable store and the server need beyond the standard library; versions as Debian 12
# packages them.
find_package(RocksDB CONFIG REQUIRED)
find_package(Boost 1.81 CONFIG REQUIRED COMPONENTS json)
find_package(OpenSSL 3.0 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(PostgreSQL REQUIRED)  # libpq
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(OpenSSL REQUIRED)
find_library(HIREDIS_LIBRARY hiredis REQUIRED)
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)  # used as headers only
find_library(RDKAFKA_LIBRARY rdkafka REQUIRED)
find_library(NATS_LIBRARY nats REQUIRED)
