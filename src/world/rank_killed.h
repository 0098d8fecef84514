#pragma once

namespace convoy {

// Ends the body of a rank that a fault kills, in worlds where a rank is no process. Not an error:
// nobody but the world catches it.
struct RankKilled {};

}  // namespace convoy
