// The tables of a run store, and how older stores become newer ones. docs/store.md describes them.
#pragma once

#include "measure/sqlite.h"

namespace convoy {

// Makes an empty file a store, and an older store one of this version. Throws DataError for a file
// that is no store, or of a newer version.
void migrate(Database& database);
// Throws DataError where a reader could not rely on the schema.
void check_schema(Database& database);

}  // namespace convoy
