# The transport's contract over MPI, by real mpirun with 1 to 4 ranks, and by srun under a real Slurm.
set(mpi_environment "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1")
foreach(ranks RANGE 1 4)
  add_test(NAME mpi_${ranks}_ranks COMMAND mpirun -n ${ranks} $<TARGET_FILE:world_test>
    --gtest_brief=1 --gtest_filter=*mpi*:-*Slow*)
  set_tests_properties(mpi_${ranks}_ranks PROPERTIES LABELS fast TIMEOUT 300 ENVIRONMENT "${mpi_environment}")
endforeach()
add_test(NAME mpi_slow COMMAND mpirun -n 2 $<TARGET_FILE:world_test> --gtest_brief=1 --gtest_filter=*mpi*Slow*)
add_test(NAME slurm COMMAND ${CMAKE_CURRENT_LIST_DIR}/slurm/run 2 $<TARGET_FILE:world_test>
  --gtest_brief=1 --gtest_filter=*mpi*:-*Slow*)
set_tests_properties(mpi_slow slurm PROPERTIES LABELS slow TIMEOUT 300 ENVIRONMENT "${mpi_environment}")
