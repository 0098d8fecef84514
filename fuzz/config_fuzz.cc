// Any text is a configuration or a ConfigError; what was read prints and reads back as the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "train/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  convoy::TrainConfig config, copy;
  try {
    read_toml(config, {reinterpret_cast<const char*>(data), size}, "fuzz.toml");
  } catch (const convoy::ConfigError&) {
    return 0;
  }
  read_toml(copy, to_toml(config), "printed.toml");
  if (!(copy == config)) std::abort();
  try {
    check_config(config);
  } catch (const convoy::ConfigError&) {
  }
  return 0;
}
