# Unity builds: several sources compiled as one, in less than half the time when all of them are (presets release and asan).

# Sources that give something in their anonymous namespace a name that another source of their target gives to something
# else: compiled alone. A new clash is a compile error; a row here or another name mends it.
set(HEXLLM_COMPILED_ALONE
    "base/quantize"
    "checkpoint/(pickle|pickle_calls|pytorch|safetensors|zip)"
    "checkpoint/.*_test"
    "cli/(cmd_.*|.*_test)"
    "ir/(text|verify|ops_test|ops_properties_test)"
    "eval/result_json"
    "models/(codegen|gemma|gemma2|gemma3|glm|granite|hf_rope|llama|meta_config|phi3|qwen2|qwen3|smollm3)"
    "passes/fuse_linear_add"
    "quant/(recipe_parse|recipe_resolve|weight_encoding_test)"
    "runtime/session_test"
    "text/jinja/(filters_.*|predicates|string_queries)"
    "text/tokenizer_gguf_spm(_test)?"
    "backend/htp/(engine|linear_blocks|qnn_graph)_test"
    "backend/cpu/(engine|lower|lower_encodings)_test"
    "e2e/(decode_modes|golden_text|quantized)_test")

# hexllm_unity(TARGET SOURCES ...): keeps those SOURCES of TARGET out of its unity build that are compiled alone.
function(hexllm_unity target)
  if(NOT CMAKE_UNITY_BUILD)
    return()
  endif()
  foreach(pattern ${HEXLLM_COMPILED_ALONE})
    set(alone ${ARGN})
    list(FILTER alone INCLUDE REGEX "/${pattern}\\.cc$")
    set_source_files_properties(${alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE 10)
  # GCC takes what is included for a header, whose types should not hold what is in an anonymous namespace.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()
