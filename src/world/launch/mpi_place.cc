#include "world/launch/mpi_place.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace convoy {
namespace {

std::optional<int> number(const char* name) {
  const char* text = std::getenv(name);
  if (!text) return std::nullopt;
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc{} || stop != end || value < 0)
    throw ConfigError("{}={} is not a number: unset it, or start with mpirun or srun", name, text);
  return value;
}

MpiPlace checked(MpiPlace place) {
  if (place.size < 1 || place.rank >= place.size)
    throw ConfigError("{} says rank {} of {}, which cannot be", place.starter, place.rank,
                      place.size);
  return place;
}

}  // namespace

std::optional<MpiPlace> place_from_mpi_environment() {
  if (const auto rank = number("OMPI_COMM_WORLD_RANK"))
    return checked({.rank = *rank,
                    .size = number("OMPI_COMM_WORLD_SIZE").value_or(0),
                    .local_rank = number("OMPI_COMM_WORLD_LOCAL_RANK").value_or(0),
                    .local_size = number("OMPI_COMM_WORLD_LOCAL_SIZE").value_or(0),
                    .starter = "mpirun"});
  // A batch script has SLURM_PROCID too; only a step of srun has a number of tasks.
  const auto tasks = number("SLURM_STEP_NUM_TASKS");
  auto rank = number("PMIX_RANK");
  if (!rank) rank = number("SLURM_PROCID");
  if (!tasks || !rank) return std::nullopt;
  return checked({.rank = *rank,
                  .size = *tasks,
                  .local_rank = number("SLURM_LOCALID").value_or(0),
                  .local_size = 0,
                  .starter = "srun"});
}

}  // namespace convoy
