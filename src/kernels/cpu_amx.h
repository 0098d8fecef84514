// The one tile product that decides whether AMX works here.
#pragma once

namespace convoy {

// Multiplies two small matrices of whole numbers on the tiles; whether the product is exactly
// right. Dies with SIGILL where the tiles do not work, so call it in a process that may die.
bool amx_product_is_right();

}  // namespace convoy
