// What Open MPI takes for an all-reduce of floats: mpi_allreduce BYTES ITERATIONS. Rank 0 prints one JSON object.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 3) {
    std::fprintf(stderr, "usage: mpi_allreduce BYTES ITERATIONS\n");
    return 2;
  }
  const std::size_t count = std::strtoull(argv[1], nullptr, 10) / sizeof(float);
  const int iterations = std::atoi(argv[2]);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<float> values(count);
  std::vector<double> seconds;
  for (int round = 0; round <= iterations; ++round) {
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(rank + 1 + i % 5);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double took = MPI_Wtime() - begin;
    MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (round > 0) seconds.push_back(took);  // the first one warms up
    for (std::size_t i = 0; i < count; ++i)
      if (values[i] != static_cast<float>(size * (size + 1) / 2 + size * static_cast<int>(i % 5))) {
        std::fprintf(stderr, "rank %d: a wrong sum at %zu\n", rank, i);
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
  }
  std::sort(seconds.begin(), seconds.end());
  if (rank == 0)
    std::printf("{\"seconds\":%.9f,\"best_s\":%.9f}\n", seconds[seconds.size() / 2], seconds[0]);
  MPI_Finalize();
}
