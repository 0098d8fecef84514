// "did you mean": the candidate that is closest to a misspelt word.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace convoy {

// The candidate with the smallest edit distance to `word`; empty where there are no candidates.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace convoy
