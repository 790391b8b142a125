// Launchers of the ranks of a job.
#pragma once

namespace flopinj {

// Launchers, the variable each gives a process's rank in and the one with the number of ranks, the
// most specific first. PMIx has none for the number.
struct Launcher {
  const char* rank;
  const char* size;
};
inline constexpr Launcher kLaunchers[] = {{"RANK", "WORLD_SIZE"},
                                          {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                          {"PMIX_RANK", nullptr},
                                          {"PMI_RANK", "PMI_SIZE"},
                                          {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};

}  // namespace flopinj
