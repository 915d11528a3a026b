# Compiler flags of the CPU kernels, one instruction set per file name. Included
# by src/CMakeLists.txt. Files of another architecture are not compiled.
set(HEXLLM_KERNELS_DIR ${CMAKE_SOURCE_DIR}/src/backend/cpu/kernels)

# hexllm_kernel_flags(ISA PROCESSORS FLAG...)
# Kernels are optimized in every configuration: tests of the engine would take
# minutes otherwise.
# Sanitizers see the scalar kernels, which these equal bit for bit: a vector file takes a minute to compile with them. The
# fuzz preset has them all.
if(HEXLLM_SANITIZE AND NOT HEXLLM_FUZZ)
  set(unsanitized -fno-sanitize=all)
endif()
function(hexllm_kernel_flags isa processors)
  file(GLOB sources CONFIGURE_DEPENDS ${HEXLLM_KERNELS_DIR}/*_${isa}.cc)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "${processors}")
    set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "-O2;${ARGN};${unsanitized}" SKIP_PRECOMPILE_HEADERS ON)
  else()
    set_source_files_properties(${sources} PROPERTIES HEADER_FILE_ONLY ON)
  endif()
endfunction()

hexllm_kernel_flags(avx2 "^(x86_64|AMD64)$" -mavx2 -mfma -mf16c)
set(avx512_flags
    -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512vl -mavx512dq
    # GCC 12 warns about the undefined operands in its own AVX-512 header (PR 105593).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized>)
hexllm_kernel_flags(avx512 "^(x86_64|AMD64)$" ${avx512_flags})
hexllm_kernel_flags(avx512vnni "^(x86_64|AMD64)$" ${avx512_flags} -mavx512vnni)
hexllm_kernel_flags(neon "^(aarch64|arm64)$")
hexllm_kernel_flags(neondot "^(aarch64|arm64)$" -march=armv8.2-a+dotprod)
