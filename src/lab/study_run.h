// Carries out a study row by row. What is done is kept in a folder, so that a study that was
// stopped goes on where it was.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "lab/study.h"
#include "lab/wang2020.h"
#include "world/launch/process.h"

namespace convoy {

struct StudyPlace {
  std::filesystem::path folder;  // keeps ROW.json, and the run of each row
  std::string program;           // convoy
  int cores = 1;                 // of this machine
  std::FILE* human = stderr;     // progress
};

struct StudyResult {
  std::vector<Wang2020Row> rows;  // those that are done, in the study's order
  bool finished = false;          // false: a signal stopped it
};

// A row that the folder has, made with the same settings, is not run again. Nodes are virtual hosts
// where this process can make them, else processes of this host. `signals` stop it; nothing of it
// is left running then. Throws DataError, or ConfigError, with the reason of a training that
// failed.
StudyResult run_study(const Study& study, const StudyPlace& place, SignalQueue& signals);

}  // namespace convoy
