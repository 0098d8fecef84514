# The contracts of the transport and of the collectives over MPI, by real mpirun with 1 to 4 ranks, and by srun under a
# real Slurm. (mpi_test.cc has the commands, and ranks that are killed and stopped.)
set(mpi_environment "OMPI_ALLOW_RUN_AS_ROOT=1" "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1" "OMPI_MCA_rmaps_base_oversubscribe=1"
  ${convoy_sanitizer_environment})
foreach(ranks RANGE 1 4)
  foreach(subject world sync)
    # The collectives use most of what the transport promises; and ranks that wait for MPI take whole cores.
    set(label slow)
    if(subject STREQUAL sync AND ranks EQUAL 2)
      set(label fast)
    endif()
    add_test(NAME mpi_${subject}_${ranks}_ranks COMMAND mpirun -n ${ranks} $<TARGET_FILE:${subject}_test>
      --gtest_brief=1 --gtest_filter=*mpi*:-*Slow*)
    set_tests_properties(mpi_${subject}_${ranks}_ranks PROPERTIES LABELS ${label} TIMEOUT 300 ENVIRONMENT "${mpi_environment}")
  endforeach()
endforeach()
foreach(subject world sync)
  add_test(NAME mpi_${subject}_slow COMMAND mpirun -n 2 $<TARGET_FILE:${subject}_test> --gtest_brief=1 --gtest_filter=*mpi*Slow*:*Slow*mpi*)
  set_tests_properties(mpi_${subject}_slow PROPERTIES LABELS slow TIMEOUT 300 ENVIRONMENT "${mpi_environment}")
endforeach()
add_test(NAME slurm COMMAND ${CMAKE_CURRENT_LIST_DIR}/slurm/run 2 $<TARGET_FILE:world_test>
  --gtest_brief=1 --gtest_filter=*mpi*:-*Slow*)
set_tests_properties(slurm PROPERTIES LABELS slow TIMEOUT 300 ENVIRONMENT "${mpi_environment}")
