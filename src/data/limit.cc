#include "data/limit.h"

#include <algorithm>

namespace convoy {

Limit::Limit(std::unique_ptr<Dataset> inner, std::size_t limit)
    : inner_(std::move(inner)), size_(std::min(limit, inner_->size())) {}

}  // namespace convoy
