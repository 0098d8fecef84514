#include "world/transport_contract.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace convoy {
namespace {

struct Row {
  ContractWorld world;
  ContractCase contract_case;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.world.name << ' ' << row.contract_case.name;
}

class TransportContract : public testing::TestWithParam<Row> {};

TEST_P(TransportContract, Holds) {
  const auto& [world, contract_case] = GetParam();
  for (const int size : contract_case.sizes) {
    SCOPED_TRACE(fmt::format("{} ranks", size));
    try {
      world.run(size, contract_case.body);
    } catch (const std::exception& error) {
      FAIL() << error.what();
    }
  }
}

std::vector<Row> rows(bool slow) {
  std::vector<Row> found;
  for (const ContractWorld& world : contract_worlds())
    for (const auto& cases : {contract_cases(), death_contract_cases()})
      for (const ContractCase& one : cases) found.push_back({world, one});
  std::erase_if(found, [&](const Row& row) {
    return (row.world.slow || row.contract_case.name.ends_with("Slow")) != slow;
  });
  static const std::vector<ContractCase> deaths = death_contract_cases();
  std::erase_if(found, [](const Row& row) {
    return !row.world.survives_death &&
           std::any_of(deaths.begin(), deaths.end(), [&](const ContractCase& death) {
             return death.name == row.contract_case.name;
           });
  });
  return found;
}

std::string name_of(const testing::TestParamInfo<Row>& info) {
  return info.param.world.name + "_" + info.param.contract_case.name;
}

INSTANTIATE_TEST_SUITE_P(Fast, TransportContract, testing::ValuesIn(rows(false)), name_of);
INSTANTIATE_TEST_SUITE_P(Slow, TransportContract, testing::ValuesIn(rows(true)), name_of);

}  // namespace
}  // namespace convoy
