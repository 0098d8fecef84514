# What tests find in their environment when they run under a sanitizer (CONVOY_SANITIZE). All exceptions are here and in the
# files of suppressions beside this one, each with its reason.
set(convoy_sanitizer_environment)
set(convoy_patience 1)  # how many times as long a test may take
if(CONVOY_SANITIZE)
  set(convoy_patience 4)
endif()
if(CONVOY_SANITIZE MATCHES "thread")
  # ThreadSanitizer does not see the barriers of libgomp; our own threads are what it is for.
  # Nor what libraries do between their own threads: what they read and write is left out.
  list(APPEND convoy_sanitizer_environment "OMP_THREAD_LIMIT=1"
    "TSAN_OPTIONS=ignore_noninstrumented_modules=1:suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp")
endif()
if(CONVOY_SANITIZE MATCHES "undefined")
  # GCC's undefined-behaviour sanitizer would only print, and the test pass.
  list(APPEND convoy_sanitizer_environment "UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1")
endif()
