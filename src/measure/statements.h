// How records become rows. Used by the StoreWriter, within its transactions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "measure/records.h"
#include "measure/store.h"

namespace convoy {

class RecordStatements {
 public:
  explicit RecordStatements(Database& database);

  // Steps, spans and resources replace rows with the same key; the others add to them.
  void write(std::int64_t run, const Records& records);

 private:
  Statement step_, ledger_, wait_, layer_, span_, resource_, traffic_, staleness_, latency_;
  Statement wall_;
};

// `name`, or with -2, -3 behind it where the store has that one.
std::string free_name(Database& database, const std::string& name);
std::int64_t insert_run(Database& database, const RunRow& run, const std::string& name);
// A run that goes on, in another process and perhaps with other settings.
void reopen_run(Database& database, std::int64_t id, const RunRow& run);
// What was recorded of later steps and epochs.
void forget_after(Database& database, std::int64_t run, std::int64_t step, int epochs);

}  // namespace convoy
