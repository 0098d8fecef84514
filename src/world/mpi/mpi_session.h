// MPI as a part of this process.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "base/error.h"
#include "world/mpi/mpi_collectives.h"

namespace convoy {

// MPI itself: started once, ended when the process does.
class MpiSession {
 public:
  MpiSession() {
    set_default("OMPI_MCA_coll_tuned_use_dynamic_rules",
                "1");  // lets MpiCollectives choose the ring
    // Files of a killed job would stay in /dev/shm; mpirun removes its own folder.
    if (const char* folder = std::getenv("OMPI_MCA_orte_jobfam_session_dir"))
      set_default("OMPI_MCA_btl_vader_backing_directory", folder);
    const char* local = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    if (!local) local = std::getenv("SLURM_NTASKS_PER_NODE");
    const unsigned ranks = local ? static_cast<unsigned>(std::max(1, std::atoi(local))) : 1;
    crowded_ = ranks > std::thread::hardware_concurrency();
    if (crowded_) set_default("OMPI_MCA_mpi_yield_when_idle", "1");
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE)
      throw TransportError("MPI: this library was built without threads");
    std::atexit(leave);
  }

  bool crowded() const { return crowded_; }
  MPI_Comm world() const { return MPI_COMM_WORLD; }

  static MpiSession& get() {
    static MpiSession session;
    return session;
  }

  // Whether some transport was left without close(): the others must not wait for this rank.
  static inline std::atomic<bool> has_failed = false;

 private:
  static void set_default(const char* name, const char* value) { ::setenv(name, value, 0); }

  static void leave() {
    int is_over = 0;
    MPI_Finalized(&is_over);
    if (is_over) return;
    if (has_failed) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
  }

  bool crowded_ = false;
};

}  // namespace convoy
