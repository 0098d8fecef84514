// CIFAR-10 as one PNG per file of the binary version: 1024 pixels wide, an image per row, plus
// labels as JSON.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace convoy {

// A JSON list of numbers 0 to 9. Throws DataError that names `name`.
std::vector<std::uint8_t> parse_cifar_labels(std::span<const std::uint8_t> json,
                                             std::string_view name);

// The records of the binary version, as many as there are labels. Throws DataError that names
// `name` where the picture is broken or has another size.
std::vector<std::uint8_t> cifar_records(std::span<const std::uint8_t> png,
                                        std::span<const std::uint8_t> labels,
                                        std::string_view name);

}  // namespace convoy
